from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.knowledge.redactor import Redact, without_redaction
from core.model.alert import Severity
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import PUBLIC, Audience, Person, Place, Platform
from core.model.document import Document
from core.model.findings import PastIncident
from core.model.message_view import Feedback
from core.model.messages import BadgeMessage, ButtonAction
from core.triage.owner_model import IncidentHistory
from handlers.common.post_message import Poster
from handlers.feedback.record_feedback import explain_badge
from handlers.knowledge.ingest_knowledge import ingest_knowledge
from tests.fakes.calibrators import calibrator
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ANSWER = Prediction(
    "p1",
    PredictionKind.ANSWER,
    "q1",
    "Run slip rollback.",
    Evaluation(0.8, 0.7),
    "evidence",
    "1",
    NOW,
    calibrator_version="v1",
    probability=0.72,
    references=("handbook/canary", "handbook/vault", "handbook/gone"),
)
OWNER = replace(
    ANSWER, id="p2", kind=PredictionKind.OWNER, value="payments", references=("INC-1", "INC-2"), probability=None,
    calibrator_version=None,
)  # fmt: skip
HISTORY = IncidentHistory(
    [
        PastIncident("INC-1", "till is slow", "", "till", Severity.WARNING, NOW, "payments", url="https://x.example/1"),
        PastIncident(
            "INC-2", "a secret one", "", "till", Severity.WARNING, NOW, "x", readers=frozenset({"channel:vault"})
        ),
    ]
)


class Handbook:
    name = "handbook"

    async def documents(self):
        yield Document("handbook/canary", "handbook", "h", "Canaries", "Roll back.", url="https://x.example/canary")
        yield Document("handbook/vault", "handbook", "h", "Keys", "A safe.", readers=frozenset({"channel:vault"}))


@pytest.fixture
async def index() -> FakePassageIndex:
    index = FakePassageIndex()
    await ingest_knowledge([Handbook()], index, FakeEncoderStore(), None)
    return index


@pytest.fixture
async def store() -> InMemoryStore:
    store = InMemoryStore()
    for prediction in (ANSWER, OWNER):
        await store.predictions.add(prediction)
    await store.predictions.adopt(ANSWER.estimator, calibrator(0.2, 0.72))
    return store


async def explained(
    subject: str,
    store: InMemoryStore,
    index: FakePassageIndex,
    chat: RecordingMessenger,
    *readers: str,
    redact: Redact = without_redaction,
) -> None:
    audience = Audience(frozenset({PUBLIC, *readers}))
    press = Feedback(
        "f", ButtonAction.WHY_ANSWER, subject, Person(Platform.SLACK, "U1"), THREAD, NOW, audience=audience
    )
    poster = Poster(store, {Platform.SLACK: chat})
    await explain_badge(
        press, some_ports(store=store, index=index, history_for=HISTORY.readable_by, poster=poster, redact=redact)
    )


def label(store: InMemoryStore, probability: float, correct: bool) -> None:
    number = len(store.predictions.by_id)
    store.predictions.by_id[f"o{number}"] = replace(ANSWER, id=f"o{number}", probability=probability)
    store.predictions.outcomes[f"o{number}", "ada"] = Outcome(f"o{number}", correct, "ada", NOW)


def told(chat: RecordingMessenger) -> BadgeMessage:
    (message,) = chat.standing.values()
    assert isinstance(message, BadgeMessage)
    return message


async def test_the_badge_that_was_shown_is_explained_in_its_thread(
    store: InMemoryStore, index: FakePassageIndex
) -> None:
    chat = RecordingMessenger()
    for probability, correct in ((0.71, True), (0.79, False), (0.75, True), (0.95, False)):
        label(store, probability, correct)
    await store.predictions.adopt(ANSWER.estimator, calibrator(0.1, 0.5, version="later"))
    await explained("p1", store, index, chat)
    said = told(chat).explanation
    assert chat.posted[0][0] == THREAD
    assert (said.badge.probability, said.badge.outcomes) == (0.72, 40)
    assert "measured by evidence 1, calibrated by v1." in said.for_experts
    assert any("Of 3 answers that were shown at 70–80 %" in sentence for sentence in said.sentences)


async def test_references_that_the_audience_may_not_read_are_counted_and_not_named(
    store: InMemoryStore, index: FakePassageIndex
) -> None:
    chat = RecordingMessenger()
    await explained("p1", store, index, chat)
    said = told(chat).explanation
    assert [(each.title, each.url) for each in said.references] == [("Canaries", "https://x.example/canary")]
    assert said.hidden == 2
    await explained("p1", store, index, chat, "channel:vault")
    assert [each.title for each in told(chat).explanation.references] == ["Canaries", "Keys"]


async def test_an_owner_is_explained_by_past_incidents_and_without_a_calibrator_by_words(
    store: InMemoryStore, index: FakePassageIndex
) -> None:
    chat = RecordingMessenger()
    await explained("p2", store, index, chat)
    said = told(chat).explanation
    assert [each.title for each in said.references] == ["INC-1: till is slow"]
    assert (said.hidden, said.badge.probability) == (1, None)
    assert not any("%" in sentence for sentence in said.sentences)


async def test_asking_again_brings_the_explanation_up_to_date(store: InMemoryStore, index: FakePassageIndex) -> None:
    chat = RecordingMessenger()
    for _ in range(2):
        await explained("p1", store, index, chat)
    assert (len(chat.posted), len(chat.edited)) == (1, 0)
    label(store, 0.75, True)
    await explained("p1", store, index, chat)
    assert (len(chat.posted), len(chat.edited)) == (1, 1)


async def test_a_prediction_that_is_gone_is_not_explained(store: InMemoryStore, index: FakePassageIndex) -> None:
    chat = RecordingMessenger()
    await explained("p9", store, index, chat)
    assert chat.posted == []


async def test_a_past_incident_is_named_without_what_must_not_be_shown(
    store: InMemoryStore, index: FakePassageIndex
) -> None:
    def without_till(document: Document) -> Document:
        return replace(document, text=document.text.replace("till", "[secret]"))

    chat = RecordingMessenger()
    await explained("p2", store, index, chat, redact=without_till)
    assert [each.title for each in told(chat).explanation.references] == ["INC-1: [secret] is slow"]
