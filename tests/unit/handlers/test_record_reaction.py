"""A reaction is the judgement of the one claim that its message makes, for as long as it stands there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind, RecordedFailure
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.message_view import Feedback, Reaction
from core.model.messages import (
    AnswerMessage,
    ButtonAction,
    CorrectionRequest,
    IncidentDetails,
    IncidentMessage,
    Message,
    Notice,
    OwnerPing,
)
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.feedback.record_feedback import record_feedback, record_reaction
from tests import samples as messages
from tests.cases import every_case
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
ADA = Person(Platform.SLACK, "U1")
CLAIMS = {"answer-1": PredictionKind.ANSWER, "owner-1": PredictionKind.OWNER, "cause-1": PredictionKind.CAUSE}


@pytest.fixture
async def store() -> InMemoryStore:
    return await store_with_claims()


async def store_with_claims() -> InMemoryStore:
    store = InMemoryStore()
    async with store.transaction() as transaction:
        for id_, kind in CLAIMS.items():
            claim = Prediction(id_, kind, "q1", "x", Evaluation(0.5, 0.5), "evidence", "v1", NOW)
            await transaction.predictions.add(claim)
    return store


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform.SLACK: chat})


async def reacted(
    reference: MessageReference,
    store: InMemoryStore,
    poster: Poster,
    *,
    approves: bool = True,
    taken_back: bool = False,
    seconds: int = 0,
    comment: str = "",
) -> None:
    # A platform may not say in which thread the message stands.
    message = MessageReference(Place(Platform.SLACK, reference.place.channel), reference.message_id)
    reaction = Reaction(f"r{seconds}", message, approves, ADA, NOW + timedelta(seconds=seconds), taken_back, comment)
    await record_reaction(reaction, some_ports(store=store, poster=poster))


def labels(store: InMemoryStore) -> list[Outcome]:
    return list(store.predictions.outcomes.values())


@pytest.mark.parametrize("approves", [True, False])
@pytest.mark.parametrize(
    ("message", "claim"),
    [
        (AnswerMessage(messages.answer()), "answer-1"),
        (IncidentDetails(messages.explained_incident()), "cause-1"),
        (OwnerPing("Payments", "", messages.CALIBRATED, "owner-1"), "owner-1"),
    ],
)
async def test_it_labels_the_claim(
    store: InMemoryStore, poster: Poster, message: Message, claim: str, approves: bool
) -> None:
    reference = await poster.post_once("post", THREAD, message)
    await reacted(reference, store, poster, approves=approves)
    assert labels(store) == [Outcome(claim, approves, "slack:U1", NOW)]


async def test_whoever_disagrees_with_an_answer_is_asked_what_is_right(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster, approves=False)
    assert chat.posted[-1] == (THREAD, CorrectionRequest("answer-1"))


async def test_what_was_typed_with_a_thumb_is_kept_with_the_label(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster, approves=False, comment="The command is old.")
    assert [(label.correct, label.comment) for label in labels(store)] == [(False, "The command is old.")]


async def test_what_is_taken_back_is_no_label_any_more(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster)
    await reacted(reference, store, poster, taken_back=True, seconds=1)
    assert labels(store) == []


async def test_what_is_taken_back_while_it_is_judged_is_no_label_either(
    store: InMemoryStore, poster: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))

    async def slowly(feedback: Feedback, ports: Ports) -> None:
        for _ in range(100):  # turns of the loop, in which whoever is not kept waiting comes to his end
            await asyncio.sleep(0)
        await record_feedback(feedback, ports)

    monkeypatch.setattr("handlers.feedback.record_feedback.take_feedback", slowly)
    await asyncio.gather(
        reacted(reference, store, poster), reacted(reference, store, poster, taken_back=True, seconds=1)
    )
    assert labels(store) == []


async def test_what_the_person_has_said_since_stays(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster)
    await reacted(reference, store, poster, approves=False, seconds=1)
    await reacted(reference, store, poster, taken_back=True, seconds=2)
    assert [label.correct for label in labels(store)] == [False]


EVENTS = {  # approves, taken back, seconds
    "yes": (True, False, 1),
    "no": (False, False, 2),
    "no more no": (False, True, 3),
    "no more yes": (True, True, 4),
    "yes again": (True, False, 5),
}


@every_case(
    ("said", "left"),
    [
        (("yes", "no more yes"), []),
        (("yes", "no"), [False]),
        (("yes", "no", "no more no"), [True]),
        (("yes", "no", "no more no", "no more yes"), []),
        (("yes", "no more yes", "yes again"), [True]),
    ],
)
async def test_in_whatever_order_and_however_often_events_come_the_last_by_the_chats_clock_counts(
    said: tuple[str, ...], left: list[bool]
) -> None:
    for order in permutations((*said, said[0])):
        store = await store_with_claims()
        poster = Poster(store, {Platform.SLACK: RecordingMessenger()})
        reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
        for event in order:
            approves, taken_back, seconds = EVENTS[event]
            await reacted(reference, store, poster, approves=approves, taken_back=taken_back, seconds=seconds)
        assert [label.correct for label in labels(store)] == left, order


async def test_a_reaction_that_comes_late_changes_nothing_of_what_a_button_said_since(
    store: InMemoryStore, poster: Poster
) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    pressed = Feedback("f1", ButtonAction.HELPFUL, "answer-1", ADA, THREAD, NOW + timedelta(seconds=9))
    await record_feedback(pressed, some_ports(store=store, poster=poster))
    await reacted(reference, store, poster, approves=False, seconds=1)
    await reacted(reference, store, poster, approves=True, taken_back=True, seconds=2)
    assert labels(store) == [Outcome("answer-1", True, "slack:U1", pressed.at)]


async def test_what_a_reaction_confirmed_of_a_failed_build_goes_when_it_is_taken_back(
    store: InMemoryStore, poster: Poster
) -> None:
    reference = await poster.post_once("post", THREAD, IncidentDetails(messages.explained_incident()))
    store.build_failures.by_id["cause-1"] = RecordedFailure("cause-1", "shop", "a\nb", 0, 1, NOW)
    await reacted(reference, store, poster)
    assert store.build_failures.by_id["cause-1"].confirmed_by == "slack:U1"
    await reacted(reference, store, poster, taken_back=True, seconds=1)
    assert store.build_failures.by_id["cause-1"].confirmed_by == ""


@pytest.mark.parametrize(
    "message",
    [
        IncidentMessage(messages.explained_incident()),
        messages.SAMPLES["question to two teams"],
        Notice("hello"),
        AnswerMessage(messages.abstention()),
    ],
)
async def test_a_message_that_makes_no_claim_or_several_is_not_judged(
    store: InMemoryStore, poster: Poster, message: Message
) -> None:
    await reacted(await poster.post_once("post", THREAD, message), store, poster)
    assert labels(store) == []


async def test_a_message_of_somebody_else_is_not_judged(store: InMemoryStore, poster: Poster) -> None:
    await reacted(MessageReference(THREAD, "another"), store, poster)
    assert labels(store) == []


async def test_the_claim_is_that_of_what_the_message_shows_now(store: InMemoryStore, poster: Poster) -> None:
    draft = AnswerMessage(messages.answer(prediction_id=None))
    reference = await poster.post_or_edit("post", THREAD, draft, "draft")
    await reacted(reference, store, poster)
    assert labels(store) == []
    await poster.post_or_edit("post", THREAD, AnswerMessage(messages.answer()), "answer")
    await reacted(reference, store, poster, seconds=1)
    assert [label.prediction_id for label in labels(store)] == ["answer-1"]
