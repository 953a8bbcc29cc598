"""What a closer look at a candidate says: how much of the query it covers, in what order, how near together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.knowledge.document import Passage
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.terms import tokens

PROXIMITY_WINDOW = 24  # words within which terms count as standing together
LCS_LENGTH = 400  # first words of a passage that are compared in order

FUSED_WEIGHT = 0.50
COVERAGE_WEIGHT = 0.20
PROXIMITY_WEIGHT = 0.12
ORDER_WEIGHT = 0.08
HEADING_WEIGHT = 0.10


@dataclass(frozen=True, slots=True)
class Closeness:
    """All in [0, 1], weighted by idf.

    `coverage`: query terms that passage or title hold. `proximity`: the largest share of query terms within
    PROXIMITY_WINDOW words. `order`: the longest common subsequence of terms. `heading`: query terms that the title
    and the best matching heading hold.
    """

    coverage: float
    proximity: float
    order: float
    heading: float


def closeness(query: Sequence[str], weights: Mapping[str, float], passage: Passage) -> Closeness:
    """Compare a query's terms, each with its weight, with a passage."""
    total = sum(weights[term] for term in query) or 1.0
    wanted = set(query)
    title = {term for token in tokens(passage.title) for term in token.terms}
    text = [(token.position, term) for token in tokens(passage.text) for term in token.terms if term in wanted]

    def share(found: set[str]) -> float:
        return sum(weights[term] for term in wanted & found) / total

    headings = [block.text for block in blocks(passage.text) if block.kind is BlockKind.HEADING] or [passage.heading]
    return Closeness(
        coverage=share(title | {term for _, term in text}),
        proximity=_densest(text, weights) / total,
        order=_longest_common(query, [term for _, term in text[:LCS_LENGTH]], weights) / total,
        heading=max(share(title | {t for token in tokens(heading) for t in token.terms}) for heading in headings),
    )


def reranked(fused: float, close: Closeness) -> float:
    """The score that orders candidates: the retrievers' opinion and the closer look, in fixed shares."""
    return (
        FUSED_WEIGHT * fused
        + COVERAGE_WEIGHT * close.coverage
        + PROXIMITY_WEIGHT * close.proximity
        + ORDER_WEIGHT * close.order
        + HEADING_WEIGHT * close.heading
    )


def _densest(text: Sequence[tuple[int, str]], weights: Mapping[str, float]) -> float:
    """The largest weight of distinct terms within a window of words."""
    best = current = 0.0
    inside: dict[str, int] = {}
    start = 0
    for position, term in text:
        if not inside.get(term):
            current += weights[term]
        inside[term] = inside.get(term, 0) + 1
        while position - text[start][0] >= PROXIMITY_WINDOW:
            leaving = text[start][1]
            inside[leaving] -= 1
            if not inside[leaving]:
                current -= weights[leaving]
            start += 1
        best = max(best, current)
    return best


def _longest_common(query: Sequence[str], text: Sequence[str], weights: Mapping[str, float]) -> float:
    """The weight of the heaviest common subsequence."""
    spots: dict[str, list[int]] = {}
    for index, term in enumerate(query):
        spots.setdefault(term, []).append(index)
    row = [0.0] * (len(query) + 1)
    for term in text:
        for index in reversed(spots.get(term, ())):
            row[index + 1] = max(row[index + 1], max(row[: index + 1]) + weights[term])
    return max(row)
