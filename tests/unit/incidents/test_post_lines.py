"""Each line of handovers, digests and the list of a storm."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.handover import (
    NOTHING,
    ListedIncident,
    MissingPage,
    Shift,
    Week,
    format_digest,
    format_handover,
    missing_pages,
    storm_summary,
)
from core.model.alert import Severity
from core.model.badge import PredictionKind
from core.model.findings import Origin, Relation, RelationKind
from core.model.incident import Incident, IncidentState
from core.ports import Change
from tests.samples import explained_incident, explanation, hypothesis, incident, owner

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FRESH = timedelta(hours=1)
MAX_LISTED, STORM_LISTED = 6, 30  # of a digest, and of a storm
EMPTY = Shift(NOW - timedelta(hours=12), NOW, (), {}, (), (), ())
PART = (Relation(RelationKind.PART_OF, "whole", at=NOW),)


def handover(**fields: object) -> list[str]:
    """The lines without the first, which says when the shift began."""
    return [line.text for line in format_handover(replace(EMPTY, **fields))][1:]


def over(at: datetime, **fields: object) -> Incident:
    return incident(state=IncidentState.RESOLVED, resolved_at=at, **fields)


# --- a handover -------------------------------------------------------------------------------------------------------


def test_an_open_incident_is_told_with_its_owner_its_cause_and_the_next_step() -> None:
    heading, line = handover(incidents=(explained_incident(),))
    assert heading == "Open:"
    assert line.startswith("• 🔴 payment-gateway p99 latency above 2 s · since Sat 09:30 UTC · ")
    assert "possible cause: A configuration change" in line
    assert f"next: {hypothesis().next_check}" in line
    assert handover(incidents=(incident(taken_by="Ada", severity=Severity.WARNING),))[1] == (
        "• 🟠 payment-gateway p99 latency above 2 s · since Sat 09:30 UTC · Ada · no cause found"
    )


def test_parts_and_what_was_held_back_are_not_listed_as_open() -> None:
    assert handover(incidents=(incident(relations=PART),)) == [NOTHING]
    held = over(NOW - 2 * MINUTE, id="held")
    assert handover(incidents=(held,), held={"held": "it was quiet"}) == [
        "Held back:",
        "• ✅ payment-gateway p99 latency above 2 s: it was quiet, over since 08:58 UTC",
    ]


def test_what_may_come_back_is_watched() -> None:
    cases: list[tuple[Incident, str]] = [
        (incident(flapping=True, reopened_count=5), "it fires and resolves again and again"),
        (incident(reopened_count=1), "it came back once"),
        (incident(reopened_count=2), "it came back 2 times"),
        (over(NOW - FRESH), "over only since 08:00 UTC"),
        (over(NOW - FRESH, reopened_count=2), "over only since 08:00 UTC"),
        (over(NOW), "over only since 09:00 UTC"),
        (over(NOW - FRESH - MINUTE), ""),
        (incident(), ""),
    ]
    for shown, reason in cases:
        lines = handover(incidents=(shown,))
        watched = lines[lines.index("Watch:") + 1 :] if "Watch:" in lines else []
        assert watched == ([] if not reason else [watched[0]]), (shown, reason)
        assert not reason or watched[0].endswith(f": {reason}"), (shown, reason)


def test_changes_are_told_the_latest_first_and_who_is_on_call_first_of_all() -> None:
    first = Change("a", NOW - 3 * MINUTE, "flag", "", "", "fast lane on", "")
    second = replace(first, id="b", at=NOW - MINUTE, kind="deploy", service="till", author="Ada", title="till 2")
    assert handover(changes=(first, second), on_call=(("Payments", "Asha"),)) == [
        "On call now:",
        "• Payments: Asha",
        "Changes:",
        "• 08:59 UTC: deploy of till by Ada: till 2",
        "• 08:57 UTC: flag: fast lane on",
    ]
    assert handover(on_call=(("Payments", "Asha"),))[-1] == NOTHING


# --- a digest ---------------------------------------------------------------------------------------------------------

WEEK = Week(timedelta(days=7), (), (), (), {}, ())


def digest(**fields: object) -> list[str]:
    return [line.text for line in format_digest(replace(WEEK, **fields))]


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(days=7), "Digest of the last 7 days."),
        (timedelta(days=1.6), "Digest of the last 2 days."),
        (timedelta(days=1), "Digest of the last day."),
        (timedelta(hours=2), "Digest of the last day."),
    ],
)
def test_a_digest_says_of_how_many_days_it_is(length: timedelta, text: str) -> None:
    assert digest(length=length)[0] == text


def caused(origin: Origin, number: int) -> Incident:
    found = explanation(hypotheses=(replace(hypothesis(), origin=origin),))
    return incident(id=f"i{number}", explanation=found, owner=owner())


def test_incidents_are_counted_by_cause_and_the_rarest_together() -> None:
    causes = [caused(origin, number) for number, origin in enumerate([*Origin, Origin.CHANGE])]
    lines = digest(incidents=(*causes, incident(id="open"), over(NOW, id="over"), incident(id="part", relations=PART)))
    assert lines[1] == f"{len(causes) + 2} incidents, {len(causes) + 1} still open."
    counts = lines[2].removeprefix("By cause: ").removesuffix(".").split(", ")
    assert counts[0] == "a change 2"
    assert "no cause found 2" in counts
    assert counts[-1] == f"others {len(Origin) + 1 - MAX_LISTED}"
    assert len(counts) == MAX_LISTED + 1


def test_times_are_medians_of_what_is_known() -> None:
    times = [1 * MINUTE, 3 * MINUTE, 90 * MINUTE]
    assert digest(incidents=(incident(),), to_owner=times)[-1] == "Median time to owner: 3 min."
    assert digest(incidents=(incident(),), to_cause=times)[-1] == "Median time to cause: 3 min."
    assert not any("Median" in line for line in digest(incidents=(incident(),)))


def test_outcomes_are_counted_of_kinds_that_were_judged() -> None:
    judged = {PredictionKind.OWNER: (True, False), PredictionKind.CAUSE: (), PredictionKind.ANSWER: (True,)}
    assert digest(judged=judged)[1] == "Right, of those that people judged: 1 of 2 owners, 1 of 1 answer."


def test_missing_pages_are_listed_with_their_number_of_questions_and_who_may_know() -> None:
    pages = [MissingPage(("How?", "How so?", "How come?"), "Ada"), MissingPage(("Why?",))]
    heading, first, second = digest(missing=pages)[1:]
    assert heading == "Missing pages, by the questions that nobody could answer:"
    assert "How?" in first
    assert "2 similar questions" in first
    assert "Ada may know" in first
    assert "similar" not in second
    assert "may know" not in second
    many = digest(missing=[MissingPage((f"Question {number}?",)) for number in range(MAX_LISTED + 2)])
    assert many[-1] == "• and 2 more"


def test_questions_are_alike_if_four_of_ten_terms_are_common() -> None:
    cases: list[tuple[str, str, bool]] = [
        ("disk quota", "disk quota", True),
        ("disk quota zinc", "disk quota pump", True),  # 2 of 4
        ("disk quota zinc lock", "disk quota zinc pump cable", True),  # 3 of 6
        ("disk zinc lock", "disk pump cable", False),  # 1 of 5
        ("disk quota lock", "disk quota zinc pump", True),  # 2 of 5
        ("the", "a", False),
    ]
    for one, other, alike in cases:
        assert (len(missing_pages([one, other])) == 1) is alike, (one, other, alike)


# --- the list of a storm ----------------------------------------------------------------------------------------------


CALLS = {"api": ("db",), "web": ("api",), "mail": ("db",)}


def storm(listed: list[ListedIncident], more: int = 0) -> list[str]:
    return [line.text for line in storm_summary(listed, more, CALLS)]


def in_storm(name: str, count: int = 1, **fields: object) -> ListedIncident:
    return ListedIncident(
        incident(**{"id": name, "title": name, "service": ""} | fields), count, NOW, f"https://x/{name}"
    )


def test_a_storm_is_counted_with_what_was_not_read_and_says_what_leaves_the_list() -> None:
    lines = storm([in_storm("a", 2), in_storm("b", state=IncidentState.RESOLVED)], more=4)
    assert lines[0] == "Many alerts at once: 6 incidents with 7 alerts since 09:00 UTC, 1 still open."
    assert lines[1:3] == ["• 🔴 a · 2 alerts · no owner yet", "• ✅ b · over"]
    assert lines[3] == "• and 4 more"
    assert "a cause of its own" in lines[4]
    assert storm([in_storm("a")], more=4)[0].endswith(", at least 1 still open.")
    for more in (0, 4):
        assert storm([in_storm("b", state=IncidentState.RESOLVED)], more)[-1] == "All of them are over."


def test_each_incident_of_a_storm_links_to_where_more_is_known_of_it() -> None:
    linked = storm_summary([in_storm("a"), in_storm("b")], 0, CALLS)
    assert [line.url for line in linked] == ["", "https://x/a", "https://x/b", ""]


def test_those_without_a_line_are_named_by_service() -> None:
    mild = [in_storm(f"m{number}", severity=Severity.INFO) for number in range(STORM_LISTED)]
    lines = storm([in_storm("bad"), *mild, in_storm("over", state=IncidentState.RESOLVED)])
    assert lines[1].startswith("• 🔴 bad")
    assert lines[2].startswith("• 🔵 m0")
    assert len(lines) == 1 + STORM_LISTED + 1 + 1
    assert lines[-2] == f"• and 2 more: m{STORM_LISTED - 1}, over"


def test_what_joins_most_of_a_storm_is_said_once() -> None:
    both = [in_storm("a", labels={"zone": "z1", "node": "n1"}), in_storm("b", labels={"zone": "z1", "node": "n2"})]
    assert storm(both)[0].endswith("2 still open. All are in zone z1.")
    assert storm([*both, in_storm("c")])[0].endswith("3 still open. 2 of 3 are in zone z1.")
    assert storm([in_storm(name, service=name) for name in CALLS])[0].endswith(" All depend on db.")
    for nothing in (both[:1], [both[0], in_storm("c")], [in_storm("c"), in_storm("d")]):
        assert storm(nothing)[0].endswith("still open.")


def test_a_service_is_named_unless_the_title_does() -> None:
    assert storm([in_storm("till is slow", service="till")])[1] == "• 🔴 till is slow · no owner yet"
    assert storm([in_storm("It is slow", service="till")])[1] == "• 🔴 It is slow · till · no owner yet"
