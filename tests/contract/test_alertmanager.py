"""What Alertmanager's webhook, version 4, becomes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.alerts.alertmanager import parse
from core.incidents.thread_notes import read_resolution
from core.model.alert import MAX_KEPT_ALERTS, AlertStatus, Severity
from core.model.errors import MalformedInput
from core.model.incident import Resolution
from tests.cases import every_case

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
STARTED = "2026-03-14T09:28:30.123456789Z"
NO_TIME = "0001-01-01T00:00:00Z"


def alert(**changes: Any) -> dict[str, Any]:
    return {
        "status": "firing",
        "labels": {"alertname": "LatencyHigh", "service": "payment-gateway", "severity": "critical"},
        "annotations": {"summary": "p99 is 4 s", "description": "Payments are slow."},
        "startsAt": STARTED,
        "endsAt": NO_TIME,
        "generatorURL": "http://prometheus.example/graph",
        "fingerprint": "c0ffee",
        **changes,
    }


def labelled(**labels: str) -> dict[str, Any]:
    return alert(labels={"alertname": "LatencyHigh", **labels})


def body(*alerts: dict[str, Any], **changes: Any) -> bytes:
    return json.dumps({"version": "4", "groupKey": "{}:{}", "status": "firing", "alerts": alerts, **changes}).encode()


def test_a_firing_alert_is_understood() -> None:
    delivery = parse(body(alert()), NOW)
    (found,) = delivery.alerts
    assert (delivery.source, delivery.group_key, delivery.omitted) == ("alertmanager", "{}:{}", 0)
    assert (found.name, found.service, found.severity) == ("LatencyHigh", "payment-gateway", Severity.CRITICAL)
    assert (found.summary, found.description) == ("p99 is 4 s", "Payments are slow.")
    assert found.status is AlertStatus.FIRING
    assert found.starts_at == datetime(2026, 3, 14, 9, 28, 30, 123456, UTC)
    assert found.ends_at is None
    assert found.url == "http://prometheus.example/graph"


def test_a_resolved_alert_ends() -> None:
    (found,) = parse(body(alert(status="resolved", endsAt="2026-03-14T09:29:30+00:00")), NOW).alerts
    assert found.status is AlertStatus.RESOLVED
    assert found.ends_at == NOW - timedelta(seconds=30)


def test_a_repeated_notification_has_the_same_key_whatever_the_order() -> None:
    one, two = alert(fingerprint="a"), alert(fingerprint="b")
    assert parse(body(one, two), NOW).key == parse(body(two, one), NOW + timedelta(hours=4)).key


@pytest.mark.parametrize(
    "change",
    [{"status": "resolved"}, {"fingerprint": "other"}, {"startsAt": "2026-03-14T09:29:00Z"}],
)
def test_a_change_of_any_alert_is_another_delivery(change: dict[str, str]) -> None:
    assert parse(body(alert()), NOW).key != parse(body(alert(**change)), NOW).key


def test_two_groups_do_not_share_a_key() -> None:
    assert parse(body(alert()), NOW).key != parse(body(alert(), groupKey="another"), NOW).key


@pytest.mark.parametrize("starts_at", ["2026-03-15T09:28:30Z", NO_TIME, "0001-01-01T00:00:00+14:00"])
def test_a_start_in_the_future_or_none_at_all_is_the_time_of_the_request(starts_at: str) -> None:
    assert parse(body(alert(startsAt=starts_at)), NOW).alerts[0].starts_at == NOW


@every_case(
    ("labels", "severity"),
    [
        ({"severity": "page"}, Severity.CRITICAL),
        ({"severity": "ERROR"}, Severity.CRITICAL),
        ({"severity": "high"}, Severity.CRITICAL),
        ({"priority": "P1"}, Severity.CRITICAL),
        ({"severity": "warning"}, Severity.WARNING),
        ({"severity": "info"}, Severity.INFO),
        ({"severity": "whatever"}, Severity.WARNING),
        ({}, Severity.WARNING),
    ],
)
def test_a_severity_is_read_from_the_labels(labels: dict[str, str], severity: Severity) -> None:
    assert parse(body(labelled(**labels)), NOW).alerts[0].severity is severity


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"service": "a", "app": "b", "job": "c"}, "a"),
        ({"app": "b", "job": "c"}, "b"),
        ({"service": "", "job": "c"}, "c"),
        ({"cluster": "north"}, ""),
    ],
)
def test_a_service_is_read_from_the_first_label_that_names_one(labels: dict[str, str], service: str) -> None:
    assert parse(body(labelled(**labels)), NOW).alerts[0].service == service


def test_a_storm_keeps_the_first_alerts_and_counts_the_rest() -> None:
    alerts = [
        alert(fingerprint=f"{number:05d}", startsAt=(NOW - timedelta(seconds=20_000 - number)).isoformat())
        for number in reversed(range(10_000))
    ]
    delivery = parse(body(*alerts, truncatedAlerts=7), NOW)
    assert [one.fingerprint for one in delivery.alerts] == [f"{number:05d}" for number in range(MAX_KEPT_ALERTS)]
    assert delivery.omitted == 10_000 - MAX_KEPT_ALERTS + 7


def test_firing_alerts_are_kept_beside_any_number_of_resolved_ones() -> None:
    resolved = [alert(status="resolved", fingerprint=f"r{number:04d}") for number in range(1_000)]
    delivery = parse(body(*resolved, alert(fingerprint="zzz")), NOW)
    assert "zzz" in {one.fingerprint for one in delivery.alerts if one.status is AlertStatus.FIRING}


def test_long_and_many_labels_are_cut() -> None:
    labels = {f"{'n' * 1_000}{number}": "v" * 10_000 for number in range(1_000)}
    (found,) = parse(body(alert(labels=labels, annotations={"summary": "s" * 10_000})), NOW).alerts
    assert len(found.labels) <= 64
    assert all(len(name) <= 128 and len(value) <= 512 for name, value in found.labels.items())
    assert len(found.summary) == 500


def test_a_missing_fingerprint_is_made_from_the_labels() -> None:
    first, second, again = (
        parse(body({**labelled(service=service), "fingerprint": ""}), NOW).alerts[0].fingerprint for service in "aba"
    )
    assert first == again != second


@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://example/", "http://" + "x" * 5_000])
def test_only_a_plain_web_address_becomes_a_link(url: str) -> None:
    assert parse(body(alert(generatorURL=url)), NOW).alerts[0].url == ""


def test_a_nul_character_is_left_out() -> None:
    (found,) = parse(body(alert(annotations={"summary": "a\x00b"})), NOW).alerts
    assert found.summary == "ab"


@every_case(
    ("wrong", "where"),
    [
        (b"", "not valid"),
        (b"{", "not valid"),
        (b"\xff\xfe", "not valid"),
        (b"[]", "not valid"),
        (b"[" * 100_000, "not valid"),
        (body(alert(), version="3"), "version"),
        (body(), "alerts"),
        (body(alert(), groupKey=""), "groupKey"),
        (body(alert(status="pending")), r"alerts\.0\.status"),
    ],
)
def test_a_wrong_body_is_refused_with_one_sentence_that_says_where(wrong: bytes, where: str) -> None:
    with pytest.raises(MalformedInput, match=where) as raised:
        parse(wrong, NOW)
    assert str(raised.value).count("\n") == 0
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize("start", ["yesterday", "2026-03-14T09:28:30", None, 1.5e300])
def test_an_alert_without_a_readable_start_began_when_it_arrived(start: object) -> None:
    (received,) = parse(body(alert(startsAt=start)), NOW).alerts
    assert received.starts_at == NOW


def test_a_number_in_a_label_and_a_wrong_count_do_not_lose_the_alert() -> None:
    delivery = parse(body(alert(labels={"alertname": "Slow", "code": 500, "pod": None}), truncatedAlerts=-1), NOW)
    assert delivery.alerts[0].labels == {"alertname": "Slow", "code": "500"}
    assert delivery.omitted == 0


@given(st.binary(max_size=200) | st.recursive(st.none() | st.text(), st.lists).map(json.dumps).map(str.encode))
def test_no_body_raises_anything_else(wrong: bytes) -> None:
    with pytest.raises(MalformedInput):
        parse(wrong, NOW)


def test_a_resolved_alert_may_say_how_it_ended_and_a_firing_one_not_yet() -> None:
    said = {"root_cause": "The pool\nwas too small.", "fix": "Pool of 40", "owner": "payments"}
    resolved, firing = parse(
        body(alert(status="resolved", annotations=said), alert(fingerprint="f2", annotations=said)), NOW
    ).alerts[::-1]
    assert read_resolution(resolved.note) == Resolution("The pool was too small.", "Pool of 40", "payments")
    assert firing.note == ""
