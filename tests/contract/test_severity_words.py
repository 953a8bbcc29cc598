"""The severity in the words of every sender."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.alerts.fields import SEVERITY_OF, severity
from adapters.alerts.generic import GenericSection
from bot.web.webhook_sources import webhook_parsers
from core.model.alert import Alert, Severity
from tests.cases import every_case
from tests.fakes.monitoring_systems.alertmanager import Alertmanager
from tests.fakes.monitoring_systems.home_made import GENERIC
from tests.fakes.monitoring_systems.system import encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PARSERS = webhook_parsers({"generic": GenericSection.model_validate(GENERIC)})
CRITICAL, WARNING, INFO = Severity

WORDS = {
    CRITICAL: "critical,CRIT,emerg,emergency,alert,page,fatal,error,err,high,Highest,Blocker,major,P0,p1,SEV0,sev1,SEV-1,"
    "S1,sev_0,P1!,Severity-1,Sev 1,P1 - Critical,1 - Critical,2 - High,p1_urgent,[P1] Outage,Priority 1,P 1,"
    "Immediate,Catastrophic,Showstopper",
    WARNING: "warning,warn,Medium,moderate,minor,ticket,P2,p3,SEV2,sev-3,sev_2,S3,Sev 3,SEV 2,P3 - Medium,3 - Moderate,"
    "p3: normal,Severity 3",
    INFO: "info,informational,low,Lowest,trivial,notice,debug,P4,p5,SEV4,sev-5,S4,none,Sev 4,P4 - Low,p5_lowest,4 - Low,"
    "5 - Planning,SEV 5 / low,Cosmetic",
}
UNKNOWN = ["Tier Zero", "gold", "7", "kritisch", "p17", "sev", "non-critical", "not urgent", "\ufffd", "💩"]


def test_a_word_for_a_severity_is_understood_however_it_is_written() -> None:
    for meant, words in WORDS.items():
        assert [word for word in words.split(",") if severity(word) is not meant] == []


@every_case("word", [*UNKNOWN, "", " "])
def test_an_unknown_word_leaves_what_another_field_says_and_is_a_warning_alone(word: str) -> None:
    assert severity(word) is WARNING
    assert severity(word, "critical") is CRITICAL
    assert severity(word, "low") is INFO


def test_none_does_not_lower_what_another_field_says() -> None:
    assert severity("none", "P1") is CRITICAL


@given(st.text(max_size=30), st.sampled_from(sorted(SEVERITY_OF)))
def test_words_around_a_known_one_never_make_it_less_severe_than_it_is(around: str, word: str) -> None:
    said = severity(f"{around} - {word}")
    order = list(Severity)
    assert order.index(said) <= max(order.index(severity(word)), order.index(WARNING))


# --- every sender ----------------------------------------------------------------------------------------------------


SENDERS = {
    kind.source: kind().rated for kind in (Alertmanager, *reversed(SYSTEMS)) if kind.rates
}  # the first of a source


def alert_of(source: str, word: str) -> Alert:
    delivery = PARSERS[source](encoded(SENDERS[source](word)), NOW)
    assert delivery is not None
    return delivery.alerts[0]


@every_case("source", SENDERS)
def test_every_sender_is_understood_alike(source: str) -> None:
    words = {"SEV-1": CRITICAL, "p2": WARNING, "Sev 4": INFO, "P4 - Low": INFO, "Highest": CRITICAL, "P1": CRITICAL}
    assert {word: alert_of(source, word).severity for word in words} == words


@every_case("source", SENDERS)
def test_what_is_not_understood_is_shown_as_sent_and_is_no_trifle(source: str) -> None:
    alert = alert_of(source, "Tier Zero")
    assert alert.severity is not INFO
    assert "Severity as sent: Tier Zero" in alert.description


@every_case("source", SENDERS)
def test_what_is_understood_is_not_repeated(source: str) -> None:
    assert "Severity as sent" not in alert_of(source, "P3").description


@pytest.mark.parametrize(
    ("labels", "meant"),
    [
        ({"severity": "gold", "priority": "P1"}, CRITICAL),
        ({"severity": "none", "priority": "P2"}, WARNING),
        ({"priority": "gold", "level": "emerg"}, CRITICAL),
        ({"severity": "low", "priority": "P1"}, INFO),
    ],
)
def test_the_first_label_that_is_understood_decides(labels: dict[str, str], meant: Severity) -> None:
    payload: Any = Alertmanager().group("firing", {"alertname": "LatencyHigh", **labels})
    delivery = PARSERS["alertmanager"](encoded(payload), NOW)
    assert delivery is not None
    assert delivery.alerts[0].severity is meant


def test_the_third_level_of_azure_is_informational() -> None:
    assert alert_of("azure_monitor", "Sev3").severity is INFO
    assert alert_of("pagerduty", "Sev3").severity is WARNING
