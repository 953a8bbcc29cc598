from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.secret_detector import SecretPatterns
from bot.work.inbox import QUESTION, TaskInbox
from core.knowledge.redactor import Redactor
from core.model.conversation import PUBLIC, Audience, MessageReference, Person, Place, Platform, Question
from core.model.incident import IncidentState
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from handlers.common.stored_incident import FEEDBACK_EVENT, stop_key
from handlers.questions.run_command import remark_of
from tests.fakes.store import InMemoryStore
from tests.samples import incident, with_fields

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.SLACK, "C0ASK", "17.25", "T0MARI")
PERSON = Person(Platform.SLACK, "U1", "Ada")
ASKED = Question("slack:C0ASK:17.25", "naïve ☃?", PERSON, PLACE, Audience(frozenset({PUBLIC, "channel:help"})), NOW)
PRESSED = Feedback("slack:press:1", ButtonAction.HELPFUL, "p1", PERSON, PLACE, NOW)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def test_a_question_is_recorded_as_it_was_asked_and_the_bell_is_rung(store: InMemoryStore) -> None:
    rung: list[None] = []
    await TaskInbox(store, lambda: rung.append(None)).ask(ASKED)
    (task,) = store.tasks.added.values()
    assert (task.key, task.workflow, task.subject) == (ASKED.id, "answer_question", ASKED.id)
    assert QUESTION.validate_python(task.payload) == ASKED
    assert len(rung) == 1


@pytest.mark.parametrize(
    "text",
    [
        "rca login failed, password: Otter-1234",
        "triage\n| User | Password |\n| --- | --- |\n| ops | Otter-1234 |",
        "RCA psql: postgres://ops:Otter-1234@db.example/x is refused",
        "why is my password: Otter-1234 refused?",
    ],
)
async def test_a_question_and_what_is_pasted_for_an_investigation_are_recorded_without_their_secrets(
    store: InMemoryStore, text: str
) -> None:
    await TaskInbox(store, lambda: None, redact=Redactor(SecretPatterns())).ask(replace(ASKED, text=text))
    (task,) = store.tasks.added.values()
    assert QUESTION.validate_python(task.payload).text == text.replace("Otter-1234", "[secret]")


async def test_a_press_of_stop_is_recorded_where_whoever_works_finds_it(store: InMemoryStore) -> None:
    await TaskInbox(store, lambda: None).press(replace(PRESSED, verdict=ButtonAction.STOP, subject=ASKED.key))
    async with store.transaction() as transaction:
        assert await transaction.tasks.is_known(stop_key(ASKED.key))


async def test_a_pressed_button_is_recorded_as_it_was_pressed(store: InMemoryStore) -> None:
    await TaskInbox(store, lambda: None).press(PRESSED)
    (task,) = store.tasks.added.values()
    assert (task.key, task.workflow, task.subject) == (PRESSED.id, "record_feedback", "p1")
    assert FEEDBACK_EVENT.validate_python(task.payload) == PRESSED


async def test_an_event_that_comes_twice_is_recorded_once(store: InMemoryStore) -> None:
    inbox = TaskInbox(store, lambda: None)
    for _ in range(2):
        await inbox.ask(ASKED)
        await inbox.press(PRESSED)
    assert len(store.tasks.added) == 2


async def test_an_edited_message_is_retracted_only_if_it_was_asked(store: InMemoryStore) -> None:
    inbox = TaskInbox(store, lambda: None)
    await inbox.retract(ASKED.id, PLACE, edited=True)
    assert store.tasks.added == {}
    await inbox.ask(ASKED)
    await inbox.retract(ASKED.id, PLACE, edited=True)
    assert set(store.tasks.added) == {ASKED.id, f"retract:{ASKED.id}"}


async def test_a_deletion_counts_although_the_question_comes_later(store: InMemoryStore) -> None:
    await TaskInbox(store, lambda: None).retract(ASKED.id, PLACE)
    assert set(store.tasks.added) == {f"retract:{ASKED.id}"}


@pytest.mark.parametrize(
    ("text", "fields", "kept"),
    [
        ("it is not the pool", {}, True),
        ("on it", {}, False),
        ("it is not the pool", {"message": None}, False),
        ("it is not the pool", {"state": IncidentState.RESOLVED}, False),
    ],
    ids=["bears on the cause", "chatter", "in another thread", "over already"],
)
async def test_of_what_people_say_only_what_bears_on_an_open_incident_is_kept(
    store: InMemoryStore, text: str, fields: dict[str, Any], *, kept: bool
) -> None:
    root = MessageReference(replace(PLACE, thread=None), "17.25")
    await store.incidents.save(with_fields(incident(message=root), **fields))

    async def name() -> str:
        return "Dana"

    await TaskInbox(store, lambda: None).overhear(replace(ASKED, text=text), name)
    assert bool(store.tasks.added) is kept
    for task in store.tasks.added.values():
        assert (task.workflow, task.subject) == ("recheck_incident", "incident-1")
        remark = remark_of(task.payload)
        assert (remark.asker.name, remark.text, remark.asked_at) == ("Dana", text, NOW)
