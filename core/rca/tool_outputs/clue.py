"""What one tool returned, and what in it tells of trouble."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from core.model.incident import EvidenceKind

_SPACE = re.compile(r"\s")
MAX_QUOTE = 300  # characters


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The answer of a tool to one call. `text` is untrusted; `failed` says that the call itself went wrong."""

    tool: str
    arguments: Mapping[str, str]
    text: str
    failed: bool = False

    @property
    def source(self) -> str:
        """The call as it is cited: “kubectl_describe(pod, api-0)”."""
        return f"{self.tool}({', '.join(value for value in self.arguments.values() if value)})"


class Role(StrEnum):
    """Where a clue stands between the cause and what users notice."""

    CAUSE = "cause"  # why something went wrong
    EFFECT = "effect"  # what follows from a cause: a restart, a back-off, a pod that is not ready


@dataclass(frozen=True, slots=True)
class Clue:
    """One sign of trouble. `strength` in [0, 1] says how sure it is one, and how much it explains.

    `subject` is the name of what it is about (a pod, a node, a claim), `statement` the clue in words, `quote` its lines
    as they stand in the output. `support` are further lines that make it understood, such as the limit that was hit.
    """

    subject: str
    statement: str
    quote: str
    strength: float
    role: Role
    kind: EvidenceKind
    support: tuple[str, ...] = ()
    source: str = ""
    namespace: str = ""
    targeted: bool = False  # the tool was asked about this subject by name


@dataclass(slots=True)
class Lines:
    """The lines of an output, as they stand there."""

    text: str
    all: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.all = self.text.splitlines()

    def quote(self, first: int, last: int | None = None, wanted: Sequence[int] = ()) -> str:
        """Lines first to last, then the `wanted` neighbours in that order, as far as they adjoin and there is room.

        A single line that is too long is cut around its middle of interest by the caller (`cut`).
        """
        last = first if last is None else last
        while last > first and self._length(first, last) > MAX_QUOTE:
            last -= 1
        for neighbour in wanted:
            low, high = min(first, neighbour), max(last, neighbour)
            if high - low == last - first + 1 and low >= 0 and high < len(self.all):
                if self._length(low, high) > MAX_QUOTE:
                    continue
                first, last = low, high
        return cut("\n".join(self.all[first : last + 1]))

    def _length(self, first: int, last: int) -> int:
        return sum(len(line) + 1 for line in self.all[first : last + 1]) - 1


def cut(text: str, around: int = 0) -> str:
    """At most MAX_QUOTE characters of a text, those `around` a place, verbatim and in whole words where it can be."""
    text = text.rstrip()
    if len(text) <= MAX_QUOTE:
        return text
    start = max(0, min(around - MAX_QUOTE // 3, len(text) - MAX_QUOTE))
    part = text[start : start + MAX_QUOTE]
    if start and (space := _SPACE.search(part[:40])):
        part = part[space.end() :]
    return part


def spoken(message: str, words: int = 36) -> str:
    """A message in at most so many words: its beginning, which says what was tried, and its end, which says why not."""
    found = message.split()
    if len(found) <= words:
        return " ".join(found)
    head = words * 3 // 5
    return " ".join([*found[:head], "…", *found[len(found) - (words - head - 1) :]])
