from __future__ import annotations

import pytest

from core.answering.certainty import VERSION as ANSWER_VERSION
from core.confidence.calibrator import badge_for
from core.model.badge import Badge, Estimator, Evaluation, Outcome, Prediction, PredictionKind, Strength
from core.rca.cause_candidates import VERSION as CAUSE_VERSION
from core.triage.negotiate import VERSION as OWNER_VERSION
from handlers.common.record_prediction import record_prediction, scale_of
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

CALIBRATOR = calibrator(0.2, 0.9, version="v7")
EVALUATION = Evaluation(0.8, 0.8)
ESTIMATOR = Estimator(PredictionKind.OWNER, "evidence", "owner-1")


async def recorded(
    store: InMemoryStore, engine: str = "evidence", value: str = "payments", evaluation: Evaluation = EVALUATION
) -> tuple[str, Badge]:
    return await record_prediction(
        PredictionKind.OWNER,
        "i1",
        value,
        evaluation,
        some_ports(store=store, clock=FakeClock()),
        engine=engine,
        estimator_version="owner-1",
    )


async def test_a_claim_is_stored_with_all_that_its_badge_is_made_from(store: InMemoryStore) -> None:
    await store.predictions.adopt(ESTIMATOR, CALIBRATOR)
    prediction_id, badge = await recorded(store)
    assert (badge.probability, badge.outcomes) == (0.9, 40)
    assert store.predictions.by_id[prediction_id] == Prediction(
        id="owner:evidence:i1",
        kind=PredictionKind.OWNER,
        subject="i1",
        value="payments",
        evaluation=Evaluation(0.8, 0.8),
        engine="evidence",
        estimator_version="owner-1",
        made_at=FakeClock().now(),
        calibrator_version="v7",
        probability=0.9,
    )


async def test_without_a_calibrator_the_badge_says_how_many_outcomes_there_are(store: InMemoryStore) -> None:
    prediction_id, _ = await recorded(store)
    store.predictions.outcomes["x", "y"] = Outcome(prediction_id, True, "y", FakeClock().now())
    _, badge = await recorded(store)
    assert badge == Badge(Strength.MODERATE, outcomes=1)


async def test_each_engine_is_calibrated_on_its_own(store: InMemoryStore) -> None:
    await store.predictions.adopt(ESTIMATOR, CALIBRATOR)
    _, badge = await recorded(store, engine="model")
    assert badge.probability is None


async def test_a_step_that_runs_twice_makes_one_prediction(store: InMemoryStore) -> None:
    first = await recorded(store)
    again = await recorded(store, evaluation=Evaluation(0.1, 0.1))
    assert first == again
    assert [prediction.evaluation for prediction in store.predictions.by_id.values()] == [EVALUATION]


async def test_another_claim_is_another_prediction_so_that_a_label_is_about_what_was_shown(
    store: InMemoryStore,
) -> None:
    ids = [(await recorded(store, value=value))[0] for value in ("payments", "another", "another", "payments")]
    assert ids[0] == ids[3] != ids[1] == ids[2]
    assert [store.predictions.by_id[each].value for each in ids[:2]] == ["payments", "another"]


@pytest.mark.parametrize(
    ("kind", "version", "weak", "even", "clear"),
    [
        (PredictionKind.ANSWER, ANSWER_VERSION, "", "", ""),
        (PredictionKind.OWNER, OWNER_VERSION, "unsure", "", ""),
        (PredictionKind.CAUSE, CAUSE_VERSION, "unsure", "", "strong"),
    ],
)
def test_only_a_cause_is_called_strong_and_an_answer_has_no_word(
    kind: PredictionKind, version: str, weak: str, even: str, clear: str
) -> None:
    scale = scale_of(Estimator(kind, "evidence", version))
    said = [badge_for(Evaluation(score, score), None, scale=scale).text for score in (0.1, 0.55, 0.95)]
    assert said == [weak, even, clear]
