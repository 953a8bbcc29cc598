"""Requests to a language model, and its replies. Replies are untrusted text.

The trajectory of an investigation by a language model: its steps and its conclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt."""

    role: Role
    text: str


class Urgency(IntEnum):
    """The urgency of a request. Lower numbers are served first."""

    PERSON = 0  # a person is waiting in a chat
    INCIDENT = 1  # an incident is being worked on
    BACKGROUND = 2  # nightly work


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A prompt and its generation parameters.

    `messages` begin with the long part that several requests of one job share, byte-identical in each of them, so that
    the server can reuse its computation. `schema` is a JSON schema for the reply. `requester` is the channel or job,
    used for fairness. `deadline` covers waiting and generating, in seconds.
    """

    messages: tuple[ChatMessage, ...]
    max_tokens: int = 512
    temperature: float = 0.0  # 0: greedy decoding
    seed: int = 0
    schema: Mapping[str, Any] | None = None
    urgency: Urgency = Urgency.PERSON
    requester: str = ""
    deadline: float = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply of the model. `complete` is False if it was truncated at `max_tokens`.

    `cached_tokens` of the `prompt_tokens` were served from the cache; 0 if the server does not report it.
    """

    text: str
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Abilities:
    """The abilities of a server, which is used with those that it has.

    `odds`: it reports the probabilities of tokens, so that `expect` costs one reply. `schemas`: its replies satisfy a JSON
    schema by construction. `counts`: it counts tokens with the model's tokenizer. `parallel`: the replies that it
    generates concurrently. `draws`: the replies that `expect` costs.
    """

    odds: bool = True
    schemas: bool = True
    counts: bool = True
    parallel: int = 1
    draws: int = 1


OnText = Callable[[str], None]
"""Receives a reply so far, each time that it grows. Must not block."""


def ignore_text(_: str) -> None:
    """Wait for the whole reply."""


class Responsibility(StrEnum):
    """The party responsible for the repair (RCAgent, section 4.2.1)."""

    PLATFORM = "platform"
    OWN_CODE = "own code"
    DEPENDENCY = "dependency"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Action:
    """A tool call chosen by the model, with its reason. All texts are untrusted."""

    thought: str
    tool: str
    arguments: Mapping[str, str]

    @property
    def call(self) -> str:
        """Return the call as it is cited: “read_logs(api)”."""
        return f"{self.tool}({', '.join(value for value in self.arguments.values() if value)})"


@dataclass(frozen=True, slots=True)
class Finding:
    """The model's final report. All texts are untrusted.

    `evidence` are its alleged quotes; `service` contains the cause, and `change` is the id of the change that is it, empty
    if none is. `disproof` is an observation that would disprove it; it may be empty.
    """

    thought: str
    root_cause: str
    solution: str
    service: str
    responsibility: Responsibility
    evidence: tuple[str, ...]
    change: str = ""
    disproof: str = ""

    def names_same(self, other: Finding) -> bool:
        """Return whether both name the same cause: the same change, or the same service and no change.

        A finding without evidence names no cause.
        """
        return (self.change, bool(self.evidence)) == (other.change, bool(other.evidence)) and (
            bool(self.change) or self.service == other.service
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step that led to an observation, or to a fault with advice (then no tool was called).

    `action` is None if the reply could not be parsed; `reply` is the model's text. `snapshot` is the key of the full
    observation, `shown` the part shown to the model.
    """

    reply: str
    action: Action | None
    shown: str
    snapshot: str = ""
    fault: str = ""

    @property
    def summary(self) -> str:
        """Return the call of a step without a fault in one line, with its reason."""
        return "" if self.action is None else f"{self.action.call}: {self.action.thought}".removesuffix(": ")


class Ending(StrEnum):
    FINALISED = "finalised"
    FAILED = "the model gave no valid finding"
    MODEL_UNAVAILABLE = "the model did not answer"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """An investigation. `finding` is None if it ended without one; with several samples, it is their consensus.

    `left_out` counts its sentences that are not shown, because what was read does not say so.
    """

    steps: tuple[Step, ...]
    ending: Ending
    finding: Finding | None = None
    samples: tuple[Finding, ...] = ()
    model: str = ""
    left_out: int = 0

    @property
    def agreement(self) -> float:
        """Return the share of the samples that name the cause of the finding, in [0, 1]; 1 without samples."""
        if self.finding is None or not self.samples:
            return 1.0
        return sum(each.names_same(self.finding) for each in self.samples) / len(self.samples)
