from __future__ import annotations

from datetime import UTC, datetime

import pytest

from core.model.conversation import Person, Place, Platform
from core.model.errors import ChatUnavailable
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, Notice
from handlers.common.post_message import Poster
from handlers.incidents.reassign_incident import TAKEN, TAKEN_OVER, take_incident
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0INC", "17.25")


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = explained_incident(id="i1", revision=1, taken_by="")
    return store


def press(name: str, verdict: ButtonAction = ButtonAction.TAKE_IT, subject: str = "i1") -> Feedback:
    return Feedback(f"{verdict} {name}", verdict, subject, Person(Platform.SLACK, "U1", name), THREAD, NOW)


async def pressed(feedback: Feedback, store: InMemoryStore, chat: RecordingMessenger) -> None:
    await take_incident(feedback, some_ports(store=store, poster=Poster(store, {Platform.SLACK: chat})))


@pytest.mark.parametrize(("name", "shown"), [("Ada", "Ada"), ("", "U1")])
async def test_whoever_takes_an_incident_is_named_on_it_and_it_is_shown(
    store: InMemoryStore, chat: RecordingMessenger, name: str, shown: str
) -> None:
    await pressed(press(name), store, chat)
    incident = store.incidents.by_id["i1"]
    assert (incident.taken_by, incident.revision) == (shown, 2)
    assert list(store.tasks.added) == ["present_incident:i1:2"]
    assert chat.posted == []


async def test_taking_an_incident_twice_is_taking_it_once(store: InMemoryStore, chat: RecordingMessenger) -> None:
    for verdict in (ButtonAction.TAKE_IT, ButtonAction.TAKE_IT, ButtonAction.TAKE_OVER):
        await pressed(press("Ada", verdict), store, chat)
    assert list(store.tasks.added) == ["present_incident:i1:2"]
    assert chat.posted == []


async def test_who_comes_second_is_told_who_has_it(store: InMemoryStore, chat: RecordingMessenger) -> None:
    for name in ("Ada", "Bo"):
        await pressed(press(name), store, chat)
    assert store.incidents.by_id["i1"].taken_by == "Ada"
    assert chat.posted == [(THREAD, Notice(TAKEN.format(person="Ada"), only_for=press("Bo").person))]


async def test_who_takes_it_over_on_purpose_has_it_and_it_is_said(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await pressed(press("Ada"), store, chat)
    await pressed(press("Bo", ButtonAction.TAKE_OVER), store, chat)
    assert store.incidents.by_id["i1"].taken_by == "Bo"
    assert chat.posted == [(THREAD, Notice(TAKEN_OVER.format(person="Bo", before="Ada")))]


@pytest.mark.parametrize("trouble", [Trouble.DOWN, Trouble.ANSWER_LOST])
async def test_it_is_said_from_whom_somebody_took_it_though_the_chat_failed_at_first(
    store: InMemoryStore, chat: RecordingMessenger, trouble: Trouble
) -> None:
    await pressed(press("Ada"), store, chat)
    chat.trouble.append(trouble)
    with pytest.raises(ChatUnavailable):
        await pressed(press("Bo", ButtonAction.TAKE_OVER), store, chat)
    await pressed(press("Bo", ButtonAction.TAKE_OVER), store, chat)
    assert store.incidents.by_id["i1"].taken_by == "Bo"
    assert chat.posted == [(THREAD, Notice(TAKEN_OVER.format(person="Bo", before="Ada")))]


async def test_taking_a_pasted_text_changes_nothing(store: InMemoryStore, chat: RecordingMessenger) -> None:
    await pressed(press("Ada", subject="i2"), store, chat)
    assert not store.tasks.added
