"""Who asks what a person has answered already is given that answer, before whatever else is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import terms
from core.model.curated import is_curated, question_of
from core.model.document import Passage

SAME_QUESTION = 0.6  # share of the distinct terms of two questions that both hold, from which they are taken for one
STEPPED_BACK = 0.5  # what the score of everything else is multiplied by: too little to outvote the answer


def confirmed_first(query: str, ranked: Sequence[RankedPassage]) -> list[RankedPassage]:
    """The passages with those first that people confirmed as the answer to this very question.

    Of several such answers the nearest question counts, and then what was confirmed last: it corrects what was before.
    """
    asked = frozenset(terms(query))
    likeness = {found.passage.document_id: _likeness(found.passage, asked) for found in ranked}
    latest = max(ranked, key=lambda found: (likeness[found.passage.document_id], _confirmed_at(found)), default=None)
    if latest is None or not likeness[latest.passage.document_id]:
        return list(ranked)
    document = latest.passage.document_id
    answer = [replace(found, score=1.0) for found in ranked if found.passage.document_id == document]
    others = [
        replace(found, score=STEPPED_BACK * found.score) for found in ranked if found.passage.document_id != document
    ]
    return [*answer, *others]


def is_answered_by(query: str, passage: Passage) -> bool:
    """Tell whether people confirmed a passage as the answer to this very question."""
    return _likeness(passage, frozenset(terms(query))) > 0


def _likeness(passage: Passage, asked: frozenset[str]) -> float:
    """The share of the terms of two questions that both hold; 0 if they are not the same question.

    Each with a word of its own, such as production and staging, they are not.
    """
    if not is_curated(passage.document_id):
        return 0.0
    answered = frozenset(terms(question_of(passage.title)))
    share = len(asked & answered) / (len(asked | answered) or 1)
    return share if share >= SAME_QUESTION and (asked <= answered or answered <= asked) else 0.0


def _confirmed_at(found: RankedPassage) -> datetime:
    return found.passage.updated_at or datetime.min.replace(tzinfo=UTC)
