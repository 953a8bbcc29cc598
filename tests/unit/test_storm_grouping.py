"""Which incidents of a minute begin as one message, and which leave it once a cause is found."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.incidents.folding import STORM, is_explained_by, is_independent, parent_in_storm, profiles
from core.model.alert import Severity
from core.model.conversation import Channel, Place, Platform
from core.model.findings import BlamedChange, Relation, RelationKind
from core.model.incident import Incident
from tests.samples import START, alert, explanation, hypothesis, incident

CALLS = {"web": ("api", "search"), "api": ("orders",), "mail": ("orders",), "orders": ("pg",)}
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("secret", {Platform.SLACK: "C0SECRET"}, private=True),
)


def struck(service: str, seconds: float = 0, **fields: object) -> Incident:
    at = START + timedelta(seconds=seconds)
    usual = {"id": service, "service": service, "labels": {}, "severity": Severity.WARNING, "message": None}
    alone = {"owner": None, "explanation": None, "relations": (), "alerts": ()}
    return incident(**(usual | alone | {"started_at": at, "opened_at": at} | fields))


def joined(of: Incident, *others: Incident) -> tuple[str, str] | None:
    first, *beside = profiles([of, *others], CALLS, CHANNELS)
    found = parent_in_storm(first, beside)
    return (found.parent.id, found.reason) if found is not None else None


def explained(service: str, cause: str, *touched: str) -> Incident:
    change = BlamedChange("c-1", "deployment", "", "", START, touched) if touched else None
    found = explanation(hypotheses=(replace(hypothesis(), service=cause, change=change),))
    return struck(service, explanation=found)


def test_what_arrives_within_a_minute_on_the_service_a_node_or_a_dependency_joins_the_earliest() -> None:
    assert joined(struck("web", 9, id="w2"), struck("web")) == ("web", "also on web, within a minute")
    first, second = (struck(name, at, labels={"node": "n7"}) for name, at in (("b", 0), ("a", 9)))
    assert joined(second, first) == ("b", "also on n7, within a minute")
    assert joined(struck("api", 9), struck("web")) == ("web", "web depends on api, and both fired within a minute")
    assert joined(struck("web", 9), struck("api")) == ("api", "web depends on api, and both fired within a minute")
    assert joined(struck("web", 9), struck("pg"), struck("api", 1)) is not None
    assert joined(struck("web"), struck("api", 9)) is None, "it is the earliest itself"


def test_what_says_of_the_same_store_that_it_does_not_answer_begins_as_one_message() -> None:
    said = replace(alert(), description="connection to ledger-db:5432 refused")
    store = struck("ledger-db", severity=Severity.CRITICAL)
    apps = [struck(f"app-{number}", number, alerts=(said,), severity=Severity.CRITICAL) for number in range(1, 50)]
    reason = "{} says that ledger-db does not answer, which has an alert of its own"
    for app in apps:
        assert joined(app, *(each for each in (store, *apps) if each is not app)) == (
            "ledger-db",
            reason.format(app.service),
        )


def test_what_is_linked_only_by_others_between_joins_them_in_whatever_order_they_are_looked_at() -> None:
    assert joined(struck("mail", 5), struck("web")) is None
    reason = "mail depends on orders, and both fired within a minute"
    assert joined(struck("mail", 5), struck("orders", 7), struck("web")) == ("web", reason)


def test_what_has_no_link_or_came_later_or_is_shown_elsewhere_stays_alone() -> None:
    assert joined(struck("mail", 5), struck("search")) is None
    assert joined(struck("api", STORM.total_seconds() + 1), struck("web")) is None
    elsewhere = Place(Platform.SLACK, "C0OTHER")
    assert joined(struck("api", 5), struck("web", place=elsewhere)) is None
    apart = Relation(RelationKind.APART_FROM, "web")
    assert joined(struck("api", 5, relations=(apart,)), struck("web")) is None
    secret = Place(Platform.SLACK, "C0SECRET")
    assert joined(struck("api", 5, also_in=(secret,)), struck("web")) is None


def test_nothing_critical_is_a_part_of_a_warning() -> None:
    critical = struck("api", 5, severity=Severity.CRITICAL)
    assert joined(critical, struck("web")) is None
    assert joined(struck("web", 9), struck("orders"), critical) is not None
    assert joined(struck("web", 9), struck("search"), critical) == (
        "api",
        "web depends on api, and both fired within a minute",
    )


def test_what_the_cause_does_not_explain_is_no_part() -> None:
    def is_explained(part: Incident, whole: Incident) -> bool:
        return is_explained_by(*profiles([part, whole], CALLS))

    assert is_explained(struck("web"), struck("api")), "no cause is known"
    assert is_explained(struck("web"), explained("api", "orders")), "it depends on the service of the cause"
    assert not is_explained(struck("search"), explained("web", "api"))
    assert is_explained(struck("search"), explained("web", "web", "web", "search")), "the change touched it"
    assert joined(struck("search", 5), explained("web", "api")) is None


def test_a_part_with_another_cause_is_independent_and_one_whose_cause_may_be_that_of_the_whole_is_not() -> None:
    def apart(part: Incident, whole: Incident) -> bool:
        return is_independent(*profiles([part, whole], CALLS))

    assert apart(explained("search", "search"), explained("web", "orders")), "two causes"
    assert not apart(explained("api", "orders"), explained("web", "orders")), "the same service"
    assert not apart(explained("search", "search", "x"), explained("web", "orders", "x")), "the same change"
    assert not apart(explained("api", "orders"), struck("web")), "the other depends on it, and has no cause yet"
    assert apart(explained("web", "web"), struck("orders")), "what it depends on cannot have its cause"
    assert apart(struck("search"), explained("web", "orders")), "it depends on nothing that the cause touches"
    assert not apart(struck("mail"), explained("web", "orders"))
    assert not apart(struck("search"), struck("web")), "nothing is known"
