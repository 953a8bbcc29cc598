from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.incident_questions import Command, CommandName, parse_command
from core.model.alert import Severity
from core.model.errors import MalformedInput
from core.model.silences import QuietHours, parse_quiet_hours
from tests.cases import every_case

BERLIN = QuietHours(time(22), time(7), "Europe/Berlin")


@every_case(
    ("text", "quiet"),
    [
        ("22:00-07:00 Europe/Berlin", BERLIN),
        (" 22:00 – 7:00  europe/berlin ".replace("europe/berlin", "Europe/Berlin"), BERLIN),
        ("22:00 to 07:00", QuietHours(time(22), time(7), "UTC")),
        ("00:00-23:59 UTC except warning", QuietHours(time(0), time(23, 59), "UTC", Severity.WARNING)),
        ("12:30-13:30 except info", QuietHours(time(12, 30), time(13, 30), "UTC", Severity.INFO)),
        ("off", None),
        (" OFF ", None),
    ],
)
def test_quiet_hours_are_read_as_people_write_them(text: str, quiet: QuietHours | None) -> None:
    assert parse_quiet_hours(text) == quiet


@every_case(
    ("text", "because"),
    [
        ("22-7", "don’t understand"),
        ("", "don’t understand"),
        ("22:00-07:00 Europe/Berlin please", "don’t understand"),
        ("25:00-07:00", "00:00 to 23:59"),
        ("22:60-07:00", "00:00 to 23:59"),
        ("22:00-22:00", "different times"),
        ("22:00-07:00 Mars/Olympus", "no time zone"),
        ("22:00-07:00 Europe", "no time zone"),
        ("22:00-07:00 except nothing", "no severity"),
    ],
)
def test_other_words_are_answered_with_what_to_write(text: str, because: str) -> None:
    with pytest.raises(MalformedInput, match=because):
        parse_quiet_hours(text)


@given(st.text(max_size=60))
def test_whatever_is_written_is_understood_or_explained(text: str) -> None:
    with suppress(MalformedInput):
        quiet = parse_quiet_hours(text)
        assert quiet is None or quiet.start != quiet.end


@every_case(
    ("at", "quiet"),
    [
        ("2026-03-14T20:59:59+00:00", False),
        ("2026-03-14T21:00:00+00:00", True),
        ("2026-03-15T05:59:59+00:00", True),
        ("2026-03-15T06:00:00+00:00", False),
        ("2026-07-15T05:00:00+00:00", False),  # summer time
        ("2026-07-15T04:59:59+00:00", True),
    ],
)
def test_quiet_hours_go_by_the_clocks_of_their_zone(at: str, quiet: bool) -> None:
    assert BERLIN.cover(datetime.fromisoformat(at)) is quiet


@given(
    st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    st.times().map(lambda each: each.replace(second=0, microsecond=0)),
    st.datetimes(timezones=st.just(UTC), min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1)),  # noqa: DTZ001
)
def test_what_is_left_of_them_ends_where_they_end(start: time, end: time, now: datetime) -> None:
    quiet = QuietHours(start, end)
    if start != end and quiet.cover(now):
        left = quiet.left(now)
        assert timedelta() < left <= timedelta(days=1)
        assert not quiet.cover(now + left)
        assert quiet.cover(now + left - timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("loud", "held"),
    [(Severity.CRITICAL, {"warning", "info"}), (Severity.WARNING, {"info"}), (Severity.INFO, set[str]())],
)
def test_incidents_below_the_loud_severity_are_held_while_it_is_quiet(loud: Severity, held: set[str]) -> None:
    night, day = datetime(2026, 3, 14, 23, tzinfo=UTC), datetime(2026, 3, 14, 12, tzinfo=UTC)
    quiet = QuietHours(time(22), time(7), "UTC", loud)
    assert {str(each) for each in Severity if quiet.hold(each, night)} == held
    assert not any(quiet.hold(each, day) for each in Severity)


@every_case(
    ("text", "command"),
    [
        ("settings", Command(CommandName.SETTINGS)),
        ("quiet", Command(CommandName.QUIET)),
        ("quiet off", Command(CommandName.QUIET, "off")),
        ("Quiet 22:00-07:00 Europe/Berlin", Command(CommandName.QUIET, "22:00-07:00 Europe/Berlin")),
        ("quiet 25", Command(CommandName.QUIET, "25")),
        ("quiet hours for the ferry radio?", Command(CommandName.ASK, "quiet hours for the ferry radio?")),
        ("settings of the till?", Command(CommandName.ASK, "settings of the till?")),
    ],
)
def test_a_question_that_begins_like_a_command_stays_a_question(text: str, command: Command) -> None:
    assert parse_command(text) == command
