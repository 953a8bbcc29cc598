"""The changes, times, names and audiences by which incidents are grouped, at their limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.incidents.folding import (
    explanation_by,
    is_explained_by,
    is_free,
    is_independent,
    may_absorb,
    parent_in_storm,
    profiles,
    related_services,
    suggested_parent,
    tells_the_same,
)
from core.model.alert import Severity
from core.model.conversation import Channel, MessageReference, Place, Placement, Platform
from core.model.findings import BlamedChange, Relation, RelationKind
from core.model.incident import Incident
from tests.samples import START, alert, explanation, hypothesis, incident

CALLS = {"web": ("api",), "api": ("db",), "db": ("disk",)}
INCIDENTS, SECRET = Place(Platform.SLACK, "C0INC"), Place(Platform.SLACK, "C0SECRET")
CHANNELS = (
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("secret", {Platform.SLACK: "C0SECRET"}, private=True),
)
MINUTES, STORM = timedelta(minutes=5), timedelta(minutes=1)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
APART = (Relation(RelationKind.APART_FROM, "other"),)


def struck(service: str, later: timedelta = timedelta(), **fields: object) -> Incident:
    at = START + later
    own = replace(alert(), fingerprint=service, name=f"{service} is slow", summary="", service=service)
    usual = {"id": service, "service": service, "title": f"{service} is slow", "alerts": (own,), "labels": {}}
    return incident(**(usual | {"started_at": at, "opened_at": at, "severity": Severity.WARNING} | fields))


def blamed(service: str, change: str, cause: str = "", later: timedelta = timedelta(), touched: str = "") -> Incident:
    """An incident whose investigation blamed a change in a service, by default in its own."""
    of = BlamedChange(change, "deployment", "", "", START, (touched,) if touched else ()) if change else None
    found = explanation(hypotheses=(replace(hypothesis(), service=cause or service, change=of),))
    return struck(service, later, explanation=found)


def why(part: Incident, whole: Incident) -> str:
    return explanation_by(*profiles([part, whole], CALLS, CHANNELS))


# --- the same change --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [SECOND, MINUTES])
def test_two_incidents_that_blame_the_same_change_are_one_the_earlier(later: timedelta) -> None:
    first, second = blamed("web", "c-1"), blamed("till", "c-1", later=later)
    assert why(second, first) == "both are blamed on deployment c-1"
    assert why(first, second) == ""


def test_two_changes_or_the_same_at_another_time_make_two_incidents() -> None:
    first = blamed("web", "c-2")
    assert why(blamed("till", "c-1", later=MINUTE), first) == ""
    assert why(blamed("till", "c-3", later=MINUTE), first) == ""
    assert why(blamed("till", "c-2", later=MINUTES + SECOND), first) == ""
    assert why(blamed("till", "", later=MINUTE), blamed("web", "")) == "", "no change is not the same change"
    assert why(blamed("till", "c-2", later=MINUTE), struck("web")) == ""


def test_a_part_with_the_same_change_or_cause_is_not_independent() -> None:
    assert not is_independent(*profiles([blamed("till", "c-1"), blamed("web", "c-1")], CALLS))
    assert not is_independent(*profiles([blamed("till", "c-1", "db"), blamed("web", "c-2", "db")], CALLS))
    for change in ("c-1", "c-3", ""):
        assert is_independent(*profiles([blamed("till", change), blamed("web", "c-2")], CALLS)), change
    assert is_independent(*profiles([blamed("till", "", "till"), blamed("web", "", "web")], CALLS))
    assert not is_independent(*profiles([blamed("till", "", "db"), struck("api")], CALLS)), "the whole depends on it"
    assert not is_independent(*profiles([blamed("till", "", "api"), struck("api")], CALLS)), (
        "it is the whole's own service"
    )


def test_a_cause_explains_what_depends_on_its_service_or_was_touched_by_its_change_or_shares_a_node() -> None:
    whole = blamed("api", "c-1", "db", touched="till")
    assert is_explained_by(*profiles([struck("web"), whole], CALLS))
    assert is_explained_by(*profiles([struck("db"), whole], CALLS))
    assert is_explained_by(*profiles([struck("till"), whole], CALLS))
    assert not is_explained_by(*profiles([struck("disk"), whole], CALLS)), (
        "what the cause depends on is none of its signs"
    )
    on_node = replace(whole, labels={"host": "n7"})
    assert is_explained_by(*profiles([struck("disk", labels={"node": "n7"}), on_node], CALLS))
    assert not is_explained_by(*profiles([struck("disk", labels={"node": "n8"}), on_node], CALLS))


# --- the same alert ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("later", "same"), [(MINUTES, True), (-MINUTES, True), (MINUTES + SECOND, False)])
def test_the_same_name_from_two_sources_is_the_same_alert_within_minutes(later: timedelta, same: bool) -> None:
    first = struck("api")
    other = replace(alert(), fingerprint="x", name="[FIRING:1] API is slow", summary="")
    second = struck("api", later, id="x", source="pagerduty", title="[Triggered] other", alerts=(other,))
    assert tells_the_same(second, first) is same
    assert not tells_the_same(replace(second, source=first.source), first)
    assert not tells_the_same(replace(second, service=""), replace(first, service=""))
    assert not tells_the_same(replace(second, alerts=()), first), "the title is another"


# --- who may be joined ------------------------------------------------------------------------------------------------


def test_only_what_nobody_works_on_and_nobody_separated_is_merged() -> None:
    assert is_free(struck("api", relations=APART))
    assert not may_absorb(struck("api", relations=APART))
    assert not is_free(struck("api", taken_by="Ada"))


def test_nothing_joins_itself_or_what_it_was_separated_from() -> None:
    twin = struck("api", MINUTE, id="other")
    same = replace(twin, alerts=struck("api").alerts)
    assert why(same, struck("api")) == "the same alert"
    assert why(same, replace(struck("api"), id="other")) == ""
    assert why(same, replace(struck("api"), relations=APART)) == ""


def test_two_audiences_share_what_is_said_only_if_each_may_read_the_other() -> None:
    public, secret = (Placement(place).audience(CHANNELS) for place in (INCIDENTS, SECRET))
    assert public.shares_with(public)
    assert secret.shares_with(secret)
    assert not public.shares_with(secret)
    assert not secret.shares_with(public)


# --- suggestions and storms -------------------------------------------------------------------------------------------


def test_of_several_that_it_depends_on_the_nearest_then_the_earliest_is_suggested() -> None:
    def suggested(*others: Incident) -> str:
        of, *beside = profiles([struck("web"), *others], CALLS, CHANNELS)
        found = suggested_parent(of, beside)
        return found.incident_id if found is not None else ""

    assert suggested(struck("disk", -MINUTE), struck("db"), struck("api", MINUTE)) == "api"
    assert suggested(struck("api", MINUTE, id="late"), struck("api", id="early")) == "early"
    assert suggested(struck("web", id="other"), struck("till")) == ""
    assert suggested(struck("db", severity=Severity.INFO)) == ""


@pytest.mark.parametrize(("seconds", "joins"), [(STORM, True), (STORM + SECOND, False)])
def test_a_storm_is_what_arrives_within_a_minute(seconds: timedelta, joins: bool) -> None:
    second = struck("api", seconds, id="second")
    posted = second.with_placement(message=MessageReference(INCIDENTS, "1"))
    first, late, shown = profiles([struck("api"), second, posted], CALLS, CHANNELS)
    assert (parent_in_storm(late, [first]) is not None) is joins
    assert parent_in_storm(shown, [first]) is None, "it has a message already"


def test_a_storm_is_led_by_the_worst_then_by_one_with_a_message_then_by_the_earliest() -> None:
    def leader(*others: Incident) -> str:
        of, *beside = profiles([struck("api", 30 * SECOND, id="new"), *others], CALLS, CHANNELS)
        found = parent_in_storm(of, beside)
        return found.parent.id if found is not None else ""

    early, posted = (
        struck("api", id="early"),
        struck("api", SECOND, id="posted", message=MessageReference(INCIDENTS, "1")),
    )
    worst = struck("api", 40 * SECOND, id="worst", severity=Severity.CRITICAL)
    assert leader(early, posted, worst) == "worst"
    assert leader(early, posted) == "posted"
    assert leader(struck("api", SECOND, id="later"), early) == "early"
    assert leader(struck("api", 40 * SECOND, id="late")) == "", "it is the earliest itself"


def test_related_are_callees_and_callers_as_far_as_dependencies_are_followed_and_not_itself() -> None:
    assert related_services(struck("db"), CALLS) == {"web", "api", "disk"}
    assert related_services(struck("till"), CALLS) == frozenset()
