"""What people do in a chat is recorded with what is done about it, and printed for an operator."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from adapters.clock import SystemClock
from adapters.store.store import SqlStore
from bot.commands.records import record_start, run_audit
from bot.config.settings import Settings
from bot.work.inbox import TaskInbox
from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.errors import MalformedInput, StoreUnavailable
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from core.model.team import Team
from handlers.common.post_message import Poster
from handlers.incidents.reassign_incident import reassign_incident
from tests.databases import database
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
ADA = Person(Platform.SLACK, "U1", "Ada")
THREAD = Place(Platform.SLACK, "C0ASK", "17.25")
ASKED = Question("slack:C0ASK:17.25", "our password is hunter2, why?", ADA, THREAD, Audience(), NOW)
PRESSED = Feedback("press-1", ButtonAction.WRONG, "prediction-1", ADA, THREAD, NOW, text="secret words")


def recorded(store: InMemoryStore) -> list[AuditEntry]:
    return [each.entry for each in store.audit.entries]


async def test_a_question_and_a_button_are_recorded_once_and_without_a_word_of_what_was_said() -> None:
    store = InMemoryStore()
    inbox = TaskInbox(store, lambda: None)
    for _ in range(2):
        await inbox.ask(ASKED)
        await inbox.press(PRESSED)
    asked, pressed = recorded(store)
    assert (asked.act, asked.actor, asked.subject, asked.detail) == (Act.ASKED, "slack:U1", ASKED.id, "ask")
    assert (pressed.act, pressed.subject, pressed.detail) == (Act.PRESSED, "prediction-1", "wrong")
    assert asked.place == pressed.place == "slack:C0ASK:17.25"
    assert "hunter2" not in str(recorded(store))
    assert "secret" not in str(recorded(store))


async def test_what_could_not_be_accepted_is_not_recorded_as_done() -> None:
    store = InMemoryStore(outages=1)
    with pytest.raises(StoreUnavailable):
        await TaskInbox(store, lambda: None).ask(ASKED)
    assert recorded(store) == []


async def test_a_reassignment_is_recorded_with_both_teams() -> None:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = explained_incident(id="i1", revision=1)
    press = replace(PRESSED, verdict=ButtonAction.REASSIGN, subject="i1", choice="bookings")
    await reassign_incident(
        press,
        some_ports(
            teams=(Team("payments", "Payments"), Team("bookings", "Bookings")),
            store=store,
            clock=FakeClock(),
            poster=Poster(store, {Platform.SLACK: RecordingMessenger()}),
        ),
    )
    (entry,) = recorded(store)
    assert (entry.act, entry.subject, entry.detail) == (Act.REASSIGNED, "i1", "payments → bookings")


async def test_the_start_is_recorded_with_the_digest_of_the_configuration(tmp_path: Path) -> None:
    config = tmp_path / "plumbline.yaml"
    config.write_bytes(b"name: x\n")
    store = InMemoryStore()
    await record_start(Settings.model_validate({"PLUMBLINE_CONFIG": config}), "replica", store=store, clock=FakeClock())
    (entry,) = recorded(store)
    assert (entry.act, entry.actor) == (Act.CONFIGURED, "plumbline")
    assert entry.subject == hashlib.sha256(config.read_bytes()).hexdigest()


def printed(settings: Settings, since: str, *, as_json: bool) -> list[str]:
    out = StringIO()
    asyncio.run(run_audit(settings, since, Console(file=out, width=40), as_json=as_json))
    return out.getvalue().splitlines()


async def kept(settings: Settings, *ages: timedelta) -> None:
    async with database(settings.database) as engine:
        for number, age in enumerate(ages):
            entry = audit_entry(
                f"k{number}",
                SystemClock().now() - age,
                Act.ANSWERED,
                ADA,
                f"q{number}",
                place=THREAD,
                documents=("handbook/a.md",),
            )
            async with SqlStore(engine).transaction() as transaction:
                await transaction.audit.add(entry)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"PLUMBLINE_DATA_DIR": tmp_path})


def test_an_operator_prints_what_happened_since_a_moment(settings: Settings) -> None:
    asyncio.run(kept(settings, timedelta(days=3), timedelta(hours=2), timedelta(minutes=1)))
    lines = printed(settings, "24h", as_json=False)
    assert [line.partition("slack:U1")[2] for line in lines] == [
        f"  answered  q{number}  in slack:C0ASK:17.25  from handbook/a.md" for number in (1, 2)
    ]
    assert len(printed(settings, "1w", as_json=False)) == 3


def test_a_program_reads_one_object_a_line(settings: Settings) -> None:
    asyncio.run(kept(settings, *[timedelta(seconds=1)] * 3))
    entries = [json.loads(line) for line in printed(settings, "24h", as_json=True)]
    assert [(entry["subject"], entry["act"]) for entry in entries] == [(f"q{n}", "answered") for n in range(3)]


def test_a_time_that_is_none_is_refused_in_a_sentence(settings: Settings) -> None:
    with pytest.raises(MalformedInput, match="Use 24h"):
        printed(settings, "yesterday", as_json=False)
