from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.knowledge.passages import passages_of
from core.knowledge.retriever import RankedPassage, confirmed_first
from core.model.document import Document, Passage, document
from tests.samples import START, confirmed

QUESTION = "How do I roll back a canary?"


def ranked(of: Document, score: float) -> RankedPassage:
    passage: Passage = passages_of(of)[0]
    return RankedPassage(passage, lexical=score, dense=score, score=score)


HANDBOOK = ranked(Document("handbook/canary", "handbook", "handbook", "Rolling back a canary", "By hand."), 0.9)
ANSWER = ranked(document(confirmed(question=QUESTION)), 0.4)


@pytest.mark.parametrize("query", [QUESTION, "how to roll back the canary", "Roll back canary?"])
def test_the_answer_to_this_very_question_comes_first(query: str) -> None:
    first, second = confirmed_first(query, [HANDBOOK, ANSWER])
    assert first.passage == ANSWER.passage
    assert second.passage == HANDBOOK.passage
    assert first.score > 2 * second.score


@pytest.mark.parametrize("query", ["who may roll back a deployment during the freeze?", "canary", ""])
def test_for_another_question_it_is_a_document_among_others(query: str) -> None:
    assert confirmed_first(query, [HANDBOOK, ANSWER]) == [HANDBOOK, ANSWER]


def test_where_each_question_has_a_word_of_its_own_it_is_another_one() -> None:
    staging = ranked(document(confirmed(question=f"{QUESTION[:-1]} in staging?")), 0.4)
    query = f"{QUESTION[:-1]} in production?"
    assert confirmed_first(query, [HANDBOOK, staging]) == [HANDBOOK, staging]


def test_what_was_confirmed_last_corrects_what_was_confirmed_before() -> None:
    later = confirmed(id="later", question=QUESTION, confirmed_at=START + timedelta(days=30))
    for order in ((ANSWER, ranked(document(later), 0.2)), (ranked(document(later), 0.2), ANSWER)):
        first, second = confirmed_first(QUESTION, order)
        assert first.passage.document_id == document(later).id
        assert first.score > 2 * second.score


def test_an_answer_to_the_nearer_question_comes_before_a_later_one() -> None:
    wide = confirmed(id="wide", question=f"{QUESTION[:-1]} in staging?", confirmed_at=START + timedelta(days=30))
    first, _ = confirmed_first(QUESTION, [ranked(document(wide), 0.9), ANSWER])
    assert first.passage == ANSWER.passage


def test_a_document_that_only_calls_itself_confirmed_is_none() -> None:
    pretender = replace(ANSWER, passage=replace(ANSWER.passage, document_id="handbook/curated"))
    assert confirmed_first(QUESTION, [HANDBOOK, pretender]) == [HANDBOOK, pretender]
