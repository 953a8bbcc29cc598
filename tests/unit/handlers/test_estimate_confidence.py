from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from core.confidence.model_estimator import VERSION, Claim, Reference
from core.model.badge import Evaluation
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest, Urgency
from handlers.common.record_prediction import DEADLINES, EFFORTS, estimate_confidence
from tests.fakes.language_model import ScriptedModel

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
CLAIM = Claim("i1", "The till is slow.", "The pool is too small.", NOW)
BEFORE = Reference("INC-1", "The till was slow: the pool was too small.", NOW - timedelta(days=1))
MEASURED = (Evaluation(0.3, 0.4), "evidence-1")


async def estimated(
    model: ScriptedModel | None, *references: Reference, urgency: Urgency = Urgency.INCIDENT
) -> tuple[Evaluation, str]:
    return await estimate_confidence(CLAIM, references, MEASURED, model=model, urgency=urgency, requester="i1")


async def test_the_model_is_asked_and_its_estimates_have_a_version_of_their_own() -> None:
    model = ScriptedModel(lambda _: "They agree.", odds=lambda _, choices: {choices[0]: 1.0})
    evaluation, version = await estimated(model, BEFORE)
    assert evaluation == Evaluation(1.0, 0.0)  # the first label of either step: yes, and the lowest rating
    assert version == f"{VERSION}:scripted"


@pytest.mark.parametrize(
    "reference", [Reference("i1", "itself"), Reference("INC-2", "from later", NOW + timedelta(days=1))]
)
async def test_the_case_itself_and_later_ones_are_nothing_to_judge_by(reference: Reference) -> None:
    model = ScriptedModel()
    assert await estimated(model, reference) == MEASURED
    assert model.requests == []


async def test_without_a_model_the_evidence_stands() -> None:
    assert await estimated(None, BEFORE) == MEASURED


@pytest.mark.parametrize("error", [ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError])
async def test_a_model_that_gives_nothing_usable_leaves_the_evidence(error: Callable[[str], Exception]) -> None:
    def fails(_: ModelRequest) -> str:
        raise error("not now")

    assert await estimated(ScriptedModel(fails), BEFORE) == MEASURED


async def test_whoever_waits_is_asked_for_less_and_served_first() -> None:
    model = ScriptedModel(lambda _: "Fine.")
    await estimated(model, BEFORE, urgency=Urgency.PERSON)
    for_a_person = list(model.requests)
    await estimated(model, BEFORE, urgency=Urgency.INCIDENT)
    assert len(for_a_person) < len(model.requests) - len(for_a_person)
    assert {request.urgency for request in for_a_person} == {Urgency.PERSON}
    assert {request.deadline for request in for_a_person} == {DEADLINES[Urgency.PERSON]}
    assert EFFORTS[Urgency.PERSON].analyses < EFFORTS[Urgency.INCIDENT].analyses
