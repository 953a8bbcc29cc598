from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.confidence.calibrator import MIN_OUTCOMES, THRESHOLD_OUTCOMES
from core.model.badge import Estimator, Evaluation, Outcome, Prediction, PredictionKind
from handlers.feedback.recalibrate import NEW_LABELS, recalibrate, refit
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore

KIND = PredictionKind.OWNER
ESTIMATOR = Estimator(KIND, "e", "1")
CLOCK = FakeClock()
MISLEADING = calibrator(0.9, 0.9, outcomes=MIN_OUTCOMES)


def label(
    store: InMemoryStore, outcomes: list[tuple[float, bool]], kind: PredictionKind = KIND, engine: str = "e"
) -> None:
    """Add labelled predictions: their score, and whether they were right."""
    for score, correct in outcomes:
        number = len(store.predictions.by_id)
        made_at = CLOCK.now() + timedelta(seconds=number)
        prediction = Prediction(f"p{number}", kind, "s", "v", Evaluation(score, score), engine, "1", made_at)
        store.predictions.by_id[prediction.id] = prediction
        store.predictions.outcomes[prediction.id, "ada"] = Outcome(prediction.id, correct, "ada", made_at)


def informative(count: int) -> list[tuple[float, bool]]:
    """Strong evidence is right, weak evidence is wrong."""
    return [(0.9, True) if number % 2 else (0.1, False) for number in range(count)]


async def test_the_first_calibrator_is_fitted_when_there_are_enough_labels(store: InMemoryStore) -> None:
    label(store, informative(MIN_OUTCOMES - 1))
    assert await refit(ESTIMATOR, store=store, clock=CLOCK) is None
    label(store, informative(1))
    adopted = await refit(ESTIMATOR, store=store, clock=CLOCK)
    assert adopted is not None
    assert (adopted.outcomes, adopted.fitted_at) == (MIN_OUTCOMES, CLOCK.now())
    assert adopted.version == "owner:e:1:20260314T093000"
    assert await store.predictions.calibrator(ESTIMATOR) == adopted


async def test_a_better_fit_on_more_labels_replaces_the_one_in_use(store: InMemoryStore) -> None:
    await store.predictions.adopt(ESTIMATOR, MISLEADING)
    label(store, informative(60))
    adopted = await refit(ESTIMATOR, store=store, clock=CLOCK)
    assert adopted is not None
    assert adopted.probability(Evaluation(0.1, 0.1)) < 0.3


async def test_enough_labels_replace_the_curves_by_optimal_thresholds_that_were_asked_for(store: InMemoryStore) -> None:
    """Even if the curves are sharper on these labels: the two differ in kind."""
    await store.predictions.adopt(ESTIMATOR, calibrator(0.0, 1.0, outcomes=THRESHOLD_OUTCOMES - 1))
    label(store, informative(THRESHOLD_OUTCOMES))
    adopted = await refit(ESTIMATOR, store=store, clock=CLOCK, by_thresholds=True)
    assert adopted is not None
    assert [adopted.probability(Evaluation(score, score)) for score in (0.1, 0.9)] == pytest.approx([0.05, 0.95])
    assert len(adopted.steps) == 1


async def test_a_fit_that_is_no_better_on_labels_it_has_not_seen_is_not_adopted(store: InMemoryStore) -> None:
    good = calibrator(0.0, 1.0, outcomes=MIN_OUTCOMES)
    await store.predictions.adopt(ESTIMATOR, good)
    label(store, informative(60))
    assert await refit(ESTIMATOR, store=store, clock=CLOCK) is None
    assert await store.predictions.calibrator(ESTIMATOR) == good


async def test_without_new_labels_nothing_is_refitted(store: InMemoryStore) -> None:
    label(store, informative(60))
    await store.predictions.adopt(ESTIMATOR, replace(MISLEADING, fitted_at=CLOCK.now() + timedelta(days=1)))
    assert await refit(ESTIMATOR, store=store, clock=CLOCK) is None


async def test_too_few_new_labels_change_nothing(store: InMemoryStore) -> None:
    label(store, informative(60))
    sixty_labels_ago = CLOCK.now() + timedelta(seconds=60 - NEW_LABELS)
    await store.predictions.adopt(ESTIMATOR, replace(MISLEADING, fitted_at=sixty_labels_ago))
    assert await refit(ESTIMATOR, store=store, clock=CLOCK) is None


async def test_labels_of_another_version_of_the_estimator_are_not_pooled(store: InMemoryStore) -> None:
    label(store, informative(MIN_OUTCOMES))
    assert await refit(replace(ESTIMATOR, version="2"), store=store, clock=CLOCK) is None


async def test_every_kind_and_engine_learns_from_its_own_labels(store: InMemoryStore) -> None:
    label(store, informative(40), PredictionKind.ANSWER, "evidence")
    label(store, [(0.5, True)] * 40, PredictionKind.ANSWER, "model")
    label(store, informative(5), PredictionKind.CAUSE, "evidence")
    await recalibrate(store=store, clock=CLOCK)
    fitted = {(estimator.kind, estimator.engine): adopted for estimator, adopted in store.predictions.adopted}
    assert fitted.keys() == {(PredictionKind.ANSWER, "evidence"), (PredictionKind.ANSWER, "model")}
    weak = Evaluation(0.1, 0.1)
    assert fitted[PredictionKind.ANSWER, "evidence"].probability(weak) < 0.3
    assert fitted[PredictionKind.ANSWER, "model"].probability(weak) > 0.7
