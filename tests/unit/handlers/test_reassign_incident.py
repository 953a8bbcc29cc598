from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Audience, Person, Place, Platform
from core.model.findings import TeamScore
from core.model.incident import Hop, Incident
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, HandoverRequest, Notice
from core.model.team import Team
from handlers.common.post_message import Poster
from handlers.incidents.reassign_incident import (
    ENGINE,
    MAX_HOPS,
    OVERTAKEN,
    PICK_TEAM,
    TEAM_UNKNOWN,
    TOO_MANY_HOPS,
    ask_for_owner,
    handover_request,
    reassign_incident,
)
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, owner, unclear_owner

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
LATER = datetime(2026, 3, 14, 9, 31, tzinfo=UTC)
THREAD = Place(Platform.SLACK, "C0INC", "17.25")
SAID_TO = Audience(disclosed_to=frozenset({"channel:payments"}))
PAYMENTS, BOOKINGS = Team("payments", "Payments"), Team("bookings", "Bookings", on_call=("Mira",), aliases=("berths",))
TEAMS = (PAYMENTS, BOOKINGS)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.predictions.by_id["owner-1"] = Prediction(
        "owner-1", PredictionKind.OWNER, "i1", "payments", Evaluation(0.5, 0.5), "evidence", "1", NOW
    )
    store.incidents.by_id["i1"] = explained_incident(id="i1", revision=1, taken_by="Ada")
    return store


ADA = Person(Platform.SLACK, "U1", "Ada")


def press(verdict: ButtonAction, choice: str = "", text: str = "") -> Feedback:
    return Feedback(
        f"{verdict} {choice}",
        verdict,
        "i1",
        ADA,
        THREAD,
        NOW,
        text,
        choice=choice,
        audience=SAID_TO,
    )


async def reassigned(feedback: Feedback, store: InMemoryStore, chat: RecordingMessenger) -> Incident:
    poster = Poster(store, {Platform.SLACK: chat})
    await reassign_incident(feedback, some_ports(teams=TEAMS, store=store, clock=FakeClock(), poster=poster))
    return store.incidents.by_id["i1"]


def judged(store: InMemoryStore) -> list[bool]:
    return [outcome.correct for outcome in store.predictions.outcomes.values()]


