"""The features that an answer's certainty is made from."""

from __future__ import annotations

import pytest

from core.answering.certainty import answerable, features, is_certain, is_off_subject, meets_condition
from core.answering.excerpts import candidates
from core.answering.fact_kinds import says_what_is_asked
from core.knowledge.retriever import Retriever
from core.model.badge import Evaluation
from core.model.conversation import PUBLIC, Audience
from tests.cases import every_case
from tests.unit.answering.pages import retriever

__all__ = ["retriever"]

EVERYBODY = Audience(frozenset({PUBLIC}))


async def features_of(query: str, retriever: Retriever) -> dict[str, float]:
    retrieval = await retriever.search(query, EVERYBODY, 16)
    return features(retrieval, candidates(query, retrieval))


@pytest.mark.parametrize(("alert", "off"), [("RunnerDrainSlow", True), ("Runner", False), ("drain a runner", False)])
async def test_a_page_without_the_name_of_the_alert_is_off_its_subject(
    alert: str, off: bool, retriever: Retriever
) -> None:
    query = f"{alert}: a runner did not drain within 45 minutes"
    retrieval = await retriever.search(query, EVERYBODY, 16)
    assert is_off_subject(query, candidates(query, retrieval)[0], retrieval) is off


async def test_features_of_a_page_that_says_more_of_the_question_are_larger(retriever: Retriever) -> None:
    near = await features_of("drain a runner and wait", retriever)
    far = await features_of("drain a swamp of crocodiles and wait", retriever)
    for name in ("shared", "match"):
        assert near[name] > far[name] >= 0


def test_weak_evidence_makes_no_certain_answer_and_none_no_answer() -> None:
    assert is_certain(Evaluation(0.9, 0.9))
    assert not is_certain(Evaluation(0.4, 0.4))
    assert not is_certain(Evaluation(0.9, 0.1))
    assert answerable(Evaluation(0.9, 0.9))
    assert not answerable(Evaluation(0.0, 0.9))


@pytest.mark.parametrize("question", ["what time is the cache cleaned", "When is the next rotation?"])
def test_an_answer_to_a_question_for_a_time_names_one(question: str) -> None:
    assert says_what_is_asked(question, "It is done.", "It is done at 03:40.")
    assert says_what_is_asked(question, "It is done.", "It is done every 60 days.")
    assert not says_what_is_asked(question, "A hit saves 7 minutes.", "A hit saves 7 minutes.")


@every_case(
    ("question", "meets"),
    [
        ("who approves a roll-back?", True),
        ("who approves a roll-back of payments?", True),
        ("who approves a roll-back in the freeze?", False),
        ("who approves a roll-back during an incident?", False),
        ("who approves a roll-back outside office hours?", True),
        ("how is a roll-back approved for the warehouse?", False),
    ],
)
def test_what_holds_in_general_is_not_certain_under_a_condition(question: str, meets: bool) -> None:
    text = "Approval of a roll-back: the team lead, or the on-call outside office hours. For payments also a second person."
    assert meets_condition(question, text) is meets
