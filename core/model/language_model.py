"""Requests to a language model, and its replies. Replies are untrusted text."""

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
    generates concurrently.
    """

    odds: bool = True
    schemas: bool = True
    counts: bool = True
    parallel: int = 1


OnText = Callable[[str], None]
"""Receives a reply so far, each time that it grows. Must not block."""


def ignore_text(_: str) -> None:
    """Wait for the whole reply."""
