from __future__ import annotations

import re
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.alerts.alertmanager import parse
from bot.commands.demo import (
    ALERT_AGE,
    FIRST_INCIDENT,
    SAMPLE_COMPANY,
    address_of,
    ended,
    free_port,
    scenarios,
    shifted,
    stage,
)
from core.model.alert import AlertStatus
from tests.cases import every_case

NOW = datetime(2027, 7, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)

times = st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)).map(lambda at: at.replace(microsecond=0))  # noqa: DTZ001


def test_every_time_is_moved_wherever_it_stands() -> None:
    text = b'2026-03-14T09:12:03Z {"at": "2026-03-14T09:12:03.412Z"}\n2026-03-14T23:30:00Z,40'
    assert shifted(text, HOUR) == b'2026-03-14T10:12:03Z {"at": "2026-03-14T10:12:03.412Z"}\n2026-03-15T00:30:00Z,40'


@every_case(
    "text",
    [b"0001-01-01T00:00:00Z", b"2026-03-14", b"09:12:03", b"2026-03-14T09:12:03+01:00", b"build 20260314T091203Z"],
)
def test_what_is_no_time_in_utc_or_stands_for_none_is_left_alone(text: bytes) -> None:
    assert shifted(text, HOUR) == text


@given(
    times,
    st.timedeltas(timedelta(days=-365), timedelta(days=365)).map(
        lambda d: timedelta(seconds=d // timedelta(seconds=1))
    ),
)
def test_moving_there_and_back_changes_nothing(at: datetime, shift: timedelta) -> None:
    text = f"{at:%Y-%m-%dT%H:%M:%S}.123Z".encode()
    assert shifted(shifted(text, shift), -shift) == text


def test_the_first_incident_is_recorded() -> None:
    assert FIRST_INCIDENT in scenarios()


@pytest.mark.parametrize("scenario", scenarios())
def test_a_staged_incident_began_a_few_minutes_ago(scenario: str, tmp_path: Path) -> None:
    body = stage(SAMPLE_COMPANY / "live" / scenario, tmp_path / "live", NOW)
    delivery = parse(body, NOW)
    assert min(alert.starts_at for alert in delivery.alerts) == NOW - ALERT_AGE


@pytest.mark.parametrize("scenario", scenarios())
def test_a_staged_incident_keeps_every_record_and_its_distance_from_the_alert(scenario: str, tmp_path: Path) -> None:
    recording, target = SAMPLE_COMPANY / "live" / scenario, tmp_path / "live"
    stage(recording, target, NOW)
    files = {path.relative_to(recording) for path in recording.rglob("*") if path.is_file()}
    assert files == {path.relative_to(target) for path in target.rglob("*") if path.is_file()}
    began = parse((recording / "alert.json").read_bytes(), NOW).alerts[0].starts_at
    shift = NOW - ALERT_AGE - began
    for name in files:
        before, after = _first_time(recording / name), _first_time(target / name)
        assert after == (before and before + shift)


@pytest.mark.parametrize("scenario", scenarios())
def test_a_staged_incident_ends_when_somebody_resolves_it(scenario: str, tmp_path: Path) -> None:
    recording = SAMPLE_COMPANY / "live" / scenario
    (began,) = parse(stage(recording, tmp_path / "live", NOW), NOW).alerts
    (over,) = parse(ended(recording, NOW, NOW + HOUR), NOW + HOUR).alerts
    assert (over.fingerprint, over.starts_at) == (began.fingerprint, began.starts_at)
    assert (over.status, over.ends_at) == (AlertStatus.RESOLVED, NOW + HOUR)


def test_what_was_staged_before_is_gone(tmp_path: Path) -> None:
    target = tmp_path / "live"
    target.mkdir()
    (target / "old.log").touch()
    stage(SAMPLE_COMPANY / "live" / FIRST_INCIDENT, target, NOW)
    assert not (target / "old.log").exists()


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) != port
    assert free_port(port) == port


def _first_time(path: Path) -> datetime | None:
    match = re.search(rb"[12]\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?=(\.\d+)?Z)", path.read_bytes())
    return datetime.fromisoformat(match[0].decode()) if match else None


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "http://127.0.0.1:8080/"), ("0.0.0.0", "http://127.0.0.1:8080/"), ("box", "http://box:8080/")],
)
def test_the_address_is_one_that_this_machine_can_open(host: str, address: str) -> None:
    assert address_of(host, 8080) == address
