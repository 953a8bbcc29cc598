from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from core.incidents.incident_questions import MaintenanceWish, read_maintenance
from core.model.alert import AlertStatus
from core.model.silences import Maintenance, Matcher, Silence, WeeklyWindow, silenced_now
from core.model.team import Team
from tests.cases import every_case
from tests.samples import START, alert, incident

HOUR = timedelta(hours=1)
FACTS = {"service": frozenset({"till"}), "zone": frozenset({"north-1"})}
TILL = Matcher("service", frozenset({"payment-gateway"}))
TEAMS = (Team("payments", "Payments", services=frozenset({"payment-gateway"})),)


def silence(*matchers: Matcher, hours: int = 1, **fields: object) -> Silence:
    return replace(Silence("s1", matchers, START - HOUR, START + hours * HOUR, reason="new ledger"), **fields)


@every_case(
    ("matcher", "expected"),
    [
        (Matcher("service", frozenset({"till", "shelf"})), True),
        (Matcher("service", frozenset({"shelf"})), False),
        (Matcher("service", frozenset({"shelf"}), is_equal=False), True),
        (Matcher("zone", frozenset({"north-.*"}), is_pattern=True), True),
        (Matcher("zone", frozenset({"north"}), is_pattern=True), False),
        (Matcher("zone", frozenset({"south-.*"}), is_equal=False, is_pattern=True), True),
        (Matcher("missing", frozenset({""})), True),
        (Matcher("missing", frozenset({"x"})), False),
        (Matcher("zone", frozenset({"(north)-1"}), is_pattern=True), False),
        (Matcher("zone", frozenset({"(x+)+y"}), is_equal=False, is_pattern=True), False),
        (Matcher("zone", frozenset({"["}), is_pattern=True), False),
        (Matcher("zone", frozenset({".*orth.*|.*outh.*|.*est.*"}), is_pattern=True), True),
        (Matcher("zone", frozenset({"n?o?r?t?h?.*"}), is_pattern=True), False),
        (Matcher("zone", frozenset({"[|]*.*.*.*|north-1"}), is_pattern=True), False),
    ],
)
def test_a_matcher_asks_for_the_whole_value_and_tries_no_dangerous_pattern(matcher: Matcher, *, expected: bool) -> None:
    assert matcher.matches(FACTS) is expected


def test_an_incident_is_silenced_while_every_alert_of_it_that_fires_is() -> None:
    silenced = silenced_now(incident(), [silence(TILL)], (), START)
    assert silenced is not None
    assert (silenced.silenced_by, silenced.reason, silenced.until) == ("maintenance", "new ledger", START + HOUR)
    other = replace(alert(2), service="till")
    assert silenced_now(incident(alerts=(alert(), other)), [silence(TILL)], (), START) is None
    over = replace(other, status=AlertStatus.RESOLVED)
    assert silenced_now(incident(alerts=(alert(), over)), [silence(TILL)], (), START) is not None


def test_what_was_only_counted_is_loud() -> None:
    assert silenced_now(incident(unseen_count=1), [silence(TILL)], (), START) is None
    assert silenced_now(incident(also_firing=("f",)), [silence(TILL)], (), START) is None


def test_a_silence_begins_and_ends() -> None:
    at = [START - HOUR - timedelta(seconds=1), START - HOUR, START + HOUR]
    assert [silenced_now(incident(), [silence(TILL)], (), each) is not None for each in at] == [False, True, False]


def test_a_team_and_a_severity_can_be_silenced() -> None:
    assert silenced_now(incident(), [silence(Matcher("team", frozenset({"payments"})))], TEAMS, START) is not None
    assert silenced_now(incident(), [silence(Matcher("severity", frozenset({"info"})))], TEAMS, START) is None


def test_a_silence_of_everything_is_none() -> None:
    assert silenced_now(incident(), [silence()], (), START) is None


def test_a_reason_that_was_given_in_private_is_told_nobody_else() -> None:
    private = silence(TILL, readers=frozenset({"channel:secret"}))
    silenced = silenced_now(incident(), [private], (), START)
    assert silenced is not None
    assert silenced.reason == "service payment-gateway"


def test_a_weekly_window_comes_back_on_its_days_over_midnight_in_its_own_zone() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    window = WeeklyWindow((TILL,), frozenset({5}), time(23, 0), time(2, 0), berlin, "backup")
    maintenance = Maintenance(weekly=(window,))
    saturday = datetime(2026, 3, 14, tzinfo=UTC)  # 23:00 in Berlin is 22:00 UTC

    def is_open(at: datetime) -> bool:
        return any(each.starts_at <= at < each.ends_at for each in maintenance.at(at))

    hours = {hour: is_open(saturday + timedelta(hours=hour)) for hour in (21, 22, 24, 25, 46)}
    assert hours == {21: False, 22: True, 24: True, 25: False, 46: False}


@every_case(
    ("text", "expected"),
    [
        ("", MaintenanceWish()),
        ("till 2h new ledger", MaintenanceWish("till", 2 * HOUR, "new ledger")),
        ("till 90 min: new\nledger", MaintenanceWish("till", 1.5 * HOUR, "new ledger")),
        (f"till 2h {'x' * 300}", MaintenanceWish("till", 2 * HOUR, "x" * 200)),
        ("till 1d", MaintenanceWish("till", 24 * HOUR)),
        ("till 900 days", MaintenanceWish("till", 14 * 24 * HOUR)),
        ("end till", MaintenanceWish("till")),
        ("till 0h", None),
        ("windows of the ferries?", None),
        ("of payment-gateway", None),
    ],
)
def test_only_a_service_and_a_time_declare_a_window(text: str, expected: MaintenanceWish | None) -> None:
    assert read_maintenance(text) == expected
