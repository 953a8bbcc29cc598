from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from core.confidence.badge import Badge, Strength
from core.confidence.policy import NO_POLICY, Policy
from core.conversation import MessageReference, Place, Platform
from core.errors import ChatUnavailable, PlumblineError, Undeliverable
from core.incident import Absorption, Hop, Incident, IncidentState, Silenced, Stage
from core.messages import IncidentDetails, IncidentMessage, Message, Notice, OwnerPing, OwnerQuestion
from core.samples import alert, explained_incident, explanation, owner, unclear_owner
from core.team import Team
from handlers.post_message import Poster
from handlers.present_incident import FIRES_AGAIN, ping_owner, present_details, present_incident, update_details
from handlers.update_incident import update_incident
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import Crash, RecordingMessenger, Trouble
from tests.fakes.store import InMemoryStore

CLOCK = FakeClock()
DONE = explained_incident(id="i1", revision=1, message=None)
RAW = replace(DONE, owner=None, explanation=None, stage=Stage.TRIAGING)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = RAW
    return store


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform(RAW.place.platform): chat})


async def change(store: InMemoryStore, **fields: object) -> Incident:
    return await update_incident("i1", lambda latest: replace(latest, **fields), store)


def shown(chat: RecordingMessenger) -> Incident:
    """The incident as the one message shows it."""
    (message,) = chat.standing.values()
    assert isinstance(message, IncidentMessage)
    return message.incident


