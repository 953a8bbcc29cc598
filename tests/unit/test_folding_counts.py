"""The counts, times and limits of an incident that alerts are folded into, and which late reports change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.folding import (
    fold,
    is_belated,
    open_from,
    reopens,
)
from core.model.alert import MAX_KEPT_ALERTS, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.incident import Incident, IncidentState, Resolution
from tests.cases import every_case

REOPEN_WINDOW, FLAP_WINDOW, REPLICA_LAG = timedelta(minutes=30), timedelta(hours=2), timedelta(seconds=45)
KEPT_REOPENINGS = 50
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
PLACE, OTHER_PLACE = Place(Platform.CONSOLE, "incidents"), Place(Platform.CONSOLE, "till")
FIRING = Alert("a", "LatencyHigh", AlertStatus.FIRING, Severity.WARNING, NOW)
RESOLVED = replace(FIRING, status=AlertStatus.RESOLVED)


def delivery(*alerts: Alert, at: datetime = NOW, **fields: object) -> AlertDelivery:
    return replace(AlertDelivery("key", "alertmanager", "group", alerts, at), **fields)


def opened(*alerts: Alert, omitted: int = 0) -> Incident:
    return open_from(delivery(*(alerts or (FIRING,)), omitted=omitted), "i1", PLACE)


def named(names: Sequence[str], status: AlertStatus = AlertStatus.FIRING) -> list[Alert]:
    """Alerts that began one second after the other."""
    return [
        replace(FIRING, fingerprint=name, status=status, starts_at=NOW + number * SECOND)
        for number, name in enumerate(names)
    ]


def numbered(first: int, after: int) -> list[str]:
    return [f"{number:03}" for number in range(first, after)]


# --- opened -----------------------------------------------------------------------------------------------------------


def test_an_incident_is_named_after_its_first_alert_and_begins_with_it() -> None:
    early = replace(
        FIRING, fingerprint="b", name="QueueLong", service="till", labels={"zone": "z1"}, starts_at=NOW - MINUTE
    )
    incident = open_from(delivery(FIRING, early, at=NOW + MINUTE), "i1", PLACE, (OTHER_PLACE,))
    assert (incident.title, incident.service, incident.labels) == ("QueueLong", "till", {"zone": "z1"})
    assert (incident.source, incident.group_key, incident.id) == ("alertmanager", "group", "i1")
    assert (incident.started_at, incident.opened_at, incident.updated_at) == (NOW - MINUTE, NOW + MINUTE, NOW + MINUTE)
    assert (incident.placement.place, incident.placement.also_in) == (PLACE, (OTHER_PLACE,))
    assert (incident.revision, incident.delivery_count, incident.alert_count, incident.reopened_count) == (1, 1, 2, 0)
    assert (incident.state, incident.resolved_at, incident.resolution) == (IncidentState.OPEN, None, None)
    assert [alert.fingerprint for alert in incident.alerts] == ["b", "a"], "the earliest first"
    assert opened(replace(FIRING, summary="It is slow.")).title == "It is slow."


def test_an_alert_that_was_over_before_the_others_began_moves_no_beginning() -> None:
    over = replace(RESOLVED, fingerprint="b", starts_at=NOW - MINUTE)
    assert opened(FIRING, over).started_at == NOW
    assert fold(opened(), delivery(replace(FIRING, fingerprint="c", starts_at=NOW - MINUTE))).started_at == NOW - MINUTE


# --- counted ----------------------------------------------------------------------------------------------------------


def test_each_delivery_is_counted_and_each_alert_once() -> None:
    incident = opened()
    for number in range(1, 4):
        incident = fold(incident, delivery(replace(FIRING, description=f"{number}"), at=NOW + number * MINUTE))
        assert (incident.revision, incident.delivery_count, incident.alert_count) == (number + 1, number + 1, 1)
        assert incident.updated_at == NOW + number * MINUTE
    assert fold(incident, delivery(replace(FIRING, fingerprint="b"))).alert_count == 2


def test_alerts_that_a_delivery_only_counts_are_counted_once_they_are_more_than_those_that_are_known() -> None:
    incident = opened(FIRING, omitted=4)
    assert (incident.alert_count, incident.unseen_count) == (5, 4)
    known = fold(incident, delivery(*named(["b", "c"])))
    assert (known.alert_count, known.unseen_count) == (5, 2), "two of them have come"
    again = fold(known, delivery(FIRING, omitted=4))
    assert (again.alert_count, again.unseen_count) == (5, 2)
    more = fold(again, delivery(FIRING, omitted=6))
    assert (more.alert_count, more.unseen_count) == (7, 4)
    all_known = fold(known, delivery(*named(["d", "e", "f"])))
    assert (all_known.alert_count, all_known.unseen_count) == (6, 0)


def test_of_a_storm_fifty_alerts_are_kept_and_the_names_of_the_others_that_fire() -> None:
    names = numbered(0, MAX_KEPT_ALERTS + 3)
    incident = opened(*reversed(named(names)))
    assert [alert.fingerprint for alert in incident.alerts] == names[:MAX_KEPT_ALERTS]
    assert incident.also_firing == tuple(names[MAX_KEPT_ALERTS:])
    assert (incident.alert_count, incident.firing_count) == (len(names), len(names))
    repeated = fold(incident, delivery(*named(names)))
    assert (repeated.alert_count, repeated.also_firing) == (len(names), incident.also_firing)


def test_an_alert_of_which_only_the_name_is_kept_ends_without_being_counted_again() -> None:
    names = numbered(0, MAX_KEPT_ALERTS + 3)
    incident = opened(*named(names))
    ended = fold(incident, delivery(*named(names[-2:-1], AlertStatus.RESOLVED)))
    assert ended.also_firing == (names[-3], names[-1])
    assert (ended.alert_count, ended.unseen_count, ended.state) == (len(names), 0, IncidentState.OPEN)
    kept_ended = fold(incident, delivery(*named(names[:MAX_KEPT_ALERTS], AlertStatus.RESOLVED)))
    assert kept_ended.state is IncidentState.OPEN, "three more fire"
    all_ended = fold(kept_ended, delivery(*named(names[MAX_KEPT_ALERTS:], AlertStatus.RESOLVED)))
    assert (all_ended.state, all_ended.also_firing) == (IncidentState.RESOLVED, ())


def test_what_fires_is_kept_before_what_is_over() -> None:
    ended = named(numbered(0, MAX_KEPT_ALERTS), AlertStatus.RESOLVED)
    incident = opened(*ended, FIRING)
    assert [alert.fingerprint for alert in incident.alerts][:2] == ["a", "000"]
    assert len(incident.alerts) == MAX_KEPT_ALERTS


# --- severity ---------------------------------------------------------------------------------------------------------


def test_the_worst_severity_stays() -> None:
    critical, info = (replace(FIRING, severity=severity) for severity in (Severity.CRITICAL, Severity.INFO))
    assert fold(opened(), delivery(info)).severity is Severity.WARNING
    worst = fold(opened(), delivery(info, replace(critical, fingerprint="b")))
    assert worst.severity is Severity.CRITICAL
    assert fold(worst, delivery(info)).severity is Severity.CRITICAL


# --- resolved and reopened --------------------------------------------------------------------------------------------


def test_an_incident_ends_with_its_last_alert_and_keeps_how_it_ended() -> None:
    incident = opened(FIRING, replace(FIRING, fingerprint="b"))
    half = fold(incident, delivery(RESOLVED, at=NOW + MINUTE))
    assert (half.state, half.resolved_at, half.resolution) == (IncidentState.OPEN, None, None)
    note = replace(RESOLVED, fingerprint="b", note="cause: the pool was too small")
    over = fold(half, delivery(note, at=NOW + 2 * MINUTE))
    assert (over.state, over.resolved_at) == (IncidentState.RESOLVED, NOW + 2 * MINUTE)
    assert over.resolution == Resolution("the pool was too small")
    by_person = replace(half, resolution=Resolution("the disk was full"))
    assert fold(by_person, delivery(note)).resolution == Resolution("the disk was full")
    still_open = fold(incident, delivery(replace(note, fingerprint="a")))
    assert still_open.resolution is None, "a part of it goes on"


@every_case(
    ("flapping", "later", "expected"),
    [
        (False, REOPEN_WINDOW, True),
        (False, REOPEN_WINDOW + SECOND, False),
        (True, REOPEN_WINDOW + SECOND, True),
        (True, FLAP_WINDOW, True),
        (True, FLAP_WINDOW + SECOND, False),
    ],
)
def test_an_incident_that_flaps_is_reopened_for_longer(flapping: bool, later: timedelta, expected: bool) -> None:
    over = replace(fold(opened(), delivery(RESOLVED)), flapping=flapping)
    assert reopens(over, delivery(FIRING, at=NOW + later)) is expected


def fired_again(incident: Incident, *times: datetime) -> Incident:
    for at in times:
        incident = fold(fold(incident, delivery(RESOLVED, at=at)), delivery(FIRING, at=at))
    return incident


@pytest.mark.parametrize(
    ("third", "flapping"), [(FLAP_WINDOW, True), (FLAP_WINDOW + SECOND, False), (FLAP_WINDOW - SECOND, True)]
)
def test_three_times_again_within_two_hours_is_flapping(third: timedelta, flapping: bool) -> None:
    twice = fired_again(opened(), NOW, NOW + MINUTE)
    assert not twice.flapping
    assert fired_again(twice, NOW + third).flapping is flapping


def test_what_flapped_once_stays_so_and_only_the_latest_times_are_kept() -> None:
    flapped = fired_again(opened(), *[NOW] * 3)
    calm = fired_again(flapped, *(NOW + day * timedelta(days=1) for day in range(1, KEPT_REOPENINGS + 1)))
    assert calm.flapping
    assert calm.reopened_count == KEPT_REOPENINGS + 3
    assert len(calm.reopenings) == KEPT_REOPENINGS
    assert calm.reopenings[0] == NOW + timedelta(days=1)


# --- what an event leaves out, and what comes late --------------------------------------------------------------------


@pytest.mark.parametrize("field", ["service", "description", "url", "runbook_url"])
def test_what_an_event_leaves_out_stays_and_what_it_says_anew_counts(field: str) -> None:
    incident = opened(replace(FIRING, **{field: "before"}))
    assert getattr(fold(incident, delivery(FIRING)).alerts[0], field) == "before"
    assert getattr(fold(incident, delivery(replace(FIRING, **{field: "after"}))).alerts[0], field) == "after"


def test_an_update_of_an_alert_that_nobody_knows_opens_nothing() -> None:
    incident = opened()
    assert fold(incident, delivery(replace(FIRING, fingerprint="b", status=AlertStatus.UPDATED))) is incident


@pytest.mark.parametrize(("minutes", "is_taken"), [(-1, False), (0, True), (1, True)])
def test_an_event_counts_unless_a_later_one_is_known(minutes: int, is_taken: bool) -> None:
    incident = opened(replace(FIRING, as_of=NOW))
    event = delivery(replace(RESOLVED, as_of=NOW + minutes * MINUTE))
    assert (fold(incident, event).state is IncidentState.RESOLVED) is is_taken


def test_an_alert_that_ends_with_a_later_start_fired_again_in_between() -> None:
    late = replace(RESOLVED, starts_at=NOW + MINUTE, ends_at=NOW + MINUTE)
    (alert,) = fold(opened(), delivery(late)).alerts
    assert (alert.starts_at, alert.ends_at) == (NOW + MINUTE, NOW + MINUTE)
    (alert,) = fold(opened(), delivery(replace(late, ends_at=NOW))).alerts
    assert alert.ends_at is None, "an end before its start is that of another time"


@every_case(
    ("fields", "expected"),
    [
        ({}, True),
        ({"replicated": False}, False),
        ({"omitted": 1}, False),
        ({"received_at": NOW + REPLICA_LAG + SECOND}, False),
        ({"alerts": (replace(FIRING, starts_at=NOW + SECOND),)}, False),  # it began anew
        ({"alerts": (FIRING, replace(FIRING, fingerprint="b"))}, False),
        ({"alerts": (FIRING, replace(RESOLVED, fingerprint="b"))}, True),
        ({"alerts": (RESOLVED,)}, False),
    ],
)
def test_a_replica_that_lags_reports_only_what_was_resolved_a_moment_ago(
    fields: dict[str, object], expected: bool
) -> None:
    over = fold(opened(), delivery(RESOLVED))
    late = delivery(FIRING, at=NOW + REPLICA_LAG, replicated=True)
    assert is_belated(over, replace(late, **fields)) is expected
    assert not is_belated(opened(), late), "it is open"
