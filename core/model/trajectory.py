"""The trajectory of an investigation by a language model: its steps, and its conclusion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Responsibility(StrEnum):
    """The responsibility for the repair (RCAgent, section 4.2.1)."""

    PLATFORM = "platform"
    OWN_CODE = "own code"
    DEPENDENCY = "dependency"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Action:
    """A call of a tool that the model chose, with its reason. All texts are the model's, untrusted."""

    thought: str
    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Finding:
    """The report of the model when it finalises. `evidence` is what it claims to quote; `service` has the cause."""

    thought: str
    root_cause: str
    solution: str
    service: str
    responsibility: Responsibility
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A step that led to an observation, or to a fault and advice; then nothing was called.

    `action` is None if the reply could not be understood; `reply` is what the model said. `snapshot` is the key of the
    whole observation, `shown` what the model saw of it.
    """

    reply: str
    action: Action | None
    shown: str
    snapshot: str = ""
    fault: str = ""

    @property
    def told(self) -> str:
        """The step in a line: what was called, or why nothing was."""
        if self.action is None or self.fault:
            return f"refused: {self.fault}"
        return f"{self.action.tool}({', '.join(self.action.arguments.values())}): {self.action.thought}"


class Ending(StrEnum):
    FINALISED = "finalised"
    FAILED = "the model gave no valid finding"
    MODEL_UNAVAILABLE = "the model did not answer"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """`finding` is None unless it ended in one; with several samples, it is the one that they agree on."""

    steps: tuple[Step, ...]
    ending: Ending
    finding: Finding | None = None
    samples: tuple[Finding, ...] = ()

    @property
    def invalid_rate(self) -> float:
        """The share of steps whose action was refused (RCAgent, table 4); 0 without steps."""
        return sum(bool(step.fault) for step in self.steps) / len(self.steps) if self.steps else 0.0
