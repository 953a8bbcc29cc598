from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from core.model.audit import MAX_DETAIL, MAX_DOCUMENTS, PLUMBLINE, Act, audit_entry, since
from core.model.conversation import Person, Place, Platform
from core.model.errors import MalformedInput
from tests.cases import every_case

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
ADA = Person(Platform.SLACK, "U1", "Ada")


def test_a_person_is_named_by_platform_and_id_and_a_place_by_all_that_tells_it() -> None:
    place = Place(Platform.TEAMS, "19:x@thread.tacv2", "17", "tenant")
    entry = audit_entry("k", NOW, Act.ASKED, ADA, "slack:C1:17", place=place)
    assert (entry.actor, entry.place) == ("slack:U1", "teams:tenant:19:x@thread.tacv2:17")
    assert audit_entry("k", NOW, Act.RETAINED, PLUMBLINE, "policy").actor == "plumbline"


def test_what_comes_from_outside_is_cut_and_freed_of_what_a_terminal_would_obey() -> None:
    documents = tuple(f"d{number}" for number in range(2 * MAX_DOCUMENTS))
    entry = audit_entry("k", NOW, Act.VIEWED, ADA, "\x1b[2J/incidents\n\ud800", documents=documents, detail="x" * 999)
    assert entry.subject == "�[2J/incidents��"
    assert len(entry.documents) == MAX_DOCUMENTS
    assert len(entry.detail) == MAX_DETAIL


def test_a_span_a_day_and_a_time_are_understood() -> None:
    cases: list[tuple[str, datetime]] = [
        ("90m", NOW - timedelta(minutes=90)),
        ("24h", NOW - timedelta(hours=24)),
        ("7d", NOW - timedelta(days=7)),
        ("9999w", NOW - timedelta(weeks=9999)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00+02:00", datetime(2026, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))),
    ]
    for text, moment in cases:
        assert since(text, NOW) == moment, (text, moment)


@every_case("text", ["", "yesterday", "7", "10000d", "7 d", "-1d", "2026-13-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(MalformedInput, match="is not a time"):
        since(text, NOW)
