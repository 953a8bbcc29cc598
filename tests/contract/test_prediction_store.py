"""The contract of PredictionStore, over the fake and every database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.model.badge import Estimator, Outcome, PredictionKind
from core.ports import Store
from tests.contract.records import MANY, NOW, prediction
from tests.fakes.calibrators import calibrator

ESTIMATOR = Estimator(PredictionKind.OWNER, "evidence", "1")


def label(prediction_id: str = "p1", *, correct: bool = True, by: str = "slack:U1", minute: int = 0) -> Outcome:
    return Outcome(prediction_id, correct, by, NOW + timedelta(minutes=minute), "because")


async def test_a_prediction_is_stored_once(store: Store) -> None:
    first = prediction(probability=0.8, calibrator_version="v1")
    async with store.transaction() as transaction:
        await transaction.predictions.add(first)
        await transaction.predictions.add(prediction(value="another"))
        assert await transaction.predictions.get("p1") == first
        assert await transaction.predictions.get("p2") is None


async def test_the_later_label_of_one_person_replaces_the_earlier(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=True))
        await transaction.predictions.label(label(correct=False, minute=1))
        assert await transaction.predictions.labelled(ESTIMATOR) == [(prediction(), label(correct=False, minute=1))]


async def test_a_label_that_comes_late_does_not_replace_what_the_person_said_since(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=False, minute=1))
        await transaction.predictions.label(label(correct=True))
        assert await transaction.predictions.labels_of("p1") == [label(correct=False, minute=1)]


async def test_a_reaction_is_what_its_last_event_says_whatever_comes_last(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())

        async def react(minute: int, *, taken_back: bool = False, approves: bool = True, by: str = "slack:U1") -> bool:
            at = NOW + timedelta(minutes=minute)
            return await transaction.predictions.react("p1", by, approves=approves, at=at, taken_back=taken_back)

        assert await react(2, taken_back=True)
        assert not await react(1)
        assert await transaction.predictions.reactions("p1", "slack:U1") == {}
        assert await react(3)
        assert await react(3), "whoever tries again says nothing older"
        assert not await react(2, taken_back=True)
        assert await react(1, approves=False)
        standing = {True: NOW + timedelta(minutes=3), False: NOW + timedelta(minutes=1)}
        assert await transaction.predictions.reactions("p1", "slack:U1") == standing
        assert await transaction.predictions.reactions("p1", "slack:U2") == {}


async def test_what_was_judged_since_is_told_by_kind(store: Store) -> None:
    async with store.transaction() as transaction:
        for number, kind in enumerate((PredictionKind.OWNER, PredictionKind.OWNER, PredictionKind.CAUSE)):
            made = prediction(f"p{number}", kind=kind, subject=f"i{number}")
            await transaction.predictions.add(made)
            await transaction.predictions.label(label(made.id, minute=number))
        await transaction.predictions.label(label("p1", by="slack:U2", minute=5))
        judged_since = transaction.predictions.judged_since
        assert await judged_since(PredictionKind.OWNER, NOW) == ["i0", "i1"]
        assert await judged_since(PredictionKind.OWNER, NOW + timedelta(minutes=1)) == ["i1"]
        assert await judged_since(PredictionKind.OWNER, NOW + timedelta(minutes=6)) == []


async def test_of_two_persons_labels_the_latest_counts_and_one_prediction_counts_once(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=False, by="slack:U2", minute=5))
        await transaction.predictions.label(label(correct=True, by="slack:U1", minute=3))
        latest = label(correct=False, by="slack:U2", minute=5)
        assert await transaction.predictions.labelled(ESTIMATOR) == [(prediction(), latest)]
        assert await transaction.predictions.recent(PredictionKind.OWNER, MANY) == [(prediction(), latest)]
        assert await transaction.predictions.verdicts(ESTIMATOR, MANY) == [(None, False)]


async def test_every_persons_label_on_a_prediction_is_kept_oldest_first(store: Store) -> None:
    async with store.transaction() as transaction:
        for number in (1, 2):
            await transaction.predictions.add(prediction(f"p{number}"))
        await transaction.predictions.label(label(by="note", minute=2))
        await transaction.predictions.label(label(by="slack:U1", minute=1, correct=False))
        await transaction.predictions.label(label("p2"))
        labels = await transaction.predictions.labels_of("p1")
        assert [(each.labelled_by, each.correct) for each in labels] == [("slack:U1", False), ("note", True)]
        assert await transaction.predictions.labels_of("p3") == []


async def test_labels_are_those_of_one_kind_and_engine_oldest_prediction_first(store: Store) -> None:
    mine = [prediction("p2", minute=1), prediction("p1", minute=2)]
    others = [prediction("p3", kind=PredictionKind.CAUSE), prediction("p4", engine="model")]
    async with store.transaction() as transaction:
        for each in (*mine[::-1], *others):
            await transaction.predictions.add(each)
            await transaction.predictions.label(label(each.id))
        await transaction.predictions.add(prediction("unlabelled"))
        labelled = await transaction.predictions.labelled(ESTIMATOR)
        assert [each for each, _ in labelled] == mine
        assert len(await transaction.predictions.verdicts(ESTIMATOR, MANY)) == 2
        assert await transaction.predictions.estimators() == sorted({each.estimator for each in (*mine, *others)})


async def test_verdicts_are_the_latest_of_one_estimator_oldest_first_without_those_taken_back(store: Store) -> None:
    shown = (None, 0.25, 0.5, 0.75)
    async with store.transaction() as transaction:
        for minute, probability in enumerate(shown):
            await transaction.predictions.add(prediction(f"p{minute}", minute, probability=probability))
            await transaction.predictions.label(label(f"p{minute}", correct=minute % 2 == 0))
        await transaction.predictions.add(prediction("other", engine="model"))
        await transaction.predictions.label(label("other"))
        await transaction.predictions.add(prediction("unlabelled", 9))
        all_of_them = [(probability, minute % 2 == 0) for minute, probability in enumerate(shown)]
        assert await transaction.predictions.verdicts(ESTIMATOR, MANY) == all_of_them
        assert await transaction.predictions.verdicts(ESTIMATOR, 2) == all_of_them[-2:]
        await transaction.predictions.unlabel("p0", "slack:U1")
        assert await transaction.predictions.verdicts(ESTIMATOR, MANY) == all_of_them[1:]
        assert await transaction.predictions.verdicts(Estimator(PredictionKind.CAUSE, "evidence", "1"), MANY) == []


async def test_recent_predictions_come_newest_first_with_their_label_or_none(store: Store) -> None:
    made = [prediction(f"p{minute}", minute) for minute in range(3)]
    async with store.transaction() as transaction:
        for each in made:
            await transaction.predictions.add(each)
        await transaction.predictions.label(label("p1"))
        recent = await transaction.predictions.recent(PredictionKind.OWNER, 2)
    assert recent == [(made[2], None), (made[1], label("p1"))]


async def test_the_calibrator_in_use_is_the_one_adopted_last(store: Store) -> None:
    first, second = calibrator(0.25, 0.75), calibrator(0.1, 0.9, outcomes=80, version="v2")
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(ESTIMATOR) is None
        for each in (first, second):
            await transaction.predictions.adopt(ESTIMATOR, each)
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(ESTIMATOR) == second
        for other in (
            replace(ESTIMATOR, engine="model"),
            replace(ESTIMATOR, kind=PredictionKind.CAUSE),
            replace(ESTIMATOR, version="other"),
        ):
            assert await transaction.predictions.calibrator(other) is None
        assert await transaction.predictions.calibrator_version(first.version) == first
        assert await transaction.predictions.calibrator_version("unknown") is None
