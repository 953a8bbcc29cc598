from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.model.conversation import PUBLIC, Audience, MessageReference, Person, Place, Platform, Question
from core.model.incident import Incident, IncidentState, Silenced
from core.model.messages import Notice
from core.model.silences import MUTE, silenced_now
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.arrange_incident import is_anything_open
from handlers.incidents.mute_alert import MUTED, NO_INCIDENT, NOT_MUTED, OUTSIDERS, OVER, mute_alert, tell_ended_mutes
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import START, alert, explained_incident

PLACE = Place(Platform.SLACK, "C0INC")
ROOT = MessageReference(PLACE, "1.0")
OPEN = Audience(frozenset({PUBLIC, "channel:incidents"}), frozenset({PUBLIC, "channel:incidents"}))
INCIDENT = replace(explained_incident(id="i1", message=ROOT), source="zabbix", group_key="disk", alerts=(alert(1),))
OTHER = replace(INCIDENT, group_key="memory")
UNTIL = START + timedelta(hours=2)


class Thread:
    def __init__(self) -> None:
        self.store, self.chat, self.clock, self.asked = InMemoryStore(), RecordingMessenger(), FakeClock(START), 0
        self.store.incidents.by_id["i1"] = INCIDENT

    @property
    def ports(self) -> Ports:
        poster = Poster(self.store, {Platform.SLACK: self.chat})
        return some_ports(store=self.store, poster=poster, clock=self.clock)

    async def says(self, text: str, audience: Audience = OPEN, place: Place = ROOT.thread) -> str:
        self.asked += 1
        person = Person(Platform.SLACK, "U0ADA", "Ada")
        question = Question(f"q{self.asked}", text, person, place, audience, self.clock.now())
        for _ in range(2):  # a step may run again
            await mute_alert(question, self.ports)
        return self.texts()[-1]

    def texts(self) -> list[str]:
        return [message.text for _, message in self.chat.posted if isinstance(message, Notice)]

    async def silenced(self, incident: Incident) -> Silenced | None:
        silences = await self.store.silences.not_over(self.clock.now())
        return silenced_now(incident, silences, (), self.clock.now())


@pytest.fixture
def thread() -> Thread:
    return Thread()


async def test_a_muted_alert_is_silenced_alone_until_the_mute_is_over_which_is_told_once(thread: Thread) -> None:
    thread.store.incidents.by_id["i1"] = replace(INCIDENT, state=IncidentState.RESOLVED)
    assert await thread.says("this alert for 2 h, known noise") == MUTED.format(until=UNTIL)
    assert await thread.silenced(INCIDENT) == Silenced(MUTE, "known noise", UNTIL, tuple(sorted(OPEN.readers)), "Ada")
    assert await thread.silenced(OTHER) is None
    await tell_ended_mutes(thread.ports)
    assert not await is_anything_open(store=thread.store, clock=thread.clock)
    thread.clock.advance(7200)
    assert await is_anything_open(store=thread.store, clock=thread.clock)
    for _ in range(2):
        await tell_ended_mutes(thread.ports)
    assert await thread.silenced(INCIDENT) is None
    assert thread.texts() == [MUTED.format(until=UNTIL), OVER]


async def test_a_mute_is_ended_early_by_anybody_in_the_thread(thread: Thread) -> None:
    assert await thread.says("") == NOT_MUTED
    await thread.says("2h")
    thread.clock.advance(60)
    assert await thread.says("") == OVER
    thread.clock.advance(60)
    await tell_ended_mutes(thread.ports)
    assert await thread.silenced(INCIDENT) is None
    assert thread.texts().count(OVER) == 1


async def test_nothing_is_muted_outside_a_thread_or_before_outsiders(thread: Thread) -> None:
    assert await thread.says("2h", place=PLACE) == NO_INCIDENT
    assert await thread.says("2h", replace(OPEN, readers=OPEN.readers - {PUBLIC})) == OUTSIDERS
    assert thread.store.silences.by_id == {}
