"""The features that an answer's certainty is made from."""

from __future__ import annotations

import pytest

from core.answering.certainty import features, named_families, says_what_is_asked
from core.answering.excerpts import candidates
from core.knowledge.retriever import Retriever
from core.model.conversation import PUBLIC, Audience
from tests.unit.answering.pages import retriever

__all__ = ["retriever"]

EVERYBODY = Audience(frozenset({PUBLIC}))


async def features_of(query: str, retriever: Retriever) -> dict[str, float]:
    retrieval = await retriever.search(query, EVERYBODY, 16)
    return features(query, retrieval, candidates(query, retrieval))


@pytest.mark.parametrize(("alert", "expected"), [("RunnerDrainSlow", 1.0), ("Runner", 0.0), ("drain a runner", 0.0)])
async def test_a_page_without_the_name_of_the_alert_is_off_its_subject(
    alert: str, expected: float, retriever: Retriever
) -> None:
    found = await features_of(f"{alert}: a runner did not drain within 45 minutes", retriever)
    assert found["off_subject"] == expected


async def test_features_of_a_page_that_says_more_of_the_question_are_larger(retriever: Retriever) -> None:
    near = await features_of("drain a runner and wait", retriever)
    far = await features_of("drain a swamp of crocodiles and wait", retriever)
    for name in ("shared", "match", "pairs", "coverage", "spread", "heading"):
        assert near[name] > far[name]


@pytest.mark.parametrize("question", ["what time is the cache cleaned", "When is the next rotation?"])
def test_an_answer_to_a_question_for_a_time_names_one(question: str) -> None:
    assert says_what_is_asked(question, "It is done.", "It is done at 03:40.")
    assert says_what_is_asked(question, "It is done.", "It is done every 60 days.")
    assert not says_what_is_asked(question, "A hit saves 7 minutes.", "A hit saves 7 minutes.")


@pytest.mark.parametrize(
    ("query", "named"),
    [("the argocd sync", {"argo-cd"}), ("Argo CD sync", {"argo-cd"}), ("in loki", {"loki"}), ("the sync", set[str]())],
)
def test_families_are_named_in_one_word_or_several(query: str, named: set[str]) -> None:
    assert named_families(query, frozenset({"argo-cd", "loki", "flux"})) == named
