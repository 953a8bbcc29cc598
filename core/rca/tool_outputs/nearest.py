"""The lines that speak most of what was asked, for when little or nothing complains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import log, sqrt

from core.knowledge.terms import terms
from core.model.incident import Evidence, EvidenceKind
from core.rca.log_templates import masked
from core.rca.tool_outputs.clue import ToolOutput, cut
from core.rca.tool_outputs.reading import is_document

MIN_PREFIX = 4  # letters of a word by which lines are picked before they are compared as terms
MAX_LINE = 1_000  # characters of a line that are compared
MAX_LINES = 20_000  # different lines that are compared


def nearest(question: str, outputs: Sequence[ToolOutput], count: int) -> list[Evidence]:
    """At most `count` different lines with the rarest words of the question, best first; documents are left out."""
    asked = set(terms(question))
    picked = list(_picked({term[: max(MIN_PREFIX, len(term) - 2)] for term in asked}, outputs))
    found = [(asked & set(terms(line)), len(line), line, output) for line, output in picked]
    known = Counter(term for shared, *_ in found for term in shared)
    rated = [
        (sum(log(1 + len(found) / known[term]) for term in shared) / sqrt(20 + length), line, output)
        for shared, length, line, output in found
        if shared
    ]
    best = sorted(rated, key=lambda each: -each[0])[:count]
    return [Evidence(EvidenceKind.TOPOLOGY, output.source, cut(line)) for _, line, output in best]


def _picked(words: set[str], outputs: Sequence[ToolOutput]) -> Iterator[tuple[str, ToolOutput]]:
    seen: set[str] = set()
    for output in outputs:
        if output.failed or is_document(output):
            continue
        for raw in output.text.splitlines():
            line = raw.strip()[:MAX_LINE]
            lowered = line.lower()
            if any(word in lowered for word in words) and (plain := masked(lowered)) not in seen:
                seen.add(plain)
                yield line, output
                if len(seen) == MAX_LINES:
                    return
