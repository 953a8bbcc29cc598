"""What updates, acknowledgements and events that were overtaken make of an incident."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.folding import REOPEN_WINDOW, fold, open_from, reopens
from core.model.alert import NAMELESS, Acknowledgement, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.incident import Incident, IncidentState
from tests.cases import every_case

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FIRING = Alert("a", "LatencyHigh", AlertStatus.FIRING, Severity.WARNING, NOW, as_of=NOW)
ADA = Acknowledgement("Ada", NOW + MINUTE)
BO = Acknowledgement("Bo", NOW + 2 * MINUTE)
TAKEN_BACK = Acknowledgement("Bo", NOW + 3 * MINUTE, withdrawn=True)


def said(*alerts: Alert, received_at: datetime = NOW) -> AlertDelivery:
    return AlertDelivery("key", "pagerduty", "group", alerts, received_at)


def after(*alerts: Alert) -> Incident:
    """What becomes of the incident of FIRING once these have been said one after the other, a minute apart."""
    incident = open_from(said(FIRING), "i1", Place(Platform.CONSOLE, "incidents"))
    for minute, alert in enumerate(alerts, 1):
        incident = fold(incident, said(replace(alert, as_of=NOW + minute * MINUTE)))
    return incident


def change(status: AlertStatus = AlertStatus.FIRING, acknowledged: Acknowledgement | None = None) -> Alert:
    return replace(FIRING, status=status, acknowledged=acknowledged)


@every_case(
    ("changes", "acknowledged"),
    [
        ([], None),
        ([change(acknowledged=ADA)], ADA),
        ([change(acknowledged=ADA), change()], ADA),
        ([change(acknowledged=ADA), change(AlertStatus.UPDATED)], ADA),
        ([change(acknowledged=ADA), change(acknowledged=BO)], BO),
        ([change(acknowledged=BO), change(acknowledged=TAKEN_BACK)], None),
        ([change(acknowledged=ADA), change(AlertStatus.RESOLVED)], ADA),
        ([change(acknowledged=ADA), change(AlertStatus.RESOLVED), change()], None),
    ],
)
def test_an_acknowledgement_stands_until_it_is_taken_back_or_the_alert_fires_anew(
    changes: list[Alert], acknowledged: Acknowledgement | None
) -> None:
    assert after(*changes).acknowledged == acknowledged


@pytest.mark.parametrize(
    ("held", "repeated"),
    [
        (ADA, replace(ADA, at=NOW + 9 * MINUTE)),
        (ADA, replace(ADA, at=NOW + 9 * MINUTE, system="PagerDuty")),
        (replace(ADA, by=""), replace(ADA, by="", at=NOW + 9 * MINUTE, system="Azure Monitor")),
    ],
    ids=["stored by this version", "stored before systems had names", "without a person"],
)
def test_a_repeated_acknowledgement_keeps_its_first_time(held: Acknowledgement, repeated: Acknowledgement) -> None:
    acknowledged = after(change(acknowledged=held), change(acknowledged=repeated)).acknowledged
    assert acknowledged == replace(repeated, at=held.at)


def test_an_incident_is_acknowledged_once_every_alert_that_fires_is() -> None:
    other = replace(FIRING, fingerprint="b")
    incident = fold(after(change(acknowledged=ADA)), said(other))
    assert incident.acknowledged is None
    assert fold(incident, said(replace(other, acknowledged=BO))).acknowledged == BO
    assert fold(incident, said(replace(other, status=AlertStatus.RESOLVED))).acknowledged == ADA


@pytest.mark.parametrize(
    ("summary", "name", "title"),
    [(" ", "LatencyHigh", "LatencyHigh"), ("\n\t", " ", NAMELESS), ("", "", NAMELESS)],
    ids=["blank summary", "blank name too", "empty texts"],
)
def test_an_incident_whose_alert_has_blank_texts_has_a_title(summary: str, name: str, title: str) -> None:
    blank = replace(FIRING, summary=summary, name=name)
    assert open_from(said(blank), "i1", Place(Platform.CONSOLE, "incidents")).title == title


def test_an_update_changes_what_an_alert_says_and_not_whether_it_fires() -> None:
    news = replace(FIRING, status=AlertStatus.UPDATED, severity=Severity.CRITICAL, description="It is worse.")
    incident = after(news)
    assert (incident.state, incident.severity) == (IncidentState.OPEN, Severity.CRITICAL)
    assert [(alert.status, alert.description) for alert in incident.alerts] == [(AlertStatus.FIRING, "It is worse.")]
    over = after(change(AlertStatus.RESOLVED), news)
    assert (over.state, over.reopened_count) == (IncidentState.RESOLVED, 0)


def test_what_was_overtaken_on_its_way_changes_nothing() -> None:
    over = after(change(acknowledged=ADA), change(AlertStatus.RESOLVED))
    assert fold(over, said(replace(change(acknowledged=ADA), as_of=NOW + MINUTE))) is over


def test_of_what_has_no_time_the_last_is_believed() -> None:
    over = after(change(AlertStatus.RESOLVED))
    assert fold(over, said(replace(FIRING, as_of=None))).state is IncidentState.OPEN


def test_each_time_that_an_incident_fires_again_is_counted() -> None:
    over = change(AlertStatus.RESOLVED)
    assert [after(*[over, change()] * times).reopened_count for times in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("status", "later", "expected"),
    [
        (AlertStatus.FIRING, REOPEN_WINDOW, True),
        (AlertStatus.FIRING, REOPEN_WINDOW + MINUTE, False),
        (AlertStatus.RESOLVED, MINUTE, False),
        (AlertStatus.UPDATED, MINUTE, False),
    ],
)
def test_only_what_fires_soon_reopens_an_incident(status: AlertStatus, later: timedelta, *, expected: bool) -> None:
    over = after(change(AlertStatus.RESOLVED))
    assert over.resolved_at is not None
    assert reopens(over, said(change(status), received_at=over.resolved_at + later)) is expected


def test_an_open_incident_is_not_reopened() -> None:
    assert not reopens(after(), said(change()))


def test_the_end_of_an_alert_moves_no_beginning() -> None:
    day = timedelta(days=1)
    over = after(replace(change(AlertStatus.RESOLVED), starts_at=NOW - day, ends_at=NOW - day + MINUTE))
    (alert,) = over.alerts
    assert (over.started_at, alert.starts_at, alert.ends_at) == (NOW, NOW, None)
    assert over.state is IncidentState.RESOLVED
    ended = after(replace(change(AlertStatus.RESOLVED), ends_at=NOW + MINUTE))
    assert ended.alerts[0].ends_at == NOW + MINUTE
