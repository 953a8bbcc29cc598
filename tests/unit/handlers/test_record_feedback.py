from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Person, Place, Platform
from core.model.message_view import Feedback
from core.model.messages import ADOPTING, CORRECT, FILING_ACTIONS, TAKING, WHY_ACTIONS, ButtonAction, Notice
from handlers.common.post_message import Poster
from handlers.feedback.record_feedback import record_feedback
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0INC", "17.25")
PREDICTION = Prediction("p1", PredictionKind.OWNER, "i1", "payments", Evaluation(0.5, 0.5), "evidence", "1", NOW)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.predictions.by_id["p1"] = PREDICTION
    store.incidents.by_id["i1"] = explained_incident(id="i1", revision=1, taken_by="")
    return store


def press(verdict: ButtonAction, subject: str = "p1", name: str = "Ada") -> Feedback:
    return Feedback(f"{verdict} {subject} {name}", verdict, subject, Person(Platform.SLACK, "U1", name), THREAD, NOW)


async def pressed(feedback: Feedback, store: InMemoryStore, chat: RecordingMessenger) -> None:
    await record_feedback(feedback, some_ports(store=store, poster=Poster(store, {Platform.SLACK: chat})))


@pytest.mark.parametrize("verdict", CORRECT)
async def test_a_judgement_becomes_a_label(
    store: InMemoryStore, chat: RecordingMessenger, verdict: ButtonAction
) -> None:
    await pressed(press(verdict), store, chat)
    assert list(store.predictions.outcomes.values()) == [Outcome("p1", CORRECT[verdict], "slack:U1", NOW)]
    assert chat.posted == []


def test_the_other_buttons_ask_for_something() -> None:
    asking = {
        *TAKING,
        ButtonAction.STOP,
        ButtonAction.ASK_A_PERSON,
        ButtonAction.CORRECTION,
        ButtonAction.CONFIRM,
    } | WHY_ACTIONS
    asking |= {
        ButtonAction.HAND_OVER,
        ButtonAction.REASSIGN,
        ButtonAction.NOT_OURS,
        ButtonAction.SEPARATE,
        ButtonAction.BELONGS,
        ButtonAction.JOIN,
    }
    asking |= {
        ButtonAction.JOIN_SUGGESTED,
        ButtonAction.DETAILS,
        *FILING_ACTIONS,
        ButtonAction.FILE,
        *ADOPTING,
        ButtonAction.SEND_UPDATE,
    }
    assert set(ButtonAction) - CORRECT.keys() == asking


async def test_a_judgement_of_what_nobody_claimed_is_ignored(store: InMemoryStore, chat: RecordingMessenger) -> None:
    await pressed(press(ButtonAction.HELPFUL, "p2"), store, chat)
    assert store.predictions.outcomes == {}


async def test_a_person_is_called_into_the_thread_once_however_many_ask(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    for name in ("Ada", "Bo"):
        await pressed(press(ButtonAction.ASK_A_PERSON, name=name), store, chat)
    text = "Ada would like a person to answer this. If you know the answer, please reply in this thread."
    assert chat.posted == [(THREAD, Notice(text))]


async def test_a_person_is_called_once_also_if_some_ask_before_there_is_an_answer(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    store.predictions.by_id["p2"] = replace(PREDICTION, id="p2", kind=PredictionKind.ANSWER, subject="q1")
    for subject in ("q1", "p2"):
        await pressed(press(ButtonAction.ASK_A_PERSON, subject), store, chat)
    assert len(chat.posted) == 1


async def test_somebody_without_a_name_can_ask_for_a_person(store: InMemoryStore, chat: RecordingMessenger) -> None:
    await pressed(press(ButtonAction.ASK_A_PERSON, name=""), store, chat)
    ((_, message),) = chat.posted
    assert isinstance(message, Notice)
    assert message.text.startswith("Somebody would like a person")