async def test_whoever_would_hand_it_over_is_offered_the_other_teams(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    poster = Poster(store, {Platform.SLACK: chat})
    for _ in range(2):
        await ask_for_owner(press(ButtonAction.HAND_OVER), some_ports(teams=TEAMS, store=store, poster=poster))
    assert [message for _, message in chat.posted] == [
        HandoverRequest("i1", "Payments", (("bookings", "Bookings"),), "owner-1")
    ]


async def test_whoever_would_hand_over_what_was_claimed_meanwhile_is_asked_about_that(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    poster = Poster(store, {Platform.SLACK: chat})
    await ask_for_owner(press(ButtonAction.HAND_OVER), some_ports(teams=TEAMS, store=store, poster=poster))
    revised = owner(owner=TeamScore("bookings", "Bookings", 0.7), prediction_id="owner-2")
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=revised)
    await ask_for_owner(press(ButtonAction.HAND_OVER), some_ports(teams=TEAMS, store=store, poster=poster))
    asked = [message for _, message in chat.posted]
    assert asked[1:] == [HandoverRequest("i1", "Bookings", (("payments", "Payments"),), "owner-2")]


async def test_an_incident_that_goes_round_without_end_is_left_to_people_who_are_told_so(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    hops = tuple(Hop("payments", "bookings", f"Person {number}", "", NOW) for number in range(MAX_HOPS))
    store.incidents.by_id["i1"] = replace(store.incidents.by_id["i1"], hops=hops)
    found = await reassigned(press(ButtonAction.REASSIGN, "bookings"), store, chat)
    assert found.hops == hops
    assert [message for _, message in chat.posted] == [Notice(TOO_MANY_HOPS)]
    assert (len(store.tasks.added), judged(store)) == (0, [])


async def test_whoever_has_the_form_before_them_is_not_asked_in_the_thread_as_well(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    poster = Poster(store, {Platform.SLACK: chat})
    in_form = replace(press(ButtonAction.HAND_OVER), in_form=True)
    await ask_for_owner(in_form, some_ports(teams=TEAMS, store=store, poster=poster))
    assert chat.posted == []


async def test_the_team_that_was_picked_owns_it_from_then_on_and_the_proposal_was_wrong(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    found = await reassigned(press(ButtonAction.REASSIGN, "bookings", "the  ledger\nis theirs"), store, chat)
    assert found.hops == (Hop("payments", "bookings", "Ada", "the ledger is theirs", NOW, ("channel:payments",)),)
    assert found.findings.owner is not None
    assert found.findings.owner.owner == TeamScore("bookings", "Bookings", 1.0, ("Ada gave it to Bookings",))
    assert found.findings.owner.on_call == ("Mira",)
    assert found.taken_by == ""
    assert judged(store) == [False]
    assert store.predictions.by_id[found.findings.owner.prediction_id].engine == ENGINE
    assert [task.workflow for task in store.tasks.added.values()] == ["present_incident"]


async def test_given_to_the_team_that_was_proposed_the_proposal_was_right(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    found = await reassigned(press(ButtonAction.REASSIGN, "payments"), store, chat)
    assert judged(store) == [True]
    assert found.turned_away == frozenset()


async def test_not_ours_takes_the_team_out_and_the_others_negotiate_on(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    found = await reassigned(press(ButtonAction.NOT_OURS, text="no ledger here"), store, chat)
    assert found.turned_away == {"payments"}
    assert judged(store) == [False]
    assert [(task.workflow, task.subject) for task in store.tasks.added.values()] == [("triage_again", "i1")]


async def test_a_step_that_runs_twice_makes_one_hop_and_one_task(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await reassigned(press(ButtonAction.NOT_OURS), store, chat)
    found = await reassigned(press(ButtonAction.NOT_OURS), store, chat)
    assert len(found.hops) == 1
    assert len(store.tasks.added) == 1


async def test_a_team_that_was_renamed_since_it_was_offered_gets_it_under_its_new_name(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    found = await reassigned(press(ButtonAction.REASSIGN, "berths"), store, chat)
    assert (found.hops[-1].given_to, found.findings.owner and found.findings.owner.on_call) == ("bookings", ("Mira",))


@pytest.mark.parametrize("choice", ["", "payroll"])
async def test_without_a_team_that_there_is_nothing_moves_and_it_is_said(
    store: InMemoryStore, chat: RecordingMessenger, choice: str
) -> None:
    found = await reassigned(press(ButtonAction.REASSIGN, choice), store, chat)
    assert found.hops == ()
    assert [message for _, message in chat.posted] == [Notice(PICK_TEAM, only_for=ADA)]


async def test_where_nobody_was_named_nothing_is_judged_and_the_others_are_asked_no_more(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=unclear_owner())
    found = await reassigned(press(ButtonAction.REASSIGN, "bookings"), store, chat)
    assert found.findings.owner is not None
    assert found.findings.owner.asked == ()
    assert found.hops[0].turned_away == ""
    assert judged(store) == []


async def test_an_incident_that_is_not_stored_cannot_be_handed_over(chat: RecordingMessenger) -> None:
    store = InMemoryStore()
    poster = Poster(store, {Platform.SLACK: chat})
    await reassign_incident(
        press(ButtonAction.NOT_OURS), some_ports(teams=TEAMS, store=store, clock=FakeClock(), poster=poster)
    )
    await ask_for_owner(press(ButtonAction.HAND_OVER), some_ports(teams=TEAMS, store=store, poster=poster))
    assert chat.posted == []


def test_a_team_that_gets_it_back_is_no_longer_turned_away() -> None:
    hops = (Hop("payments", "bookings", "Ada", "", NOW), Hop("bookings", "payments", "Mira", "", NOW))
    assert explained_incident(hops=hops).turned_away == {"bookings"}


def somebody_else_presses(store: InMemoryStore, monkeypatch: pytest.MonkeyPatch) -> Hop:
    """“Not ours”, while the next button's label is stored."""
    meanwhile = Hop("payments", "", "Mira", "not ours", NOW)

    async def pressed(_predictions: object, _outcome: Outcome) -> None:
        store.incidents.by_id["i1"] = replace(store.incidents.by_id["i1"], hops=(meanwhile,))

    monkeypatch.setattr(type(store.predictions), "label", pressed)
    return meanwhile


async def test_of_two_who_hand_it_over_at_once_neither_hop_is_lost(
    store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    somebody_else_presses(store, monkeypatch)
    found = await reassigned(press(ButtonAction.REASSIGN, "bookings"), store, chat)
    assert [hop.person for hop in found.hops] == ["Mira", "Ada"]


async def test_who_was_asked_about_one_team_says_nothing_of_the_one_that_stands_there_by_now(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    asked_of = replace(press(ButtonAction.NOT_OURS), subject="owner-1")
    await reassigned(asked_of, store, chat)
    next_one = owner(owner=TeamScore("bookings", "Bookings", 0.7), prediction_id="owner-2")
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=next_one)
    mira = replace(asked_of, id="later", person=Person(Platform.SLACK, "U2", "Mira"))
    found = await reassigned(mira, store, chat)
    assert found.turned_away == {"payments"}
    assert [outcome.prediction_id for outcome in store.predictions.outcomes.values()] == ["owner-1"]
    assert len(store.tasks.added) == 1
    assert [message for _, message in chat.posted] == [Notice(OVERTAKEN, only_for=mira.person)]


async def test_the_team_that_somebody_picks_gets_it_whoever_stands_there_by_now(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    next_one = owner(owner=TeamScore("fleet", "Fleet", 0.7), prediction_id="owner-2")
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=next_one)
    found = await reassigned(replace(press(ButtonAction.REASSIGN, "bookings"), subject="owner-1"), store, chat)
    assert (found.hops[-1].turned_away, found.hops[-1].given_to) == ("fleet", "bookings")


async def test_a_step_that_runs_again_after_the_next_team_was_found_makes_its_task_all_the_same(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    asked_of = replace(press(ButtonAction.NOT_OURS), subject="owner-1")
    await reassigned(asked_of, store, chat)
    store.tasks.added.clear()
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=owner(owner=None))
    await reassigned(asked_of, store, chat)
    assert [task.workflow for task in store.tasks.added.values()] == ["triage_again"]


def said_by(name: str, feedback: Feedback) -> Feedback:
    return replace(feedback, id=f"{feedback.id} {name} later", person=Person(Platform.SLACK, name, name), at=LATER)


@pytest.mark.parametrize("pressed", [press(ButtonAction.NOT_OURS), press(ButtonAction.REASSIGN, "bookings")])
@pytest.mark.parametrize("name", ["Ada", "Bo"])
async def test_what_was_said_before_moves_nothing_and_takes_it_from_nobody(
    store: InMemoryStore, chat: RecordingMessenger, pressed: Feedback, name: str
) -> None:
    once = await reassigned(pressed, store, chat)
    store.incidents.by_id["i1"] = replace(once, taken_by="Mira")
    tasks, labels = dict(store.tasks.added), judged(store)
    found = await reassigned(said_by(name, pressed), store, chat)
    assert (found.hops, found.taken_by) == (once.hops, "Mira")
    assert store.tasks.added == tasks
    assert len(judged(store)) == len(labels) + (name == "Bo"), "nobody confirms what they said themselves"


async def test_of_two_who_say_at_once_that_it_is_not_theirs_one_moves_it(
    store: InMemoryStore, chat: RecordingMessenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile = somebody_else_presses(store, monkeypatch)
    found = await reassigned(press(ButtonAction.NOT_OURS), store, chat)
    assert found.hops == (meanwhile,)
    assert not store.tasks.added


async def test_given_to_the_proposed_team_under_its_new_name_the_proposal_was_right(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    proposed = owner(owner=TeamScore("berths", "Berths", 0.7))
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=proposed)
    assert "bookings" not in dict(handover_request(store.incidents.by_id["i1"], TEAMS).teams)
    found = await reassigned(press(ButtonAction.REASSIGN, "bookings"), store, chat)
    assert (judged(store), found.turned_away) == ([True], frozenset())


@pytest.mark.parametrize("name", ["Asha Brandt", "Lee"])
async def test_of_those_that_are_asked_the_team_whose_person_says_no_is_turned_away(
    store: InMemoryStore, chat: RecordingMessenger, name: str
) -> None:
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=unclear_owner())
    poster = Poster(store, {Platform.SLACK: chat})
    teams = (replace(PAYMENTS, members=frozenset({"Lee"})), BOOKINGS)
    said = said_by(name, press(ButtonAction.NOT_OURS))
    await reassign_incident(said, some_ports(teams=teams, store=store, clock=FakeClock(), poster=poster))
    assert store.incidents.by_id["i1"].turned_away == {"payments"}
    assert [task.workflow for task in store.tasks.added.values()] == ["triage_again"]
    assert judged(store) == []


async def test_who_speaks_for_none_of_those_that_are_asked_moves_nothing_and_is_told(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(owner=unclear_owner())
    found = await reassigned(press(ButtonAction.NOT_OURS), store, chat)
    assert found.hops == ()
    assert [message for _, message in chat.posted] == [Notice(TEAM_UNKNOWN, only_for=ADA)]
    assert not store.tasks.added


async def test_whoever_asks_in_another_place_of_the_incident_is_asked_there(
    store: InMemoryStore, chat: RecordingMessenger
) -> None:
    poster = Poster(store, {Platform.SLACK: chat})
    copy = Place(Platform.SLACK, "C0COPY", "18.25")
    for place in (THREAD, copy, copy):
        pressed = replace(press(ButtonAction.HAND_OVER), place=place)
        await ask_for_owner(pressed, some_ports(teams=TEAMS, store=store, poster=poster))
    assert [place for place, _ in chat.posted] == [THREAD, copy]
