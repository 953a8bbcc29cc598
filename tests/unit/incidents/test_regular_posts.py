"""The texts of handovers and digests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.incidents.digest import CALM, Week, format_digest, missing_pages
from core.incidents.handover import MAX_LISTED, MAX_TEXT, NOTHING, Shift, format_handover
from core.model.incident import IncidentState, Severity
from core.model.prediction import PredictionKind
from core.ports import Change
from tests.samples import explained_incident

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)
BEGAN = NOW - timedelta(hours=12)
DEPLOY = Change("d1", NOW - timedelta(minutes=10), "deployment", "till", "ada", "till 1.8")
EMPTY = Shift(BEGAN, NOW, (), {}, (), (), ())


def test_a_quiet_shift_is_told_in_a_sentence() -> None:
    assert format_handover(EMPTY) == f"Handover. The shift began Fri 21:00 UTC.\n{NOTHING}"


def test_the_worst_is_told_first_and_what_was_held_back_has_its_reason() -> None:
    mild = explained_incident(id="i1", title="Disk is filling", severity=Severity.INFO)
    bad = explained_incident(id="i2", title="Till is down", severity=Severity.CRITICAL, flapping=True)
    held = explained_incident(id="i3", title="Mail is late")
    text = format_handover(replace(EMPTY, incidents=(mild, bad, held), held={"i3": "the channel was quiet"}))
    assert text.index("Till is down") < text.index("Disk is filling") < text.index("Held back:")
    assert "Mail is late: the channel was quiet" in text
    assert "Till is down: it fires and resolves again and again" in text.partition("Watch:")[2]


def test_changes_under_way_come_with_maintenance_and_what_was_not_read() -> None:
    text = format_handover(replace(EMPTY, changes=(DEPLOY,), windows=("ledger, until 10:00 UTC",), unread=("GitHub",)))
    assert text.endswith(
        "Changes:\n• Maintenance: ledger, until 10:00 UTC\n• 08:50 UTC: deployment of till by ada: till 1.8\n"
        "• GitHub could not be read"
    )


def test_a_storm_fits_into_one_message_and_the_rest_is_counted() -> None:
    many = [explained_incident(id=f"i{number}", title="x" * 4_000) for number in range(40)]
    text = format_handover(replace(EMPTY, incidents=many))
    assert len(text) <= MAX_TEXT
    assert f"• and {40 - MAX_LISTED} more" in text


def test_similar_questions_are_one_missing_page_and_the_most_wanted_comes_first() -> None:
    pages = missing_pages(
        [
            "Where is the printer in Oslo?",
            "How do I rotate the ledger key?",
            "How do I rotate the key of the ledger safely?",
        ]
    )
    assert [len(page.questions) for page in pages] == [2, 1]
    assert pages[0].questions[0] == "How do I rotate the ledger key?"


def test_a_digest_counts_by_cause_and_owner_and_says_how_often_it_was_right() -> None:
    week = Week(
        timedelta(days=7),
        [explained_incident(id="i1"), explained_incident(id="i2", state=IncidentState.RESOLVED)],
        [timedelta(seconds=70), timedelta(minutes=3)],
        [timedelta(minutes=2)],
        {PredictionKind.OWNER: [True, True, False], PredictionKind.CAUSE: [True], PredictionKind.ANSWER: []},
        [],
    )
    text = format_digest(week)
    assert text.startswith("Digest of the last 7 days.\n2 incidents, 1 still open.\nBy cause: ")
    assert "Median time to owner: 2 min and to cause: 2 min" in text
    assert "Right, of those that people judged: 2 of 3 owners, 1 of 1 cause." in text


def test_a_week_without_anything_is_told_in_a_sentence() -> None:
    week = Week(timedelta(days=7), [], [], [], {}, [])
    assert format_digest(week) == f"Digest of the last 7 days.\n{CALM}"
