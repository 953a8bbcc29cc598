"""Small worlds of channels, guests, people, incidents and documents, in which every text carries a word of its own.

A world knows for each word who may read it, from who is in which channel and not from the code under test. Whatever is
said or shown in a world is checked at once, as every chat, the local page and a terminal draw it: nobody who reads there
may read a word that is not for them. A prompt of the language model is checked like what it answers: it may hold only
words that everybody may read who is shown the reply.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import time, timedelta
from io import StringIO
from typing import Any, cast

from pydantic import TypeAdapter
from rich.console import Console

from adapters import agents, terminal
from adapters.console.console import Renderer
from adapters.console.messages import ConsoleMessage, decode, encode
from adapters.slack import render as slack
from adapters.teams import render as teams
from bot.wiring.catalogues import GrowingHistory
from bot.wiring.ports import agent_caller
from core.answering.lookup import Fact, Lookup
from core.answering.model_exam import FULL, Marks
from core.knowledge.retriever import RankedPassage
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.audit import Act, audit_entry
from core.model.conversation import (
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
    kept_private,
    person_audience,
    turn_key,
    with_outsiders,
)
from core.model.document import DocumentKind, Passage
from core.model.errors import ChatUnavailable
from core.model.findings import PastIncident
from core.model.incident import FilingKind, FilingTarget, Incident, IncidentState, Stage
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model.message_view import Feedback
from core.model.messages import (
    ButtonAction,
    CauseRequest,
    FilingRequest,
    IncidentDetails,
    IncidentMessage,
    Message,
)
from core.model.silences import ChannelSettings, QuietHours
from core.model.team import Team
from core.ports import AgentTools, Change
from handlers.common.examine_model import ExaminedModel
from handlers.common.ports import KEPT, Models, OpenChannels, Readers
from handlers.feedback.post_digest import post_digest
from handlers.feedback.record_feedback import explain_badge, take_feedback
from handlers.incidents.hold_incident import end_quiet_hours
from handlers.incidents.investigate_incident import Rechecks, find_cause, find_owner, investigate_on_demand, triage
from handlers.incidents.label_incident import record_resolution
from handlers.incidents.open_incident import open_incident
from handlers.incidents.post_handover import declare_maintenance, post_handover
from handlers.incidents.present_incident import present_details, update_chats
from handlers.questions.answer_from_records import answer_from_records
from handlers.questions.answer_question import ABSTAINED
from handlers.questions.doors import AnswerAgents, AskInForm, ShownAgain
from handlers.questions.run_command import answer_in_incident
from handlers.questions.show_home import format_home, home_of, show_status
from tests.fakes.clock import FakeClock
from tests.fakes.language_model import ScriptedModel
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.outage import CALLS, START, change, errors
from tests.fakes.ports import some_ports
from tests.fakes.publisher_servers import FakePublisher
from tests.fakes.store import InMemoryStore
from tests.fakes.tools import FakeChangeReader, FakeLogReader

NAMES = ("quay", "mole", "jetty", "basin")
TEAMS = (
    Team("shops", "Shops", "We run the shop.", services=frozenset({"shop"}), on_call=("Ada Quist",)),
    Team("carts", "Carts", "We run the cart.", services=frozenset({"cart"}), on_call=("Bo Lindgren",)),
)
ASKED = ("how do I fix this?", "what does the runbook say?", "seen this before?", "what is the cause?", "postmortem")
CHANGES: list[Change] = [
    change("CHG-1", "shop", -11, "Smaller pool", "config", "maximumPoolSize of the connection pool from 40 to 4")
]
LOGS = errors("shop", "Connection is not available, pool request timed out", since=-10.5, per_minute=2)
WORD = re.compile(r"zq\d+x")
CHATS = (Platform.SLACK, Platform.TEAMS)  # which say who reads a channel
PLATFORMS = (*CHATS, Platform.CONSOLE)
ALL_DAY = QuietHours(time(0), time(23, 59))
MEMBER = "member"  # of the workspace, and of no private channel

Readers_ = Callable[[], frozenset[str]]


class Leak(AssertionError):
    """A person could read a word that is not for them."""


@dataclass(slots=True)
class Room:
    """A channel: whether it is private and there in plumbline.yaml, read by a guest now, and private in its chat now.

    A chat that does not answer for a channel that `is_untold` says nothing about who reads it.
    """

    name: str
    platform: Platform
    private: bool
    known: bool
    guest: bool
    converted: bool = False
    is_untold: bool = False

    @property
    def place(self) -> Place:
        return Place(self.platform, f"id-of-{self.name}")

    @property
    def channel(self) -> Channel:
        return Channel(self.name, {self.platform: self.place.channel}, self.private)

    @property
    def reader(self) -> str:
        return f"channel:{self.name}" if self.known else f"channel:{self.platform}:{self.place.channel}"


class World:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.rooms = [self._room(name) for name in NAMES]
        self.words: dict[str, tuple[str, Readers_]] = {}  # each word: what it is about, and who may read it now
        self.store, self.clock = InMemoryStore(), FakeClock(START)
        channels = tuple(room.channel for room in self.rooms if room.known)
        self.chat = _WatchedChat(self)
        self.openness = OpenChannels(self._is_open, self.clock).is_open
        self.listeners: frozenset[str] = frozenset()  # who is shown what the language model replies now
        self.model = _WatchedModel(world=self)
        self.examined = ExaminedModel(self.model, lambda: Marks(FULL.find, FULL.write, 0, FULL.judge))
        self.history = GrowingHistory(self._past(), channels, TEAMS, self.clock)
        self.publisher = FakePublisher(failure="It is down.")
        targets = tuple(map(self._target, (FilingKind.ISSUE, FilingKind.POSTMORTEM)))
        self.ports = some_ports(
            store=self.store,
            clock=self.clock,
            messengers=dict.fromkeys(PLATFORMS, self.chat),
            channels=channels,
            teams=TEAMS,
            dependencies=CALLS,
            history_for=self.history.readable_by,
            audiences=dict.fromkeys(CHATS, self.audience_at),
            openness=dict.fromkeys(CHATS, self.openness),
            reader_names=self.history.reader_names,
            targets=targets,
            publishers={each.name: self.publisher for each in targets},
            readers=Readers(logs=[FakeLogReader(LOGS)], changes=[FakeChangeReader(CHANGES)], dependencies=CALLS),
            retriever=_Handbook(self._runbooks()),
        )
        self.some_ports = replace(self.ports, models=Models(examined=self.examined, judge=self.model))

    # --- who reads what ----------------------------------------------------------------------------------------------

    @property
    def workspace(self) -> frozenset[str]:
        return frozenset({MEMBER, *(f"in {room.name}" for room in self.rooms if self._is_closed(room))})

    @staticmethod
    def _is_closed(room: Room) -> bool:
        return room.private or room.converted or not room.known

    def people_in(self, room: Room) -> frozenset[str]:
        inside = frozenset({f"in {room.name}"}) if self._is_closed(room) else self.workspace
        return inside | ({f"guest of {room.name}"} if room.guest else set())

    def room_at(self, place: Place) -> Room:
        return next(room for room in self.rooms if room.place.channel == place.channel)

    async def audience_at(self, place: Place) -> Audience:
        room = self.room_at(place)
        audience = channel_audience(place, [each.channel for each in self.rooms if each.known])
        if room.converted or room.is_untold:
            audience = kept_private(audience)
        return with_outsiders(audience) if room.guest or room.is_untold else audience

    async def _is_open(self, place: Place) -> bool:
        room = self.room_at(place)
        if room.is_untold:
            raise ChatUnavailable("The chat does not answer.")
        return not room.converted

    def word(self, about: str, readers: Readers_) -> str:
        """Return a new word that only these people may read."""
        made = f"zq{len(self.words)}x"
        self.words[made] = about, readers
        return made

    def check(self, shown: object, people: Collection[str], door: str) -> None:
        """Raise Leak if one of the people who read here may not read a word of what is shown."""
        for word in WORD.findall(str(shown)):
            about, readers = self.words[word]
            if strangers := sorted(set(people) - readers()):
                rooms = [(each.name, each.private, each.known, each.guest) for each in self.rooms]
                raise Leak(f"{door} shows {about} to {strangers}. Rooms (name, private, known, guest): {rooms}")

    # --- what there is -----------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self.dice.random() < share

    def _of(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    def _room(self, name: str) -> Room:
        room = Room(name, self._of(*PLATFORMS), self._chance(0.4), self._chance(0.85), self._chance(0.2))
        return replace(room, known=True, guest=False) if room.platform == Platform.CONSOLE else room

    def convert_rooms(self) -> None:
        """Make some channels private in their chat, others public again, and let the chat be silent about some.

        A look-up that was answered before is believed for KEPT, so that time passes too.
        """
        for room in self.rooms:
            if room.platform in CHATS:
                room.converted, room.is_untold = self._chance(0.5), self._chance(0.2)
        self.clock.advance(KEPT.total_seconds())

    def invite_guests(self) -> None:
        """Let guests into some channels. The local page has none."""
        for room in self.rooms:
            room.guest = room.guest or (room.platform != Platform.CONSOLE and self._chance(0.3))

    def _source(self) -> tuple[frozenset[str], Readers_]:
        """Return the reader names of a document, and the people that they mean."""
        room = self._of(None, *self.rooms)
        if room is None:
            return frozenset({PUBLIC}), lambda: self.workspace
        return frozenset({room.reader}), lambda: self.people_in(room)

    def _past(self) -> list[PastIncident]:
        found: list[PastIncident] = []
        for number in range(self.dice.randint(1, 4)):
            readers, people = self._source()
            word = self.word(f"past incident {number} for {sorted(readers)}", people)
            found.append(
                PastIncident(
                    f"OLD-{word}",
                    f"ShopLatencyHigh of the shop {word}",
                    "Connection is not available",
                    "shop",
                    Severity.WARNING,
                    START - timedelta(days=number + 1),
                    "shops",
                    root_cause=f"Smaller pool, maximumPoolSize of the connection pool from 40 to 4 {word}",
                    fix=f"Restore the pool {word}",
                    readers=readers,
                )
            )
        return found

    def _runbooks(self) -> list[Passage]:
        passages: list[Passage] = []
        for number in range(self.dice.randint(0, 2)):
            readers, people = self._source()
            word = self.word(f"a runbook for {sorted(readers)}", people)
            text = f"Look at the connection pool {word}:\n\n```\npoolctl restore {word}\n```"
            passages.append(
                Passage(
                    f"r{number}#1", f"r{number}", 1, "ShopLatencyHigh", "Pool", text, "runbooks", DocumentKind.PAGE,
                    "", "", None, readers, "hash",
                )
            )  # fmt: skip
        return passages

    def _target(self, kind: FilingKind) -> FilingTarget:
        room = self._of(None, *(room for room in self.rooms if room.known))
        readers = frozenset({PUBLIC} if room is None else {room.reader})
        return FilingTarget(f"{kind} target", kind, frozenset(NAMES), readers=readers)

    def target_people(self, name: str) -> frozenset[str]:
        (target,) = [each for each in self.ports.filing.targets if each.name == name]
        rooms = [room for room in self.rooms if room.known and room.reader in target.readers]
        return frozenset().union(*(self.people_in(room) for room in rooms)) if rooms else self.workspace

    # --- what happens ------------------------------------------------------------------------------------------------

    async def incident(self, group: str) -> str:
        """Open, investigate and show an incident in one to three drawn channels; returns its id."""
        opened = await self._opened(group)
        await self._investigate(opened.id)
        await present_details(opened.id, self.some_ports)
        return opened.id

    async def quiet_night(self, earlier: str) -> None:
        """Investigate an incident while every channel is quiet; in the morning, tell of it and of an earlier one."""
        settings = self.store.channel_settings.by_channel
        settings |= {(room.platform, room.place.channel): ChannelSettings(ALL_DAY) for room in self.rooms}
        await update_chats(earlier, self.some_ports)
        self.clock.advance(600)  # a minute after another, it might be shown as a part of that
        opened = await self._opened("night")
        await self._investigate(opened.id)
        self.store.channel_settings.by_channel.clear()  # another dict, if a transaction was rolled back
        async with self.store.transaction() as transaction:
            held = await transaction.held_incidents.waiting()  # none where it is a part of an incident that was shown
        before = self.chat.seen
        await end_quiet_hours(self.some_ports)
        assert self.chat.seen > before or not held
        await update_chats(opened.id, self.some_ports)

    async def _investigate(self, incident_id: str) -> None:
        self._tell_all(incident_id)
        await update_chats(incident_id, self.some_ports)
        await find_owner(incident_id, self.some_ports)
        await find_cause(incident_id, self.some_ports)
        await self._change(incident_id, stage=Stage.DONE)
        await update_chats(incident_id, self.some_ports)

    def _tell_all(self, incident_id: str) -> None:
        """Note that what the language model says from here on is shown in every channel of an incident."""
        places = self.store.incidents.by_id[incident_id].placement.places
        self.listeners = frozenset.intersection(*(self.people_in(self.room_at(place)) for place in places))

    async def _opened(self, group: str) -> Incident:
        """Open an incident in one to three drawn channels."""
        rooms = self.dice.sample(self.rooms, self.dice.randint(1, 3))
        word = self.word("an alert", lambda: frozenset().union(*(self.people_in(room) for room in rooms)))
        alert = Alert(
            group,
            "ShopLatencyHigh",
            AlertStatus.FIRING,
            Severity.WARNING,
            START,
            "shop",
            f"ShopLatencyHigh {word}",
            word,
        )
        opened = await open_incident(
            AlertDelivery(group, "generic", group, (alert,), START),
            store=self.store,
            places_for=lambda _: tuple(room.place for room in rooms),
            new_id=lambda: f"{len(self.store.incidents.by_id):010x}",
        )
        assert opened is not None
        return opened

    async def over(self, incident_id: str) -> None:
        await self._change(incident_id, state=IncidentState.RESOLVED, resolved_at=START + timedelta(minutes=9))

    async def learn(self) -> None:
        await self.history.catch_up(self.store)

    async def _change(self, incident_id: str, **fields: Any) -> None:
        known = self.store.incidents.by_id[incident_id]
        self.store.incidents.by_id[incident_id] = replace(known, revision=known.revision + 1, **fields)

    def _threads(self, incident: Incident) -> list[Place]:
        """Return the threads of an incident's messages. In a storm, a channel may have none."""
        return [
            replace(reference.place, thread=reference.message_id)
            for reference, message in self.chat.standing.items()
            if isinstance(message, IncidentMessage)
            and message.incident.id == incident.id
            and reference.place in incident.placement.places
        ]

    async def _said(self, incident: Incident, text: str, *, heard: bool = True) -> tuple[Question, Room]:
        thread = self._of(*self._threads(incident))
        audience = await self.audience_at(thread) if heard else Audience()
        asker = Person(thread.platform, "U1", "Ada Quist")
        number = f"q{self.dice.random()}"
        return Question(number, text, asker, thread, audience, self.clock.now()), self.room_at(thread)

    def _spoken(self, about: str, room: Room) -> str:
        return self.word(f"{about} in {room.name}", lambda: self.people_in(room))

    async def remark(self, incident_id: str) -> None:
        """Somebody names the cause in a thread, with or without mentioning the bot."""
        incident = self.store.incidents.by_id[incident_id]
        question, room = await self._said(incident, "", heard=self._chance(0.7))
        said = self._of("It was CHG-1 that broke it", "It is not CHG-1", "The root cause is the connection pool")
        question = replace(question, text=f"{said} {self._spoken('a remark', room)}")
        self._tell_all(incident_id)
        await Rechecks().recheck(incident_id, question, self.some_ports)
        await update_chats(incident_id, self.some_ports)

    async def outcome(self, incident_id: str) -> None:
        """Somebody notes how it ended, in one or two threads."""
        for name in self._of(["root cause"], ["root cause", "fix"], ["fix", "root cause"]):
            incident = self.store.incidents.by_id[incident_id]
            question, room = await self._said(incident, "")
            text = f"{name}: Smaller pool, maximumPoolSize of the connection pool {self._spoken('an outcome', room)}"
            assert await record_resolution(replace(question, text=text), self.ports)

    async def press(self, incident_id: str, action: ButtonAction, **fields: Any) -> None:
        """Somebody presses a button in a thread, with a text if it takes one."""
        incident = self.store.incidents.by_id[incident_id]
        question, room = await self._said(incident, "")
        if action in (ButtonAction.NOT_OURS, ButtonAction.OWNER_WRONG, ButtonAction.FILE):
            fields["text"] = f"because {self._spoken(f'the text of “{action}”', room)}"
        self._tell_all(incident_id)
        subject = (
            incident.findings.owner.prediction_id if incident.findings.owner and action in CLAIMED else incident_id
        )
        asker, thread, at, audience = question.asker, question.place, question.asked_at, question.audience
        await take_feedback(
            replace(Feedback(question.id, action, subject, asker, thread, at, audience=audience), **fields), self.ports
        )

    async def question(self) -> None:
        """Somebody asks in a channel what no document answers."""
        room = self._of(*self.rooms)
        asker, asked = Person(room.platform, "U1", "Ada Quist"), f"q{self.dice.random()}"
        text = f"How do I feed the {self._spoken('a question', room)}?"
        entry = audit_entry(asked, self.clock.now(), Act.ANSWERED, asker, asked, place=room.place, detail=ABSTAINED)
        thread = replace(room.place, thread=asked)
        async with self.store.transaction() as transaction:
            key = turn_key(asked, Speaker.PERSON)
            await transaction.conversations.put(key, thread, Turn(Speaker.PERSON, text), self.clock.now())
            await transaction.audit.add(entry)

    async def maintenance(self) -> None:
        """Somebody declares a maintenance of another service in a channel, with a reason."""
        room = self._of(*self.rooms)
        audience, asker = await self.audience_at(room.place), Person(room.platform, "U1", "Ada Quist")
        said = self._spoken("the reason of a maintenance", room)
        text, asked = f"cart 9h new ledger {said}", f"q{self.dice.random()}"
        if PUBLIC in audience.readers:
            await declare_maintenance(
                Question(asked, text, asker, room.place, audience, self.clock.now()), self.some_ports
            )

    def forget_places(self, incident_id: str) -> None:
        """Store the incident as an older version did, which kept no readers: the fewest people may read its words."""
        known = self.store.incidents.by_id[incident_id]
        rooms = [self.room_at(place) for place in known.placement.places]
        for word, (about, readers) in self.words.items():
            if about.split(" in ")[0] in {"a remark", "an outcome"} or about.startswith("the text"):
                fewest = lambda: frozenset.intersection(*(self.people_in(room) for room in rooms))  # noqa: E731
                self.words[word] = f"{about} (old)", (lambda r=readers, f=fewest: r() & f())
        plain = json.loads(_INCIDENT.dump_json(known))
        self.store.incidents.by_id[incident_id] = _INCIDENT.validate_python(_without_readers(plain))

    # --- the doors ---------------------------------------------------------------------------------------------------

    async def look_everywhere(self, incident_id: str) -> None:
        """Go through every door. What is posted is checked as it is posted."""
        await update_chats(incident_id, self.some_ports)
        await present_details(incident_id, self.some_ports)
        incident = self.store.incidents.by_id[incident_id]
        for thread in self._threads(incident):
            await self._ask_in_thread(incident, thread)
        await self._refresh()
        for room in self.rooms:
            await self._open_forms(incident_id, room)
            await self._report(room)
        for caller, people in self._agents():
            await self._call_tools(caller, people, incident_id)
        for person, audience in self._people():
            home = await home_of([person], audience, self.ports)
            self.check((home, format_home(home)), {person}, "the home page")

    async def _report(self, room: Room) -> None:
        """Post a digest and a handover, and answer a question from the records, in a channel."""
        number, since = self.dice.random(), START - timedelta(days=1)
        await post_digest(f"digest {number}", room.place, since, self.ports)
        await post_handover(f"handover {number}", room.place, since, self.ports)
        asked = Question(
            f"q{number}", "?", Person(room.platform, "U2"), room.place, await self.audience_at(room.place), since
        )
        answer = await answer_from_records(asked, Lookup(Fact.INCIDENTS, service="shop"), self.ports)
        self.check(answer, self.people_in(room), "an answer from the records")

    async def _ask_in_thread(self, incident: Incident, thread: Place) -> None:
        audience = await self.audience_at(thread)
        person = Person(thread.platform, "U2", "Bo Lindgren")
        self.listeners = self.people_in(self.room_at(thread))

        def question(text: str) -> Question:
            return Question(f"q{self.dice.random()}", text, person, thread, audience, self.clock.now())

        for text in self.dice.sample(ASKED, 2):
            left = await answer_in_incident(question(text), self.ports)
            self.check(left, self.people_in(self.room_at(thread)), "the context of a question")
        await show_status(question("status"), self.ports)

        async def again(latest: Incident, said_to: Audience, *_: object) -> Incident:
            return await triage(latest, said_to, self.some_ports)

        await investigate_on_demand(question(""), self.some_ports, again, Stage.TRIAGING)
        for action in (
            ButtonAction.DETAILS,
            ButtonAction.CREATE_ISSUE,
            ButtonAction.PUBLISH_POSTMORTEM,
            ButtonAction.WRITE_UPDATE,
            ButtonAction.BELONGS,
        ):
            asked = question("")
            feedback = Feedback(asked.id, action, incident.id, person, thread, asked.asked_at, audience=audience)
            await take_feedback(feedback, self.ports)
        latest = self.store.incidents.by_id[incident.id]
        claims = [
            latest.findings.owner.prediction_id if latest.findings.owner else "",
            latest.findings.explanation and latest.findings.explanation.prediction_id,
        ]
        for claim in filter(None, claims):
            asked = question("")
            why = Feedback(asked.id, ButtonAction.WHY_OWNER, claim, person, thread, asked.asked_at, audience=audience)
            await explain_badge(why, self.ports)

    async def _refresh(self) -> None:
        """Open each message again, as Teams does."""
        again = ShownAgain(
            self.store,
            channels=self.ports.chats.channels,
            audience_at=self.audience_at,
            openness=self.ports.chats.openness,
        )
        for reference, shown in list(self.chat.standing.items()):
            if not isinstance(shown, IncidentMessage):
                continue
            message = await again.message(reference)
            if message is not None:
                self.chat.shown(reference.place, message)

    async def _open_forms(self, incident_id: str, room: Room) -> None:
        forms, audience = AskInForm(self.ports), await self.audience_at(room.place)
        person = Person(room.platform, "U2", "Bo Lindgren")
        for action in (ButtonAction.DETAILS, ButtonAction.CREATE_ISSUE, ButtonAction.PUBLISH_POSTMORTEM):
            form = await forms.form(action, incident_id, audience, person)
            if isinstance(form, FilingRequest):
                self._check_draft(form)
            if form is not None:
                self.chat.shown(room.place, form)

    def _check_draft(self, draft: FilingRequest) -> None:
        for name in () if draft.kind is FilingKind.UPDATE else draft.targets:  # channels, checked when it is sent
            self.check(draft, self.target_people(name), f"a draft for {name}")

    def _agents(self) -> list[tuple[Any, frozenset[str]]]:
        known = [room for room in self.rooms if room.known]
        alone = [(agent_caller("agent", [], self.ports.chats.channels), self.workspace)]
        return alone + [
            (
                agent_caller("agent", [room.name], self.ports.chats.channels),
                self.people_in(room) - {f"guest of {room.name}"},
            )
            for room in known
        ]

    async def _call_tools(self, caller: Any, people: frozenset[str], incident_id: str) -> None:
        text = "ShopLatencyHigh of the shop: Connection is not available"
        calls: dict[str, dict[str, Any]] = {
            "get_incident": {"incident_id": incident_id},
            "triage": {"incident": incident_id},
            "explain_incident": {"incident": incident_id},
            "find_incidents": {"only_open": False},
            "similar_incidents": {"text": text},
        }
        self.listeners = people
        for name, arguments in calls.items():
            _TOOLS.current = AnswerAgents(self.ports)
            agents.CALLER.set(caller)
            self.check(await _SERVER.call_tool(name, arguments), people, f"the agents’ {name}")

    def _people(self) -> list[tuple[str, Audience]]:
        alone = person_audience(Person(Platform.SLACK, "U3"))
        guests = [(f"guest of {room.name}", with_outsiders(alone)) for room in self.rooms if room.guest]
        return [(MEMBER, alone), *guests]


