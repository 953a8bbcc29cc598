"""Whoever probably owns an incident is called into its thread, once, and nobody needlessly."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from core.model.badge import NO_POLICY, Badge, Policy, Strength
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import Undeliverable
from core.model.findings import Relation, RelationKind
from core.model.incident import Hop, Incident, IncidentState, Silenced, Stage
from core.model.messages import Message, OwnerPing, OwnerQuestion
from core.model.team import Team
from handlers.common.post_message import Poster
from handlers.incidents.ping_owner import ping_owner
from handlers.incidents.present_incident import update_chats
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, explanation, owner, unclear_owner, with_fields

CLOCK = FakeClock()
DONE = explained_incident(id="i1", revision=1, message=None)
RAW = replace(DONE.with_findings(owner=None, explanation=None), stage=Stage.TRIAGING)
POLICY = Policy(ask_below=0.4, ping_owner_above=0.8)
TEAMS = (Team("payments", "Payments", on_call=("Asha Brandt", "Mateo Silvestri"), mentions={Platform.SLACK: "S0PAY"}),)
MESSAGE = MessageReference(RAW.placement.place, "1")


def with_badges(owner_probability: float | None, cause_probability: float | None, **fields: object) -> Incident:
    said = owner(badge=Badge(Strength.STRONG, owner_probability))
    why = explanation(badge=Badge(Strength.STRONG, cause_probability))
    return with_fields(DONE, owner=said, explanation=why, message=MESSAGE, **fields)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform(RAW.placement.place.platform): chat})


async def test_an_owner_with_a_high_badge_is_called_into_the_thread_once(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id["i1"] = with_badges(0.9, None)
    for _ in range(2):
        await ping_owner(
            store.incidents.by_id["i1"], some_ports(policy=POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
        )
    ((place, ping),) = chat.posted
    assert place == replace(RAW.placement.place, thread="1")
    assert isinstance(ping, OwnerPing)
    assert (ping.team_name, ping.mention) == ("Payments", "S0PAY")


@pytest.mark.parametrize(
    "is_configured", [True, False], ids=["a channel that refuses", "a chat that is not configured"]
)
async def test_an_owner_is_called_although_a_copy_of_the_message_cannot_be_posted(
    store: InMemoryStore, chat: RecordingMessenger, *, is_configured: bool
) -> None:
    class Archived(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            raise Undeliverable("The channel is archived.")

    copies = {Platform.TEAMS: Archived()} if is_configured else {}
    poster = Poster(store, {Platform(RAW.placement.place.platform): chat, **copies})
    both = some_ports(policy=POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    shown = with_badges(0.9, None, also_in=(Place(Platform.TEAMS, "19:a"), Place(Platform.TEAMS, "19:b")))
    store.incidents.by_id["i1"] = shown
    await store.posts.mark_stale("incident:i1", RAW.placement.place, CLOCK.now(), timedelta(minutes=5))
    for _ in range(2):
        with pytest.raises(Undeliverable):
            await update_chats("i1", both)
    assert len([message for _, message in chat.posted if isinstance(message, OwnerPing)]) == 1
    assert store.posts.asked == {}, "the next change is shown at once"


async def test_a_call_names_who_is_on_call_when_it_is_made_and_asks_the_schedule_no_more_once_it_stands(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    asked: list[str] = []

    class Schedule:
        name, teams = "PagerDuty", frozenset({"payments"})

        async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
            assert at == CLOCK.now()
            asked.append(team_id)
            return ("Day Shift",)

        async def check(self) -> None: ...

    for incident in (with_badges(0.9, None), UNCLEAR):
        store.incidents.by_id["i1"] = incident
        for _ in range(2):
            await ping_owner(
                store.incidents.by_id["i1"],
                some_ports(
                    policy=PING_TWO, teams=TEAMS, store=store, poster=poster, clock=CLOCK, schedules=(Schedule(),)
                ),
            )
    (_, ping), (_, question) = chat.posted
    assert isinstance(ping, OwnerPing)
    assert ping.on_call == ("Day Shift",)
    assert isinstance(question, OwnerQuestion)
    assert question.teams[0][0].on_call == ("Day Shift",)
    assert asked == ["payments", "payments"]


async def test_an_owner_that_was_renamed_since_the_triage_is_called_by_its_mention_of_today_and_once(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id["i1"] = with_badges(0.9, None)
    renamed = replace(TEAMS[0], id="ledger", name="Ledger", aliases=("payments",))
    for teams in ((renamed,), TEAMS):
        await ping_owner(
            store.incidents.by_id["i1"], some_ports(policy=POLICY, teams=teams, store=store, poster=poster, clock=CLOCK)
        )
    ((_, ping),) = chat.posted
    assert isinstance(ping, OwnerPing)
    assert (ping.team_name, ping.mention) == ("Ledger", "S0PAY")


async def test_a_team_that_a_person_gives_it_to_is_called_each_time_however_often_such_a_word_held(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    given, away = Hop("", "payments", "Ada", "", RAW.opened_at), Hop("payments", "", "Bo", "", RAW.opened_at)
    for hops in ((given,), (given,), (given, away), (given, away, given)):
        store.incidents.by_id["i1"] = with_badges(None, None, hops=hops)
        await ping_owner(
            store.incidents.by_id["i1"], some_ports(policy=POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
        )
    assert [type(message) for _, message in chat.posted] == [OwnerPing, OwnerPing]
    store.incidents.by_id["i1"] = with_badges(None, None, hops=(given, away, given, given))
    await ping_owner(
        store.incidents.by_id["i1"], some_ports(policy=NO_POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    )
    assert len(chat.posted) == 2


@pytest.mark.parametrize(
    ("incident", "policy", "teams"),
    [
        (with_badges(0.8, None), POLICY, TEAMS),
        (with_badges(None, None), POLICY, TEAMS),
        (with_badges(0.9, None), NO_POLICY, TEAMS),
        (with_badges(0.9, None), POLICY, ()),
        (with_badges(0.9, None, taken_by="Ada"), POLICY, TEAMS),
        (with_badges(0.9, None, state=IncidentState.RESOLVED), POLICY, TEAMS),
        (with_badges(0.9, None).with_placement(message=None), POLICY, TEAMS),
    ],
)
async def test_nobody_is_called_needlessly(
    store: InMemoryStore,
    poster: Poster,
    chat: RecordingMessenger,
    incident: Incident,
    policy: Policy,
    teams: tuple[Team, ...],
) -> None:
    store.incidents.by_id["i1"] = incident
    await ping_owner(
        store.incidents.by_id["i1"], some_ports(policy=policy, teams=teams, store=store, poster=poster, clock=CLOCK)
    )
    assert chat.posted == []


PING_TWO = Policy(ping_owner_above=0.8, ping_two_when_unsure=True)
UNCLEAR = DONE.with_findings(owner=unclear_owner()).with_placement(message=MESSAGE)


async def test_where_nobody_is_named_two_teams_are_asked_in_one_message_once_for_each_hop_and_pair(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    async def called(**fields: object) -> None:
        store.incidents.by_id["i1"] = with_fields(UNCLEAR, **fields)
        await ping_owner(
            store.incidents.by_id["i1"],
            some_ports(policy=PING_TWO, teams=TEAMS, store=store, poster=poster, clock=CLOCK),
        )

    proposal = unclear_owner()
    payments, bookings = proposal.asked
    for asked in ((payments, bookings), (bookings, replace(payments, on_call=("Ines Okafor",)))):
        await called(owner=replace(proposal, asked=asked))
    assert chat.posted == [
        (replace(RAW.placement.place, thread="1"), OwnerQuestion(((payments, "S0PAY"), (bookings, "")))),
    ]
    await called(hops=(Hop("fleet", "", "Ada", "", RAW.opened_at),))
    await called(owner=replace(proposal, asked=(bookings, replace(payments, team_id="fleet"))))
    await called(owner=with_badges(0.9, None).findings.owner)
    assert [type(message) for _, message in chat.posted] == [OwnerQuestion] * 3 + [OwnerPing]


@pytest.mark.parametrize(
    ("incident", "policy"),
    [
        (UNCLEAR, POLICY),
        (replace(UNCLEAR, taken_by="Ada"), PING_TWO),
        (replace(UNCLEAR, state=IncidentState.RESOLVED), PING_TWO),
        (replace(UNCLEAR, silenced=Silenced("maintenance", "", RAW.opened_at)), PING_TWO),
        (UNCLEAR.with_relation(Relation(RelationKind.PART_OF, "i2", at=RAW.opened_at)), PING_TWO),
        (UNCLEAR.with_placement(message=None), PING_TWO),
        (replace(UNCLEAR, stage=Stage.EXPLAINING), PING_TWO),
        (UNCLEAR.with_findings(owner=None), PING_TWO),
        (UNCLEAR.with_findings(owner=unclear_owner(asked=())), PING_TWO),
    ],
)
async def test_two_teams_are_not_called_needlessly(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, incident: Incident, policy: Policy
) -> None:
    store.incidents.by_id["i1"] = incident
    await ping_owner(
        store.incidents.by_id["i1"], some_ports(policy=policy, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    )
    assert chat.posted == []


async def test_a_team_that_was_renamed_since_it_was_asked_is_called_by_its_mention_of_today(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    renamed = replace(TEAMS[0], id="ledger", aliases=("payments",))
    store.incidents.by_id["i1"] = UNCLEAR
    await ping_owner(
        store.incidents.by_id["i1"],
        some_ports(policy=PING_TWO, teams=(renamed,), store=store, poster=poster, clock=CLOCK),
    )
    ((_, question),) = chat.posted
    assert isinstance(question, OwnerQuestion)
    assert [mention for _, mention in question.teams] == ["S0PAY", ""]
