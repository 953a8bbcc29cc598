from __future__ import annotations

from datetime import timedelta

import pytest

from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Place, Platform
from core.model.messages import DriftAlarm
from handlers.common.post_message import Poster
from handlers.feedback.recalibrate import watch_calibration
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

OPERATORS = Place(Platform.SLACK, "C0OPS")
CLOCK = FakeClock()


def judged(store: InMemoryStore, probability: float | None, right: float, count: int = 60, version: str = "1") -> None:
    """`count` badges that said `probability`, of which the share `right` turned out right."""
    for number in range(count):
        made_at = CLOCK.now() + timedelta(seconds=number)
        prediction = Prediction(
            f"{version}:{number}", PredictionKind.OWNER, "i", "v", Evaluation(0.5, 0.5), "evidence", version, made_at,
            probability=probability,
        )  # fmt: skip
        store.predictions.by_id[prediction.id] = prediction
        correct = number < right * count
        store.predictions.outcomes[prediction.id, "ada"] = Outcome(prediction.id, correct, "ada", made_at)


async def watched(store: InMemoryStore, chat: RecordingMessenger, operators: Place | None = OPERATORS) -> None:
    poster = Poster(store, {Platform.SLACK: chat})
    await watch_calibration(some_ports(store=store, poster=poster, clock=CLOCK), operators=operators)


async def test_badges_that_promise_too_much_alarm_the_operators_once_a_night(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    judged(store, 0.9, right=0.5)
    for _ in range(2):
        await watched(store, chat)
    ((place, alarm),) = chat.posted
    assert place == OPERATORS
    assert isinstance(alarm, DriftAlarm)
    assert (len(alarm.shown), sum(alarm.correct)) == (60, 30)
    assert "promised 90 % on average and 50 % turned out right" in alarm.text


async def test_each_estimator_is_watched_on_its_own(store: InMemoryStore, chat: RecordingMessenger) -> None:
    judged(store, 0.9, right=0.9, version="honest")
    judged(store, 0.9, right=0.2, version="drifted")
    await watched(store, chat)
    assert [alarm.estimator.version for _, alarm in chat.posted if isinstance(alarm, DriftAlarm)] == ["drifted"]


@pytest.mark.parametrize(("probability", "right", "count"), [(0.5, 0.5, 60), (None, 0.1, 60), (0.9, 0.1, 20)])
async def test_honest_few_and_wordless_badges_alarm_nobody(
    store: InMemoryStore, chat: RecordingMessenger, probability: float | None, right: float, count: int
) -> None:
    judged(store, probability, right, count)
    await watched(store, chat)
    assert chat.posted == []


async def test_without_a_channel_for_operators_only_the_log_tells(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    judged(store, 0.9, right=0.5)
    await watched(store, chat, operators=None)
    assert chat.posted == []