_INCIDENT = TypeAdapter(Incident)


def _without_readers(value: Any) -> Any:
    """Return a stored incident as it was before texts had readers."""
    if isinstance(value, list):
        return [_without_readers(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        return {key: _without_readers(each) for key, each in known.items() if key not in {"readers", "basis"}}
    return value


CLAIMED = frozenset({ButtonAction.OWNER_WRONG, ButtonAction.NOT_OURS})


class _WatchedChat(RecordingMessenger):
    """A chat in which everything is read by everybody who is in the channel at that moment."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.seen = 0

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        self.shown(place, message)
        return await super().post(place, message, intent)

    async def edit(self, reference: MessageReference, message: Message) -> None:
        self.shown(reference.place, message)
        await super().edit(reference, message)

    def shown(self, place: Place, message: Any) -> None:
        room = self._world.room_at(place)
        self.seen += 1
        kind = type(message).__name__
        if isinstance(message, FilingRequest):
            self._world._check_draft(message)
        people = self._world.people_in(room)
        if not isinstance(message, IncidentMessage | IncidentDetails):  # they hold more than is drawn
            self._world.check(message, people, f"{kind} in {room.name}")
        if not isinstance(message, CauseRequest):
            for drawn_by, drawn in _drawn(message):
                self._world.check(drawn, people, f"{kind} in {room.name}, drawn by {drawn_by},")


def _drawn(message: Message) -> Iterator[tuple[str, object]]:
    """Yield a message as each chat, the local page and a terminal draw it."""
    yield "Slack", slack.render(message)
    yield "Teams", teams.render(message).content
    kind, payload = encode(message)
    stored = ConsoleMessage(1, "general", None, kind, payload, START, 1)
    yield "the page", _PAGE.fragment("_message.html", "article", stored, decode(kind, payload), {})
    printed = StringIO()
    Console(file=printed, width=500).print(terminal.render(message))
    yield "a terminal", printed.getvalue()


_PAGE = Renderer(lambda: START, "the harbour")


@dataclass
class _WatchedModel(ScriptedModel):
    """A language model that says nothing of use, and whose prompts are read by everybody who is shown its reply."""

    world: World = field(kw_only=True)

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        self._check(request)
        return await super().generate(request, on_text)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        self._check(request)
        return await super().expect(request, choices)

    def _check(self, request: ModelRequest) -> None:
        self.world.check(request.messages, self.world.listeners, "a prompt")


class _Tools:
    """The tools of the world at hand: one server is for all worlds, because it takes long to be made."""

    current: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current, name)


_TOOLS = _Tools()
_SERVER = agents.agent_server(cast("AgentTools", _TOOLS))


@dataclass(frozen=True, slots=True)
class _Handbook:
    """A retriever that finds every page that the audience may read."""

    passages: list[Passage] = field(default_factory=list[Passage])

    async def retrieve(self, query: str, audience: Audience, limit: int) -> list[RankedPassage]:
        return [RankedPassage(each, 1.0, 1.0, 1.0) for each in self.passages if audience.may_read(each.readers)]

    async def page(self, document_id: str, audience: Audience) -> list[Passage]:
        found = await self.retrieve("", audience, 1)
        return [each.passage for each in found if each.passage.document_id == document_id]
