"""Who asks what a person has answered already is given that answer, before whatever else is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.curated import is_curated, question_of
from core.knowledge.document import Passage
from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import terms

SAME_QUESTION = 0.6  # share of the distinct terms of two questions that both hold, from which they are taken for one
STEPPED_BACK = 0.5  # what the score of everything else is multiplied by: too little to outvote the answer


def confirmed_first(query: str, ranked: Sequence[RankedPassage]) -> list[RankedPassage]:
    """The passages with those first that people confirmed as the answer to this very question."""
    asked = set(terms(query))
    answers = [found for found in ranked if _answers(found.passage, asked)]
    if not answers:
        return list(ranked)
    others = [
        replace(found, score=STEPPED_BACK * found.score, withheld=STEPPED_BACK * found.withheld)
        for found in ranked
        if found not in answers
    ]
    return [*(replace(found, score=1.0, withheld=0.0) for found in answers), *others]


def _answers(passage: Passage, asked: set[str]) -> bool:
    if not is_curated(passage.document_id):
        return False
    answered = set(terms(question_of(passage.title)))
    return len(asked & answered) >= SAME_QUESTION * len(asked | answered) > 0
