"""A reaction is the judgement of the one claim that its message makes, for as long as it stands there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from core.confidence.prediction import Evaluation, Outcome, Prediction, PredictionKind
from core.conversation import MessageReference, Person, Place, Platform
from core.feedback import Reaction
from core.messages import AnswerMessage, CorrectionRequest, IncidentDetails, IncidentMessage, Message, Notice, OwnerPing
from handlers.post_message import Poster
from handlers.record_feedback import record_feedback
from handlers.record_reaction import record_reaction
from tests.fakes import messages
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.store import InMemoryStore

THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
ADA = Person(Platform.SLACK, "U1")
CLAIMS = {"answer-1": PredictionKind.ANSWER, "owner-1": PredictionKind.OWNER, "cause-1": PredictionKind.CAUSE}


@pytest.fixture
def chat() -> RecordingMessenger:
    return RecordingMessenger()


@pytest.fixture
async def store() -> InMemoryStore:
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
) -> None:
    # A platform may not say in which thread the message stands.
    message = MessageReference(Place(Platform.SLACK, reference.place.channel), reference.message_id)
    reaction = Reaction(f"r{seconds}", message, approves, ADA, NOW + timedelta(seconds=seconds), taken_back)
    await record_reaction(reaction, store=store, judge=partial(record_feedback, store=store, poster=poster))


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


async def test_what_is_taken_back_is_no_label_any_more(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster)
    await reacted(reference, store, poster, taken_back=True, seconds=1)
    assert labels(store) == []


async def test_what_the_person_has_said_since_stays(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("post", THREAD, AnswerMessage(messages.answer()))
    await reacted(reference, store, poster)
    await reacted(reference, store, poster, approves=False, seconds=1)
    await reacted(reference, store, poster, taken_back=True, seconds=2)
    assert [label.correct for label in labels(store)] == [False]


@pytest.mark.parametrize(
    "message",
    [IncidentMessage(messages.explained_incident()), Notice("hello"), AnswerMessage(messages.abstention())],
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
    draft = AnswerMessage(messages.answer(prediction_id=None), draft_for=ADA)
    reference = await poster.post_or_edit("post", THREAD, draft, "draft")
    await reacted(reference, store, poster)
    assert labels(store) == []
    await poster.post_or_edit("post", THREAD, AnswerMessage(messages.answer()), "answer")
    await reacted(reference, store, poster, seconds=1)
    assert [label.prediction_id for label in labels(store)] == ["answer-1"]
