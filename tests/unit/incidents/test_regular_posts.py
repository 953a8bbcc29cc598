"""The texts of handovers and digests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.incidents.handover import (
    CALM,
    NOTHING,
    PostLine,
    Shift,
    Week,
    cut_lines,
    format_digest,
    format_handover,
    missing_pages,
)
from core.model.alert import Severity
from core.model.badge import PredictionKind
from core.model.incident import IncidentState
from core.ports import Change
from tests.samples import explained_incident

MAX_LISTED, MAX_TEXT = 8, 3_000  # of a section, and of what every chat shows in one message
NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)
BEGAN = NOW - timedelta(hours=12)
DEPLOY = Change("d1", NOW - timedelta(minutes=10), "deployment", "till", "ada", "till 1.8")
EMPTY = Shift(BEGAN, NOW, (), {}, (), (), ())


def text_of(lines: list[PostLine]) -> str:
    return "\n".join(line.text for line in lines)


def test_a_quiet_shift_is_told_in_a_sentence() -> None:
    assert text_of(format_handover(EMPTY)) == f"Handover. The shift began Fri 21:00 UTC.\n{NOTHING}"


def test_the_worst_is_told_first_and_what_was_held_back_has_its_reason() -> None:
    mild = explained_incident(id="i1", title="Disk is filling", severity=Severity.INFO)
    bad = explained_incident(id="i2", title="Till is down", severity=Severity.CRITICAL, flapping=True)
    held = explained_incident(id="i3", title="Mail is late")
    text = text_of(format_handover(replace(EMPTY, incidents=(mild, bad, held), held={"i3": "the channel was quiet"})))
    assert text.index("Till is down") < text.index("Disk is filling") < text.index("Held back:")
    assert "Mail is late: the channel was quiet" in text
    assert "Till is down: it fires and resolves again and again" in text.partition("Watch:")[2]


def test_changes_under_way_come_with_maintenance_and_what_was_not_read() -> None:
    shift = replace(EMPTY, changes=(DEPLOY,), windows=("ledger, until 10:00 UTC",), unread=("GitHub",))
    text = text_of(format_handover(shift))
    assert text.endswith(
        "Changes:\n• Maintenance: ledger, until 10:00 UTC\n• 08:50 UTC: deployment of till by ada: till 1.8\n"
        "• GitHub could not be read"
    )


def test_a_storm_fits_into_one_message_and_the_rest_is_counted() -> None:
    many = [explained_incident(id=f"i{number}", title="x" * 4_000) for number in range(40)]
    lines = format_handover(replace(EMPTY, incidents=many))
    assert len(text_of(lines)) <= MAX_TEXT
    assert lines[-1] == PostLine(f"• and {40 - MAX_LISTED} more", count=40 - MAX_LISTED, has_more=True)
    assert [line.incident_id for line in lines[2:-1]] == [f"i{number}" for number in range(MAX_LISTED)]


def test_what_does_not_fit_is_counted_once_without_a_heading_alone() -> None:
    heading, entries = PostLine("Open:", count=0), [PostLine(f"• {'x' * 492}") for _ in range(6)]
    more, other = PostLine("• and 4 more", count=4, has_more=True), PostLine("• a change")
    lines = cut_lines([heading, *entries, more, PostLine("Changes:", count=0), other])
    assert lines == [heading, *entries, PostLine("• and 5 more", count=5, has_more=True)]
    assert cut_lines([heading, *entries, *entries]) == [
        heading,
        *entries,
        PostLine("• and 6 more", count=6, has_more=True),
    ]
    assert cut_lines([heading, other]) == [heading, other]


def test_no_more_entries_are_left_out_than_do_not_fit() -> None:
    heading, entries = PostLine("Open:", count=0), [PostLine(f"• {'x' * 490}") for _ in range(7)]
    assert cut_lines([heading, *entries]) == [
        heading,
        *entries[:6],
        PostLine("• and 1 more", count=1, has_more=True),
    ]


def test_count_of_others_takes_in_that_of_section_before_whose_entry_does_not_fit() -> None:
    heading, entry = PostLine("Open:", count=0), PostLine(f"• {'x' * 493}")
    more, changes = PostLine("• and 4 more", count=4, has_more=True), PostLine("Changes:", count=0)
    assert cut_lines([heading, *[entry] * 5, more, changes, entry]) == [
        heading,
        *[entry] * 5,
        PostLine("• and 5 more", count=5, has_more=True),
    ]


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
    text = text_of(format_digest(week))
    assert text.startswith("Digest of the last 7 days.\n2 incidents, 1 still open.\nBy cause: ")
    assert "Median time to owner: 2 min and to cause: 2 min" in text
    assert "Right, of those that people judged: 2 of 3 owners, 1 of 1 cause." in text


def test_a_week_without_anything_is_told_in_a_sentence() -> None:
    week = Week(timedelta(days=7), [], [], [], {}, [])
    assert text_of(format_digest(week)) == f"Digest of the last 7 days.\n{CALM}"
