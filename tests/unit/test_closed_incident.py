from __future__ import annotations

from dataclasses import replace

import pytest

from core.closed_incident import closed_incident
from core.confidence.resolution import Resolution
from core.incident import Hop
from core.team import Team, team_named
from tests.fakes.messages import START, resolved_incident

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


@pytest.mark.parametrize(
    ("text", "team"),
    [
        ("payments", "payments"),
        ("Payments team.", "payments"),
        ("team PAYMENTS", "payments"),
        ("@reservations", "bookings"),
        ("bookings & seats", "bookings"),
        ("pay", None),
        ("", None),
    ],
)
def test_a_team_is_known_by_its_id_its_name_and_its_aliases(text: str, team: str | None) -> None:
    named = team_named(text, TEAMS)
    assert (named.id if named else None) == team
