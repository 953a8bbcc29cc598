from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.incident import Hop, Incident, IncidentState, OwnerLabels, Resolution, closed_incident
from core.model.team import NOBODY, Team, team_named
from tests.samples import START, resolved_incident

TEAMS = (Team("payments", "Payments"), Team("bookings", "Bookings & Seats", aliases=("reservations",)))
READERS = frozenset({"channel:incidents"})


def test_a_noted_incident_becomes_history_with_the_owner_that_the_note_names() -> None:
    note = Resolution("The pool was too small.", "Pool back to 40.", "reservations")
    past = closed_incident(replace(resolved_incident(), resolution=note), TEAMS, READERS)
    assert past is not None
    assert (past.owner, past.root_cause, past.fix) == ("bookings", note.root_cause, note.fix)
    assert (past.id, past.service, past.started_at, past.readers) == ("incident-1", "payment-gateway", START, READERS)


def test_what_was_only_proposed_is_no_owner() -> None:
    past = closed_incident(replace(resolved_incident(), resolution=Resolution("The pool.")), TEAMS, READERS)
    assert past is not None
    assert past.owner == ""


def test_what_people_gave_it_to_last_is_its_owner_where_the_note_names_none_and_who_turned_it_away_is_kept() -> None:
    hops = (Hop("payments", "", "Ada", "", START), Hop("fleet", "bookings", "Ada", "", START))
    moved = replace(resolved_incident(), resolution=Resolution("The pool."), hops=hops, taken_by="Ada")
    past = closed_incident(moved, TEAMS, READERS)
    assert past is not None
    assert (past.owner, past.reassignments) == ("bookings", ("payments", "fleet"))


@pytest.mark.parametrize(("person", "owner"), [("Mira", "bookings"), ("Grace", ""), ("Somebody", ""), ("", "")])
def test_else_it_was_the_only_team_that_has_on_call_who_took_it(person: str, owner: str) -> None:
    teams = (replace(TEAMS[0], on_call=("Ada", "Grace")), replace(TEAMS[1], on_call=("Mira", "Grace")))
    taken = replace(resolved_incident(), resolution=Resolution("The pool."), taken_by=person)
    past = closed_incident(taken, teams, READERS)
    assert past is not None
    assert past.owner == owner


def test_without_a_note_there_is_nothing_to_learn() -> None:
    assert closed_incident(resolved_incident(), TEAMS, READERS) is None


def test_a_team_is_known_by_its_id_its_name_and_its_aliases() -> None:
    cases: list[tuple[str, str | None]] = [
        ("payments", "payments"),
        ("Payments team.", "payments"),
        ("team PAYMENTS", "payments"),
        ("@reservations", "bookings"),
        ("bookings & seats", "bookings"),
        ("pay", None),
        ("", None),
    ]
    for text, team in cases:
        named = team_named(text, TEAMS)
        assert (named.id if named else None) == team, (text, team)


# --- without a note ----------------------------------------------------------------------------------------------------

SEATS = (replace(TEAMS[0], on_call=("Ada",)), replace(TEAMS[1], on_call=("Mira",), members=frozenset({"Grace"})))


def gave(team: str, *, away: str = "") -> tuple[Hop, ...]:
    return (Hop(away, team, "Ada", "", START),)


def test_an_incident_that_was_taken_reassigned_or_confirmed_trains_the_next_triage() -> None:
    cases: list[tuple[Incident, OwnerLabels, str]] = [
        (replace(resolved_incident(), taken_by="Mira"), OwnerLabels(), "bookings"),
        (replace(resolved_incident(), taken_by="Grace"), OwnerLabels(), "bookings"),
        (replace(resolved_incident(), hops=gave("bookings", away="payments")), OwnerLabels(), "bookings"),
        (replace(resolved_incident(), hops=gave("reservations")), OwnerLabels(), "bookings"),
        (resolved_incident(), OwnerLabels("payments"), "payments"),
        (replace(resolved_incident(), taken_by="Mira", hops=gave("bookings")), OwnerLabels("bookings"), "bookings"),
    ]
    for incident, labels, owner in cases:
        past = closed_incident(incident, SEATS, READERS, labels)
        assert past is not None, (incident, labels, owner)
        assert (past.owner, past.root_cause) == (owner, ""), (incident, labels, owner)


def test_what_nobody_said_what_is_disputed_and_what_is_not_over_trains_nothing() -> None:
    cases: list[tuple[Incident, OwnerLabels]] = [
        (resolved_incident(), OwnerLabels()),
        (replace(resolved_incident(), taken_by="Somebody"), OwnerLabels()),
        (replace(resolved_incident(), taken_by="Ada", hops=gave("bookings")), OwnerLabels()),
        (replace(resolved_incident(), taken_by="Mira"), OwnerLabels("payments")),
        (replace(resolved_incident(), taken_by="Mira"), OwnerLabels(wrong=frozenset({"bookings"}))),
        (replace(resolved_incident(), taken_by="Mira", hops=gave("", away="bookings")), OwnerLabels()),
        (replace(resolved_incident(), taken_by="Mira", state=IncidentState.OPEN, resolved_at=None), OwnerLabels()),
    ]
    for incident, labels in cases:
        assert closed_incident(incident, SEATS, READERS, labels) is None, (incident, labels)


@pytest.mark.parametrize("said", ["nobody", "No team.", "none"])
def test_a_note_can_say_that_it_was_nobodys_whoever_took_it(said: str) -> None:
    past = closed_incident(
        replace(resolved_incident(), taken_by="Mira", resolution=Resolution("a test alarm", owner=said)), SEATS, READERS
    )
    assert past is not None
    assert past.owner == NOBODY
