"""How much of a question stands in statements and around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from core.answering.statements import Statement
from core.knowledge.document import DocumentKind
from core.knowledge.layout import split_thread
from core.knowledge.markdown import LINK_TARGET
from core.knowledge.terms import distinct_terms

TITLE_WEIGHT = 0.7  # what a question term counts for in the title or in the message that began a thread
HEADING_WEIGHT = 0.9  # in the heading or the lead-in
LINK_WEIGHT = 0.5  # in the text of a link: what it names is said elsewhere

_LINK = re.compile(rf"(?<!!)\[([^\[\]\n]+)\]{LINK_TARGET}")


def coverage(weights: Mapping[str, float], chosen: Iterable[Statement]) -> float:
    """The share of the term weight that stands in the statements themselves or, for less, around them, in [0, 1]."""
    held: dict[str, float] = {}
    for statement in chosen:
        parts = _parts(statement)
        for term in weights:
            share = next((share for found, share in parts if term in found), 0.0)
            held[term] = max(share, held.get(term, 0.0))
    total = sum(weights.values())
    return sum(weight * held.get(term, 0.0) for term, weight in weights.items()) / total if total else 0.0


def _parts(statement: Statement) -> tuple[tuple[frozenset[str], float], ...]:
    """The terms of a statement, and of what a reader sees around it, with what each counts for; most first."""
    passage = statement.passage
    message = split_thread(passage.text)[0] if passage.kind is DocumentKind.THREAD else ""
    own, linked = _LINK.sub("", statement.text), "\n".join(_LINK.findall(statement.text))
    return (
        (distinct_terms(own), 1.0),
        (distinct_terms(f"{statement.heading}\n{statement.lead_in}"), HEADING_WEIGHT),
        (distinct_terms(f"{passage.title}\n{message}"), TITLE_WEIGHT),
        (distinct_terms(linked), LINK_WEIGHT),
    )
