"""The engines of `plumbline eval rca` without a language model: the evidence engine and a keyword search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from core.rca.failures import CAUSE, COMPLAINT, phrases
from core.rca.tool_outputs.clues import ToolOutput
from core.rca.tool_outputs.conclusion import conclude

MAX_WORDS = 60  # of a stated cause
MAX_QUOTES = 3
MAX_QUOTE = 300  # characters

_KEYWORDS = (phrases(CAUSE), phrases(COMPLAINT))


@dataclass(frozen=True, slots=True)
class Given:
    """The input of an engine."""

    question: str
    outputs: tuple[ToolOutput, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of an engine. An empty `cause` means none was found; `steps` is the number of outputs read."""

    cause: str
    quotes: tuple[str, ...]
    steps: int


Engine = Callable[[Given], Awaitable[Verdict]]


async def by_evidence(given: Given) -> Verdict:
    found = conclude(given.question, given.outputs)
    return Verdict(found.cause, tuple(evidence.quote for evidence in found.evidence), len(given.outputs))


async def by_keyword(given: Given) -> Verdict:
    """Return the distinct lines with the most distinct keywords, earlier ones first, as a baseline."""
    lines = dict.fromkeys(line.strip() for output in given.outputs for line in output.text.splitlines())
    counts = {line: len({word.lower() for pattern in _KEYWORDS for word in pattern.findall(line)}) for line in lines}
    ranked = sorted((line for line, count in counts.items() if count), key=lambda line: -counts[line])
    return Verdict(ranked[0] if ranked else "", tuple(ranked[:MAX_QUOTES]), len(given.outputs))
