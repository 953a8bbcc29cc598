from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from core.model.alert import Severity
from core.model.explanation import PastIncident
from core.triage.history import IncidentHistory, SeverityCounts, assess_severity, features, severity_labels
from tests.fakes.outage import START, incident


def past(
    number: int, title: str, severity: Severity, service: str = "", labels: Mapping[str, str] | None = None
) -> PastIncident:
    at = START + timedelta(minutes=number)
    return PastIncident(f"INC-{number}", title, "", service, severity, at, "", labels=dict(labels or {}))


LEAKS = [past(number, "the tank leaks oil", Severity.CRITICAL, "tank") for number in range(4)]
SLOW = [past(10 + number, "pages load slowly", Severity.WARNING, "web") for number in range(6)]
HISTORY = IncidentHistory([*LEAKS, *SLOW])


def test_it_is_as_severe_as_incidents_like_it_were_and_they_are_named() -> None:
    found = assess_severity(incident(service="", title="oil leaks from the tank"), HISTORY)
    assert found is not None
    assert found.severity is Severity.CRITICAL
    assert found.evidence == ("4 of the 4 most similar incidents were critical: INC-0, INC-1, INC-2",)
    assert found.references == ("INC-0", "INC-1", "INC-2", "INC-3")


def test_of_a_single_incident_it_is_told_as_of_one() -> None:
    alone = IncidentHistory([past(1, "the tank leaks oil", Severity.CRITICAL, "tank"), *SLOW])
    found = assess_severity(incident(service="", title="oil leaks from the tank"), alone)
    assert found is not None
    assert found.evidence == ("1 of the 1 most similar incidents was critical: INC-1",)


def test_the_service_and_labels_alone_say_something_but_less() -> None:
    by_text = assess_severity(incident(service="", title="oil leaks from the tank"), HISTORY)
    by_service = assess_severity(replace(incident(service="tank", title="xyzzy"), labels={}), HISTORY)
    assert by_text is not None
    assert by_service is not None
    assert by_service.severity is Severity.CRITICAL
    assert "4 of 4 incidents with service tank were critical" in by_service.evidence
    assert by_service.evaluation.coe < by_text.evaluation.coe


def test_a_label_counts_unless_it_names_the_severity_itself() -> None:
    named = {"cluster": "north", "severity": "critical", "Priority": "P1"}
    assert list(features("tank", named)) == [("service", "tank"), ("cluster", "north")]


def test_nothing_is_said_of_an_incident_like_no_other() -> None:
    assert assess_severity(incident(service="moon", title="xyzzy"), HISTORY) is None
    assert assess_severity(incident(), IncidentHistory([])) is None


def test_nothing_is_said_where_incidents_like_it_were_all_kinds() -> None:
    kinds = [past(number, "it stopped", severity) for number, severity in enumerate(list(Severity) * 2)]
    assert assess_severity(incident(service="", title="it stopped"), IncidentHistory(kinds)) is None


def test_an_incident_is_never_judged_by_itself() -> None:
    twin = past(99, "the tank leaks oil", Severity.INFO, "tank")
    found = assess_severity(
        replace(incident(service="tank", title="the tank leaks oil"), id="INC-99"), IncidentHistory([*LEAKS, twin])
    )
    assert found is not None
    assert "INC-99" not in found.references


def test_past_incidents_are_judged_by_those_before_them_alone() -> None:
    first_was_info = [past(0, "the tank leaks oil", Severity.INFO), *LEAKS[1:]]
    labels = severity_labels(IncidentHistory(first_was_info))
    assert [label.correct for label in labels] == [False, True, True]


def test_past_incidents_are_judged_by_nothing_that_was_counted_later() -> None:
    texts = ("aaa", "bbb", "ccc", "ddd", "eee", "fff")
    unlike = [past(number, text, Severity.INFO, "tank") for number, text in enumerate(texts)]
    assert len(severity_labels(IncidentHistory(unlike))) == len(texts) - 3


def test_without_counts_all_severities_are_as_likely() -> None:
    assert SeverityCounts.of([]).shares([])[Severity.CRITICAL] == 1 / 3