async def test_an_incident_stands_in_several_chats_at_once_and_each_is_kept_up_to_date(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    teams = RecordingMessenger()
    both = Poster(store, {Platform(RAW.place.platform): chat, Platform.TEAMS: teams})
    await change(store, also_in=(Place(Platform.TEAMS, "19:incidents"),))
    await present_incident("i1", store=store, poster=both, clock=CLOCK)
    done = await change(store, owner=DONE.owner, explanation=DONE.explanation, stage=Stage.DONE)
    for _ in range(2):
        await present_incident("i1", store=store, poster=both, clock=CLOCK)
        await present_details("i1", store=store, poster=both)
    for messenger in (chat, teams):
        message, details = messenger.standing.values()
        assert isinstance(message, IncidentMessage)
        assert isinstance(details, IncidentDetails)
        assert (message.incident.owner, message.incident.explanation) == (done.owner, done.explanation)
    (root, reply) = teams.standing
    assert (root.place.channel, reply.place.thread) == ("19:incidents", root.message_id)


async def test_an_incident_that_fires_again_is_told_in_its_thread_once_for_each_time(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    for times in (1, 1, 2):
        await change(store, reopened_count=times)
        await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    root, *notices = chat.standing
    assert [notice.place.thread for notice in notices] == [root.message_id] * 2
    assert [chat.standing[notice] for notice in notices] == [Notice(FIRES_AGAIN)] * 2


async def test_an_incident_is_posted_and_knows_its_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    assert shown(chat) == RAW
    assert store.incidents.by_id["i1"].message in chat.standing


@pytest.mark.parametrize(
    "fields",
    [
        {"owner": DONE.owner, "stage": Stage.EXPLAINING},
        {"explanation": DONE.explanation},
        {"taken_by": "Ada"},
        {"alert_count": 12},
        {"delivery_count": 12},
        {"alerts": (alert(1), alert(2))},
        {"also_firing": ("f1",)},
    ],
)
async def test_what_has_changed_is_shown_in_the_same_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, fields: dict[str, object]
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    await change(store, **fields)
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    assert len(chat.posted) == len(chat.edited) == 1
    assert all(getattr(shown(chat), name) == value for name, value in fields.items())


async def test_what_nobody_can_see_makes_no_edit(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    await change(store, updated_at=RAW.updated_at.replace(year=2030))
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    assert chat.edited == []


async def test_of_two_presentations_at_once_the_later_state_stands_there_in_the_end(store: InMemoryStore) -> None:
    class Slow(RecordingMessenger):
        """Takes the first edit only when it is let go."""

        def __init__(self) -> None:
            super().__init__()
            self.editing, self.let_go = asyncio.Event(), asyncio.Event()

        async def edit(self, reference: MessageReference, message: Message) -> None:
            self.editing.set()
            await self.let_go.wait()
            await super().edit(reference, message)

    chat = Slow()
    poster = Poster(store, {Platform(RAW.place.platform): chat})
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    await change(store, taken_by="Ada")
    async with asyncio.TaskGroup() as group:
        group.create_task(present_incident("i1", store=store, poster=poster, clock=CLOCK))
        await chat.editing.wait()
        await change(store, taken_by="Bo")
        group.create_task(present_incident("i1", store=store, poster=poster, clock=CLOCK))
        await asyncio.sleep(0)
        chat.let_go.set()
    assert shown(chat).taken_by == "Bo"


@pytest.mark.parametrize("trouble", Trouble)
async def test_whatever_happens_to_a_presentation_there_is_one_message_in_the_end(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, trouble: Trouble
) -> None:
    chat.trouble.append(trouble)
    with pytest.raises((ChatUnavailable, Crash)):
        await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    await change(store, taken_by="Ada")
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    assert shown(chat).taken_by == "Ada"


async def test_the_incident_follows_a_message_that_was_deleted_and_posted_anew(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    chat.standing.clear()
    await change(store, taken_by="Ada")
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    assert list(chat.standing) == [store.incidents.by_id["i1"].message]


async def test_details_are_posted_once_into_the_thread_of_the_message(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    for _ in range(2):
        await present_details("i1", store=store, poster=poster)
    incident = store.incidents.by_id["i1"]
    assert incident.message is not None
    thread = replace(incident.message.place, thread=incident.message.message_id)
    assert chat.posted[1:] == [(thread, IncidentDetails(incident))]


async def test_details_that_stand_in_the_thread_follow_an_incident_that_is_sent_on(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    await present_incident("i1", store=store, poster=poster, clock=CLOCK)
    sent_on = (Hop("payments", "", "Ada", "", RAW.opened_at),)
    await change(store, hops=sent_on)
    await update_details("i1", store=store, poster=poster)
    assert len(chat.posted) == 1, "they are posted when the work is done"
    await present_details("i1", store=store, poster=poster)
    await change(store, owner=owner(owner=None, note="Nobody wants it."))
    for _ in range(2):
        await update_details("i1", store=store, poster=poster)
    assert len(chat.posted) == 2
    assert IncidentDetails(store.incidents.by_id["i1"]) in chat.standing.values()


async def test_details_need_a_message_to_stand_under(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    """It has none while it is silenced, or while the chat does not take it."""
    await present_details("i1", store=store, poster=poster)
    assert chat.posted == []


async def test_an_incident_that_does_not_exist_is_not_presented(store: InMemoryStore, poster: Poster) -> None:
    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await present_incident("i2", store=store, poster=poster, clock=CLOCK)


# --- by policy -------------------------------------------------------------------------------------------------------

POLICY = Policy(ask_below=0.4, ping_owner_above=0.8)
TEAMS = (Team("payments", "Payments", on_call=("Asha Brandt", "Mateo Silvestri"), mentions={Platform.SLACK: "S0PAY"}),)
MESSAGE = MessageReference(RAW.place, "1")


def with_badges(owner_probability: float | None, cause_probability: float | None, **fields: object) -> Incident:
    said = owner(badge=Badge(Strength.STRONG, owner_probability))
    why = explanation(badge=Badge(Strength.STRONG, cause_probability))
    return replace(DONE, owner=said, explanation=why, message=MESSAGE, **fields)


@pytest.mark.parametrize(
    ("probabilities", "asked"),
    [((0.3, 0.7), (True, False)), ((0.7, 0.3), (False, True)), ((None, None), (False, False))],
)
async def test_what_has_a_low_badge_is_put_as_a_question(
    store: InMemoryStore,
    poster: Poster,
    chat: RecordingMessenger,
    probabilities: tuple[float | None, float | None],
    asked: tuple[bool, bool],
) -> None:
    store.incidents.by_id["i1"] = with_badges(*probabilities)
    await present_incident("i1", store=store, poster=poster, clock=CLOCK, policy=POLICY)
    (message,) = chat.standing.values()
    assert isinstance(message, IncidentMessage)
    assert (message.asks_owner, message.asks_cause) == asked


async def test_an_owner_with_a_high_badge_is_called_into_the_thread_once(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    store.incidents.by_id["i1"] = with_badges(0.9, None)
    for _ in range(2):
        await ping_owner("i1", policy=POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    ((place, ping),) = chat.posted
    assert place == replace(RAW.place, thread="1")
    assert isinstance(ping, OwnerPing)
    assert (ping.team_name, ping.mention) == ("Payments", "S0PAY")


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
                "i1",
                policy=PING_TWO,
                teams=TEAMS,
                store=store,
                poster=poster,
                clock=CLOCK,
                schedules=(Schedule(),),
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
        await ping_owner("i1", policy=POLICY, teams=teams, store=store, poster=poster, clock=CLOCK)
    ((_, ping),) = chat.posted
    assert isinstance(ping, OwnerPing)
    assert (ping.team_name, ping.mention) == ("Ledger", "S0PAY")


async def test_a_team_that_a_person_gives_it_to_is_called_each_time_however_often_such_a_word_held(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    given, away = Hop("", "payments", "Ada", "", RAW.opened_at), Hop("payments", "", "Bo", "", RAW.opened_at)
    for hops in ((given,), (given,), (given, away), (given, away, given)):
        store.incidents.by_id["i1"] = with_badges(None, None, hops=hops)
        await ping_owner("i1", policy=POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    assert [type(message) for _, message in chat.posted] == [OwnerPing, OwnerPing]
    store.incidents.by_id["i1"] = with_badges(None, None, hops=(given, away, given, given))
    await ping_owner("i1", policy=NO_POLICY, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
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
        (replace(with_badges(0.9, None), message=None), POLICY, TEAMS),
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
    await ping_owner("i1", policy=policy, teams=teams, store=store, poster=poster, clock=CLOCK)
    assert chat.posted == []


PING_TWO = Policy(ping_owner_above=0.8, ping_two_when_unsure=True)
UNCLEAR = replace(DONE, owner=unclear_owner(), message=MESSAGE)


async def test_where_nobody_is_named_two_teams_are_asked_in_one_message_once_for_each_hop_and_pair(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    async def called(**fields: object) -> None:
        store.incidents.by_id["i1"] = replace(UNCLEAR, **fields)
        await ping_owner("i1", policy=PING_TWO, teams=TEAMS, store=store, poster=poster, clock=CLOCK)

    proposal = unclear_owner()
    payments, bookings = proposal.asked
    for asked in ((payments, bookings), (bookings, replace(payments, on_call=("Ines Okafor",)))):
        await called(owner=replace(proposal, asked=asked))
    assert chat.posted == [
        (replace(RAW.place, thread="1"), OwnerQuestion(((payments, "S0PAY"), (bookings, "")))),
    ]
    await called(hops=(Hop("fleet", "", "Ada", "", RAW.opened_at),))
    await called(owner=replace(proposal, asked=(bookings, replace(payments, team_id="fleet"))))
    await called(owner=with_badges(0.9, None).owner)
    assert [type(message) for _, message in chat.posted] == [OwnerQuestion] * 3 + [OwnerPing]


@pytest.mark.parametrize(
    ("incident", "policy"),
    [
        (UNCLEAR, POLICY),
        (replace(UNCLEAR, taken_by="Ada"), PING_TWO),
        (replace(UNCLEAR, state=IncidentState.RESOLVED), PING_TWO),
        (replace(UNCLEAR, silenced=Silenced("maintenance", "", RAW.opened_at)), PING_TWO),
        (replace(UNCLEAR, absorbed=Absorption("i2", "", RAW.opened_at)), PING_TWO),
        (replace(UNCLEAR, message=None), PING_TWO),
        (replace(UNCLEAR, stage=Stage.EXPLAINING), PING_TWO),
        (replace(UNCLEAR, owner=None), PING_TWO),
        (replace(UNCLEAR, owner=unclear_owner(asked=())), PING_TWO),
    ],
)
async def test_two_teams_are_not_called_needlessly(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger, incident: Incident, policy: Policy
) -> None:
    store.incidents.by_id["i1"] = incident
    await ping_owner("i1", policy=policy, teams=TEAMS, store=store, poster=poster, clock=CLOCK)
    assert chat.posted == []


async def test_a_team_that_was_renamed_since_it_was_asked_is_called_by_its_mention_of_today(
    store: InMemoryStore, poster: Poster, chat: RecordingMessenger
) -> None:
    renamed = replace(TEAMS[0], id="ledger", aliases=("payments",))
    store.incidents.by_id["i1"] = UNCLEAR
    await ping_owner("i1", policy=PING_TWO, teams=(renamed,), store=store, poster=poster, clock=CLOCK)
    ((_, question),) = chat.posted
    assert isinstance(question, OwnerQuestion)
    assert [mention for _, mention in question.teams] == ["S0PAY", ""]


@pytest.mark.parametrize("error", [Undeliverable("The channel is archived."), ChatUnavailable("The chat is down.")])
async def test_a_chat_that_takes_nothing_keeps_no_other_chat_from_being_told(
    store: InMemoryStore, error: PlumblineError
) -> None:
    class Refusing(RecordingMessenger):
        async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
            raise error

    teams = RecordingMessenger()
    both = Poster(store, {Platform(RAW.place.platform): Refusing(), Platform.TEAMS: teams})
    await change(store, also_in=(Place(Platform.TEAMS, "19:incidents"),))
    for _ in range(2):
        with pytest.raises(type(error)):
            await present_incident("i1", store=store, poster=both, clock=CLOCK)
    assert len(teams.posted) == 1
