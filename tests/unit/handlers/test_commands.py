"""`run_command`, `show_help` and `show_status`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import patch

import pytest

from core.incidents.incident_questions import CommandName
from core.model.alert import Posted
from core.model.conversation import (
    MAX_MESSAGE,
    PUBLIC,
    Audience,
    Channel,
    MessageReference,
    Person,
    Place,
    Platform,
    Question,
    Speaker,
    Turn,
    channel_audience,
    cut_message,
    with_outsiders,
)
from core.model.errors import ChatUnavailable
from core.model.incident import IncidentState
from core.model.messages import Notice
from core.ports import ChannelReader, Ingestion, SourceCursor
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.questions.run_command import COMMANDS, run_command
from handlers.questions.show_home import SHOWN_INCIDENTS, show_help, show_status
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.passage_index import FakePassageIndex
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, incident

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.SLACK, "C0ASK", "17.25")
VAULT = Place(Platform.SLACK, "C0VAULT")
# No word for them has to be known.
SAID_OTHERWISE = {CommandName.ASK, CommandName.THANKS, CommandName.RESOLUTION, CommandName.HELLO}
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("vault", {Platform.SLACK: VAULT.channel}, private=True),
)


def question(text: str, question_id: str = "q1") -> Question:
    return Question(question_id, text, Person(Platform.SLACK, "U1"), PLACE, Audience(), NOW)


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform.SLACK: chat})


def said(chat: RecordingMessenger) -> str:
    ((place, message),) = chat.posted
    assert place == PLACE
    assert isinstance(message, Notice)
    return message.text


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("ask how do I roll back?", CommandName.ASK, "how do I roll back?"),
        ("how do I roll back?", CommandName.ASK, "how do I roll back?"),
        ("status", CommandName.STATUS, ""),
        ("", CommandName.HELP, ""),
        ("rca pasted text", CommandName.RCA, "pasted text"),
    ],
)
async def test_a_command_gets_what_follows_its_name_as_its_question(
    text: str, name: CommandName, argument: str, poster: Poster, chat: RecordingMessenger
) -> None:
    heard: list[tuple[CommandName, Question]] = []

    def hear(command: CommandName) -> Callable[[Question, Ports], Awaitable[None]]:
        async def handler(asked: Question, _: Ports) -> None:
            heard.append((command, asked))

        return handler

    with patch.dict(COMMANDS, {each: hear(each) for each in CommandName}):
        await run_command(question(text), some_ports(poster=poster))
    assert heard == [(name, replace(question(text), text=argument))]
    assert chat.posted == []


async def test_whoever_sends_more_than_is_read_is_told(poster: Poster, chat: RecordingMessenger) -> None:
    async def hear(_asked: Question, _: Ports) -> None:
        """Answered."""

    with patch.dict(COMMANDS, dict.fromkeys(CommandName, hear)):
        await run_command(question("a" * MAX_MESSAGE), some_ports(poster=poster))
        assert chat.posted == []
        await run_command(question(cut_message("a" * MAX_MESSAGE + "b")), some_ports(poster=poster))
    assert "more than 30,000 characters. I read the first 10,000 and the last 20,000." in said(chat)


async def test_help_in_the_thread_of_an_incident_that_was_spoken_about_names_every_command(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    asked = question("help")
    async with store.transaction() as transaction:
        root = MessageReference(replace(asked.place, thread=None), asked.place.thread or "")
        await transaction.incidents.save(incident(message=root))
        await transaction.conversations.put("q1:answer", asked.place, Turn(Speaker.PLUMBLINE, "So."), asked.asked_at)
    await show_help(asked, some_ports(store=store, poster=poster))
    named = [name for name in CommandName if re.search(rf"(• |; ){name}\b", said(chat))]
    assert set(named) >= set(CommandName) - SAID_OTHERWISE


async def test_help_tells_only_what_can_be_done_where_it_is_asked(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await show_help(question("help"), some_ports(store=store, poster=poster))
    assert "root cause:" not in said(chat)
    assert "correct:" not in said(chat)
    assert "In the thread of an incident" in said(chat)


async def test_help_is_posted_once_for_one_question(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    for _ in range(2):
        await show_help(question("help"), some_ports(store=store, poster=poster))
    assert len(chat.posted) == 1


async def test_the_status_names_open_incidents_and_how_fresh_each_source_is(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id = {
        "i1": explained_incident(id="i1", title="The till is slow", started_at=NOW),
        "i2": explained_incident(id="i2", title="It is over", state=IncidentState.RESOLVED),
    }
    store.ingestions.by_source = {
        "handbook": Ingestion("handbook", NOW, 60),
        "wiki": Ingestion("wiki", NOW, 0, "The folder is gone."),
    }
    await store.cursors.save("chat", SourceCursor("page 3", 1500))
    await show_status(
        question("status"),
        some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster),
    )
    assert said(chat).splitlines() == [
        "1 open incident:",
        "• The till is slow (since 2026-03-14 09:30 UTC, Payments)",
        "0 passages indexed.",
        "• chat: first import, 1,500 documents so far",
        "• handbook: 60 documents, read 2026-03-14 09:30 UTC",
        "• wiki: 0 documents, read 2026-03-14 09:30 UTC, could not be read since",
    ]


async def test_the_status_stays_short_when_much_is_open(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id = {f"i{n}": explained_incident(id=f"i{n}", group_key=str(n)) for n in range(20)}
    await show_status(
        question("status"),
        some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster),
    )
    lines = said(chat).splitlines()
    assert lines[0] == "20 open incidents:"
    assert sum(line.startswith("•") for line in lines) == SHOWN_INCIDENTS + 1  # how many more there are


async def test_the_status_of_a_bot_that_has_just_begun_is_a_status(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await show_status(
        question("status"),
        some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster),
    )
    assert said(chat).splitlines() == ["No incident that I can show here is open.", "0 passages indexed."]


async def test_the_status_neither_names_nor_counts_what_happens_in_another_private_channel(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id = {"i1": explained_incident(id="i1", title="The vault is open", place=VAULT)}
    await show_status(
        question("status"),
        some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster),
    )
    assert said(chat).splitlines()[0] == "No incident that I can show here is open."


async def test_the_status_in_a_private_channel_names_what_happens_there(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id = {"i1": explained_incident(id="i1", title="The vault is open", place=VAULT)}
    asked = replace(question("status"), audience=channel_audience(VAULT, CHANNELS))
    await show_status(asked, some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster))
    assert "The vault is open" in said(chat)


async def test_the_status_tells_nothing_of_the_sources_where_outsiders_read_along(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id = {"i1": explained_incident(id="i1")}
    store.ingestions.by_source = {"handbook": Ingestion("handbook", NOW, 60)}
    asked = replace(question("status"), audience=with_outsiders(channel_audience(PLACE, CHANNELS)))
    await show_status(asked, some_ports(channels=CHANNELS, store=store, index=FakePassageIndex(), poster=poster))
    assert said(chat).splitlines() == ["No incident that I can show here is open."]


class FakeAlertChannel:
    def __init__(self, error: ChatUnavailable | None = None) -> None:
        self.error = error

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        assert place.thread is None
        if self.error is not None:
            raise self.error
        return 3, ()

    async def first(self, place: Place) -> Posted | None:
        raise NotImplementedError

    async def look(self, place: Place, since: datetime) -> bool:
        raise NotImplementedError


REFUSED = ChatUnavailable("The consent ChannelMessage.Read.Group is missing.")


UNREAD = "I cannot read what other bots post here"


@pytest.mark.parametrize(
    ("text", "channels", "reply", "is_on"),
    [
        ("adopt", {}, UNREAD, None),
        ("adopt on", {}, UNREAD, None),
        ("adopt", {Platform.SLACK: FakeAlertChannel(REFUSED)}, f"{UNREAD}: {REFUSED}", None),
        ("adopt on", {Platform.SLACK: FakeAlertChannel(REFUSED)}, f"{UNREAD}: {REFUSED}", None),
        ("adopt off", {}, "I leave them alone", False),
        ("adopt", {Platform.SLACK: FakeAlertChannel()}, "Say “adopt on”", None),
        ("adopt on", {Platform.SLACK: FakeAlertChannel()}, "I answer them in their threads", True),
    ],
)
async def test_somebody_who_wants_alerts_adopted_is_told_what_stands_against_it(
    text: str,
    channels: dict[Platform, ChannelReader],
    reply: str,
    is_on: bool | None,
    store: InMemoryStore,
    chat: RecordingMessenger,
) -> None:
    ports = some_ports(store=store, poster=Poster(store, {Platform.SLACK: chat}))
    ports = replace(ports, adoption=replace(ports.adoption, channels=channels))
    await run_command(replace(question(text), audience=Audience(frozenset({PUBLIC}))), ports)
    assert reply in said(chat)
    async with store.transaction() as transaction:
        settings = await transaction.channel_settings.get(PLACE)
    assert settings.adoption.is_on is is_on
