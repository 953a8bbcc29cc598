from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.model.badge import Estimator, PredictionKind
from core.model.explanation import Explanation, SimilarIncident
from core.model.incident import Incident
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model_calls.choice import NONE
from core.rca.agent.conclusion import ranked_by_model
from core.rca.cause_candidates import RANKING_VERSION, VERSION, evaluate_ranking, is_unsure
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.triage.history import IncidentHistory
from handlers.common.ports import Readers
from handlers.incidents.explain_incident import explain_incident
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.outage import START, change, errors, incident, traffic
from tests.fakes.outage import observations as observed
from tests.fakes.ports import some_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.tools import FakeChangeReader, FakeLogReader, FakeMetricReader

LOGS = [traffic("shop"), errors("shop", "request failed", since=-8)]
CHANGES = [change("C-1", "shop", -9, "Rename a helper"), change("C-2", "shop", -10, "Tidy up")]
SEEN = replace(
    observed(LOGS, changes=CHANGES),
    similar=(SimilarIncident("INC-7", "shop was slow", "sales", "The moon\nwas full", "", 0.9),),
)
FOUND, EVALUATION = explain(SEEN)
READERS = Readers(
    (FakeLogReader([line for lines in LOGS for line in lines]),),
    (FakeMetricReader(()),),
    (FakeChangeReader(CHANGES),),
    {},
)


def choosing(word: str) -> ScriptedModel:
    """A model that chooses the candidate in whose name a word stands."""
    return ScriptedModel(odds=lambda _, names: {name: float(word in name) for name in names})


async def ranked(model: ScriptedModel, right: float, first: float = 0.5) -> list[str]:
    found = await ranked_by_model(FOUND.hypotheses, SEEN, model, ModelRequest(()), right, first)
    assert sum(each.score for each in found) <= 1.0
    return [each.change.id if each.change else each.service for each in found]


async def explained(store: FakePredictionStore, model: ScriptedModel | None, right: int = 12) -> Explanation:
    found: Incident = await explain_incident(
        incident(),
        some_ports(
            readers=READERS,
            store=store,
            clock=FakeClock(START),
            examined=await passed(model, right) if model else None,
        ),
        history=IncidentHistory(()),
    )
    assert found.findings.explanation is not None
    return found.findings.explanation


async def test_the_model_chooses_among_the_causes_by_what_was_observed_and_the_past_is_labelled_as_such() -> None:
    assert is_unsure(EVALUATION)
    before = [each.change.id for each in FOUND.hypotheses if each.change]
    assert set(before[:2]) == {"C-1", "C-2"}
    model = choosing(before[1])
    assert (await ranked(model, 0.95))[0] == before[1]
    request, _ = model.requests
    prompt = request.messages[-1].text
    assert prompt.index("They are over") < prompt.index("The moon was full") < prompt.index("Today's incident:")
    assert prompt.index("Today's incident:") < prompt.index("request failed") < prompt.index("Which of these causes")


@pytest.mark.parametrize("word", ["C-1", "C-2", NONE])
async def test_a_model_that_is_worth_nothing_changes_no_order(word: str) -> None:
    assert await ranked(choosing(word), 0.0) == [
        each.change.id if each.change else each.service for each in FOUND.hypotheses
    ]


async def test_a_doubtful_choice_overturns_no_cause_that_is_mostly_right_and_a_proven_one_does() -> None:
    leading, other, *_ = await ranked(choosing(NONE), 0.0)
    assert (await ranked(choosing(other), 0.5, first=0.85))[0] == leading
    assert (await ranked(choosing(other), 0.5, first=0.4))[0] == other
    assert (await ranked(choosing(other), 0.95, first=0.85))[0] == other


@pytest.mark.parametrize("place", "AC")
async def test_a_choice_by_the_place_in_the_list_overturns_no_cause(place: str) -> None:
    leading, *_ = await ranked(choosing(NONE), 0.0)
    assert len(FOUND.hypotheses) == 3
    assert (await ranked(choosing(f"{place}: "), 0.95))[0] == leading


async def test_no_choice_makes_a_badge_stronger_than_the_evidence_does() -> None:
    assert EVALUATION is not None
    for word in ("C-1", "C-2", NONE):
        found = await ranked_by_model(FOUND.hypotheses, SEEN, choosing(word), ModelRequest(()), 1.0, EVALUATION.rce)
        assert evaluate_ranking(found, EVALUATION, survey(SEEN), SEEN).rce <= EVALUATION.rce


@pytest.mark.parametrize("seed", range(5))
async def test_random_weights_fail_the_exam_and_what_is_shown_is_the_same_as_without(seed: int) -> None:
    chance = random.Random(seed)

    def anything(_: ModelRequest, names: Sequence[str]) -> dict[str, float]:
        return {name: chance.random() ** 8 for name in names}

    model = ScriptedModel(odds=anything)
    shown = await explained(FakePredictionStore(), model, right=3)
    assert shown == await explained(FakePredictionStore(), None)
    assert model.requests == []


async def test_a_model_that_never_answers_changes_nothing_but_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(ScriptedModel):
        async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
            await asyncio.Event().wait()
            return {}

        async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
            raise AssertionError("It is asked to choose.")

    monkeypatch.setattr("handlers.incidents.investigate_with_model.DEADLINE", 0.05)
    store = FakePredictionStore()
    assert await explained(store, Hanging()) == await explained(FakePredictionStore(), None)
    assert {each.engine for each in store.predictions.values()} == {"evidence"}


@pytest.mark.parametrize(("model", "evidence", "led"), [(0.9, 0.6, "scripted"), (0.3, 0.6, "evidence")])
async def test_people_s_verdicts_decide_whose_ranking_is_shown(model: float, evidence: float, led: str) -> None:
    store = FakePredictionStore()
    store.calibrators[Estimator(PredictionKind.CAUSE, "evidence", VERSION)] = calibrator(evidence, evidence)
    store.calibrators[Estimator(PredictionKind.CAUSE, "scripted", RANKING_VERSION)] = calibrator(model, model)
    assert (await explained(store, choosing("C-2"))).engine == led
