"""Which incident is shown as a part of which, and which never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from core.incidents.folding import (
    MINUTES,
    explanation_by,
    may_absorb,
    parent_of,
    profiles,
    related_services,
    suggested_parent,
)
from core.model.alert import Severity
from core.model.conversation import Channel, Place, Platform
from core.model.findings import Relation, RelationKind
from core.model.incident import Hop, Incident, IncidentState
from tests.cases import every_case
from tests.samples import START, alert, explanation, hypothesis, incident, owner

CALLS = {"web": ("api",), "api": ("db", "cache"), "db": ("disk",), "ping": ("pong",), "pong": ("ping",)}
PUBLIC = Channel("incidents", {Platform.SLACK: "C0INC"})
PRIVATE = Channel("secret", {Platform.SLACK: "C0SECRET"}, private=True)
CHANNELS = (PUBLIC, PRIVATE)
MINUTE = timedelta(minutes=1)


def struck(service: str, later: timedelta = timedelta(), **fields: object) -> Incident:
    """An incident of a service, by an alert of its own."""
    at = START + later
    own = replace(alert(), fingerprint=service, name=f"{service} is slow", summary="", service=service, starts_at=at)
    usual = {"id": service, "service": service, "title": f"{service} is slow", "alerts": (own,)}
    return incident(**(usual | {"started_at": at, "opened_at": at, "labels": {}} | fields))


def why(part: Incident, parent: Incident) -> str:
    return explanation_by(*profiles([part, parent], CALLS, CHANNELS))


def found_in(cause: str, service: str, later: timedelta = timedelta(), **fields: object) -> Incident:
    """An incident of `service` whose investigation found the cause in service `cause`."""
    found = explanation(hypotheses=(replace(hypothesis(), service=cause),))
    return struck(service, later, explanation=found, **fields)


def apart_from(incident_id: str) -> tuple[Relation, ...]:
    return (Relation(RelationKind.APART_FROM, incident_id),)


def suggested(incident: Incident, *others: Incident) -> tuple[str, str] | None:
    of, *beside = profiles([incident, *others], CALLS, CHANNELS)
    found = suggested_parent(of, beside)
    return (found.incident_id, found.reason) if found is not None else None


def test_an_incident_joins_one_of_the_service_that_its_cause_was_found_in() -> None:
    assert why(found_in("db", "api"), struck("db")) == "api depends on db, where its cause was found"
    assert why(found_in("disk", "web"), struck("disk")) == "web depends on disk, where its cause was found"
    assert why(found_in("cache", "api"), struck("db")) == ""
    assert why(found_in("db", "cache"), struck("db")) == "", "it does not depend on it"
    assert why(found_in("pong", "ping"), struck("pong")) == "", "each calls the other"


STORES = (
    ("PostgresDown on orders-db", "orders-db", {}, "dial tcp: connection to orders-db.shop.svc:5432 refused"),
    ("RedisDown", "session-cache", {}, "read redis://session-cache:6379/0: i/o timeout"),
    ("KafkaBrokerDown", "", {"instance": "kafka-2:9092"}, "[Producer] Connection to node 2 (kafka-2/10.0.3.7:9092) failed"),
    ("MySQLIsDown", "", {"server": "ledger.db.internal"}, "getaddrinfo ENOTFOUND ledger"),
)  # fmt: skip
"""Stores by the title, service and labels of their alert, and what those say that depend on them."""


def saying(service: str, words: str, later: timedelta = timedelta(), **fields: object) -> Incident:
    """An incident whose alert says something of another system."""
    own = replace(alert(), fingerprint=service, name="ErrorsHigh", summary="Errors", description=words, service=service)
    return struck(service, later, **({"alerts": (own,), "severity": Severity.WARNING} | fields))


def test_what_says_that_a_store_does_not_answer_joins_the_alert_of_that_store_though_no_graph_knows_it() -> None:
    for title, service, labels, words in STORES:
        store = struck(service, id="store", title=title, labels=labels)
        (name,) = [each for each in (service, "kafka-2", "ledger") if each and each in words]
        for later in (-MINUTES, timedelta(), MINUTES):
            said = why(saying("till", words, later), store)
            assert said == f"till says that {name} does not answer, which has an alert of its own", title
        assert why(saying("till", words, MINUTES + MINUTE), store) == "", title
        assert why(saying("till", words.replace(name, f"{name}-old")), store) == "", "another one"
        assert why(saying("till", f"Rows that {name} holds: 12"), store) == "", (
            "it does not say that it is out of reach"
        )
        assert why(saying("till", words, severity=Severity.CRITICAL), store) == "", "not yet triaged"
        found = explanation(hypotheses=(replace(hypothesis(), service="cart"),))
        assert why(saying("till", words, explanation=found), store) == "", "its cause was found elsewhere"


def test_two_that_say_it_of_each_other_are_not_joined_by_it() -> None:
    one, two = saying("till", "connection to desk refused"), saying("desk", "connection to till refused")
    assert why(one, two) == why(two, one) == ""


def test_a_dependency_alone_is_a_suggestion() -> None:
    assert why(struck("api"), struck("db")) == ""
    assert suggested(struck("api"), struck("db")) == ("db", "api depends on db")
    assert suggested(struck("web"), struck("db"), struck("api")) == ("api", "web depends on api"), "the nearest"
    assert suggested(struck("db"), struck("api")) is suggested(struck("cache"), struck("db")) is None
    assert suggested(struck("ping"), struck("pong")) is None


def test_nothing_is_suggested_once_the_cause_was_found_elsewhere() -> None:
    assert suggested(found_in("cache", "api"), struck("db")) is None
    assert suggested(found_in("api", "web"), struck("db")) is not None, "the cause found depends on it in turn"
    assert suggested(struck("api"), struck("db", state=IncidentState.RESOLVED)) is None


@every_case(
    ("later", "expected"),
    [(-MINUTES, True), (-MINUTES - MINUTE, False), (timedelta(), True), (MINUTES, True), (MINUTES + MINUTE, False)],
)
def test_both_begin_within_minutes(later: timedelta, *, expected: bool) -> None:
    assert bool(why(found_in("db", "api"), struck("db", later))) is expected
    assert bool(suggested(struck("api"), struck("db", later))) is expected


def test_what_is_only_information_explains_nothing_worse() -> None:
    assert why(found_in("db", "api"), struck("db", severity=Severity.INFO)) == ""
    assert why(found_in("db", "api", severity=Severity.INFO), struck("db", severity=Severity.INFO)) != ""


def test_the_same_alert_in_another_group_is_a_part_of_the_earlier_incident() -> None:
    earlier = struck("api", id="earlier")
    later = struck("api", MINUTE, id="later", group_key="another", alerts=earlier.alerts, owner=owner())
    assert why(later, earlier) == "the same alert"
    assert why(earlier, later) == ""


def test_a_critical_incident_is_triaged_before_it_is_a_part_of_another() -> None:
    earlier = struck("api", id="earlier")
    later = struck("api", MINUTE, id="later", group_key="another", alerts=earlier.alerts)
    assert why(later, earlier) == ""
    assert why(later.with_findings(owner=owner(owner=None)), earlier) == "the same alert", "also if nobody was found"
    assert why(replace(later, severity=Severity.WARNING), earlier) == "the same alert"


def test_the_same_alert_from_another_source_is_known_by_its_service_and_name() -> None:
    earlier = struck("api", id="earlier")
    told = replace(earlier.alerts[0], fingerprint="other", name="[FIRING:1]  API is  slow")
    later = struck(
        "api", MINUTE, id="later", source="pagerduty", title="[FIRING:1] api is slow", alerts=(told,), owner=owner()
    )
    assert why(later, earlier) == "the same alert"
    assert why(replace(later, source=earlier.source), earlier) == "", "one source tells its alerts apart itself"
    assert why(replace(later, service="shelf"), earlier) == ""


def test_nothing_is_shown_across_audiences() -> None:
    secret = Place(Platform.SLACK, "C0SECRET")
    assert why(found_in("db", "api", place=secret), struck("db")) == ""
    assert why(found_in("db", "api"), struck("db", place=secret)) == ""
    assert why(found_in("db", "api", place=secret), struck("db", place=secret)) != ""
    unnamed = Place(Platform.SLACK, "C0OTHER")
    assert why(found_in("db", "api", place=unnamed), struck("db")) == "", "a channel that nobody named is for itself"


def test_what_people_took_apart_stays_apart() -> None:
    assert why(found_in("db", "api", relations=apart_from("db")), struck("db")) == ""
    assert why(found_in("db", "api"), struck("db", relations=apart_from("api"))) == ""


@every_case(
    "fields",
    [
        {"taken_by": "Ada"},
        {"hops": (Hop("payments", "", "Ada", "", START),)},
        {"relations": apart_from("another")},
        {"relations": (Relation(RelationKind.PART_OF, "another", at=START),)},
        {"state": IncidentState.RESOLVED},
    ],
)
def test_the_rules_leave_alone_what_people_work_on(fields: dict[str, Any]) -> None:
    assert may_absorb(struck("api"))
    assert not may_absorb(struck("api", **fields))


def test_of_several_the_same_alert_comes_first_then_the_earliest() -> None:
    part = found_in("api", "web", MINUTE)
    twin = struck("web", id="twin", alerts=part.alerts)
    first, later = struck("api"), struck("api", 2 * MINUTE, id="later")

    def parent(*others: Incident) -> tuple[Incident, str] | None:
        of, *beside = profiles([part, *others], CALLS, CHANNELS)
        found = parent_of(of, beside)
        return (found[0].incident, found[1]) if found is not None else None

    assert parent(first, twin) == (twin, "the same alert")
    assert parent(later, first) == (first, why(part, first))
    assert parent(replace(first, state=IncidentState.RESOLVED)) is None


def test_related_are_what_a_service_calls_and_what_calls_it() -> None:
    assert related_services(struck("api"), CALLS) == {"web", "db", "cache", "disk"}
    assert related_services(struck("", title="nothing is known", alerts=()), CALLS) == frozenset()
