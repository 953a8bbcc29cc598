from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from core.model.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.model.errors import ChatUnavailable
from core.model.messages import Notice
from handlers.common.post_message import Poster
from handlers.incidents.post_handover import NO_WINDOWS, NONE_OPEN, OUTSIDERS, declare_maintenance, open_windows
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import START

PLACE = Place(Platform.SLACK, "C0INC")
OPEN = Audience(frozenset({PUBLIC, "channel:incidents"}), frozenset({PUBLIC, "channel:incidents"}))
SECRET = Audience(frozenset({PUBLIC, "channel:secret"}), frozenset({"channel:secret"}))
ADA = Person(Platform.SLACK, "U0ADA", "Ada")
SERVICES = frozenset({"till", "shelf"})


class Channel:
    def __init__(self) -> None:
        self.store = InMemoryStore()
        self.chat = RecordingMessenger()
        self.clock = FakeClock(START)
        self.asked = 0

    async def says(self, text: str, audience: Audience = OPEN) -> str:
        self.asked += 1
        question = Question(f"q{self.asked}", text, ADA, PLACE, audience, self.clock.now())
        poster = Poster(self.store, {Platform.SLACK: self.chat})
        self.chat.trouble.append(Trouble.DOWN)
        for _ in range(3):  # a step may run again, before and after its post
            with suppress(ChatUnavailable):
                await declare_maintenance(
                    question,
                    some_ports(
                        dependencies=dict.fromkeys(SERVICES, ()), store=self.store, clock=self.clock, poster=poster
                    ),
                )
            self.clock.advance(1)
        (_, message) = self.chat.posted[-1]
        assert isinstance(message, Notice)
        assert len(self.chat.posted) == self.asked
        return message.text


@pytest.fixture
def channel() -> Channel:
    return Channel()


async def test_a_window_is_declared_told_and_over_in_time(channel: Channel) -> None:
    assert "nothing about till until" in await channel.says("till 2h new ledger")
    assert len(channel.store.silences.by_id) == 1
    listed = await channel.says("")
    assert "service till, until" in listed
    assert "declared by Ada: new ledger" in listed
    channel.clock.advance(7200)
    assert await channel.says("") == NO_WINDOWS


async def test_a_window_can_be_ended_early_and_by_somebody_else(channel: Channel) -> None:
    await channel.says("till 2h")
    assert "shelf has no open maintenance window" in await channel.says("end shelf")
    assert "is over" in await channel.says("end till")
    assert await channel.says("") == NO_WINDOWS


async def test_a_service_that_nobody_knows_is_not_silenced(channel: Channel) -> None:
    assert await channel.says("tills 2h") == "I don’t know a service called tills. Known services: shelf, till."
    assert channel.store.silences.by_id == {}


async def test_where_outsiders_read_nothing_is_declared_or_told(channel: Channel) -> None:
    await channel.says("till 2h")
    outside = replace(OPEN, readers=OPEN.readers - {PUBLIC})
    for text in ("shelf 2h", "", "end till"):
        assert await channel.says(text, outside) == OUTSIDERS
    assert len(channel.store.silences.by_id) == 1


async def test_what_was_declared_in_private_is_told_there_alone(channel: Channel) -> None:
    await channel.says("till 2h secret ledger", SECRET)
    assert await channel.says("") == NO_WINDOWS
    assert "secret ledger" in await channel.says("", SECRET)
    assert await open_windows(OPEN, some_ports(store=channel.store, clock=channel.clock)) == []


async def test_what_was_declared_in_private_is_ended_there_alone(channel: Channel) -> None:
    await channel.says("till 2h secret ledger", SECRET)
    assert await channel.says("end till") == NONE_OPEN.format(service="till")
    assert "secret ledger" in await channel.says("", SECRET)
    assert "is over" in await channel.says("end till", SECRET)
