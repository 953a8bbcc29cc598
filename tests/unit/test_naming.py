"""Names that look the same are the same, wherever they are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from core.model.alert import AlertDelivery
from core.model.conversation import Channel, Place, Platform
from core.model.silences import incident_places, routing_facts
from core.model.team import Route, Team, means_nobody, merged_teams, spelled_alike, team_named
from core.model.text import name_key, spellings, visible_name
from handlers.incidents.open_incident import open_incident
from tests.fakes.store import InMemoryStore
from tests.samples import alert

NAME = "café-kasse"
INVISIBLE = ("\u200b", "\u200d", "\ufeff", "\u00ad", "\u2060", "\u200e", "\u202e", "\u2066")
SPACES = (" ", "\t", "\n", "\u00a0", "\u202f", "\u2003", "\u3000")
VARIANTS = [
    NAME.upper(),
    "cafe\u0301-kasse",
    "ｃａｆé-kasse",
    *(f"{space}{NAME}{space}" for space in SPACES),
    *(f"{sign}caf{sign}é-kasse{sign}" for sign in INVISIBLE),
]
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)


def test_every_spelling_that_looks_the_same_is_the_same_name() -> None:
    assert {name_key(name) for name in VARIANTS} == {name_key(NAME)}
    assert {visible_name(name).lower() for name in VARIANTS} == {NAME}
    assert name_key("kasse 1") != name_key("kasse1")
    assert name_key("a\u00a0b") == name_key("A b")


@given(st.text(max_size=30))
def test_the_key_of_a_key_is_that_key(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)
    assert name_key(visible_name(name)) == name_key(name)


async def test_an_alert_gets_the_spelling_of_the_known_service_in_its_incident() -> None:
    for number, name in enumerate([*VARIANTS, "unknown\u200b "]):
        delivery = AlertDelivery(f"k{number}", "grafana", f"g{number}", (replace(alert(), service=name),), NOW)
        incident = await open_incident(
            delivery,
            store=InMemoryStore(),
            places_for=lambda _: (Place(Platform.CONSOLE, "incidents"),),
            new_id=lambda: "i1",
            spelling=spellings([NAME, "other"]),
        )
        assert incident is not None
        assert incident.service == incident.alerts[0].service == (NAME if name in VARIANTS else "unknown")


def test_a_route_finds_the_team_the_channel_and_the_label_in_any_spelling() -> None:
    teams = (Team("till", "Till", services=frozenset({NAME})),)
    channels = (Channel("Kasse", {Platform.SLACK: "C1"}), Channel("rest", {Platform.SLACK: "C2"}))
    for name in VARIANTS:
        delivery = AlertDelivery("k", "grafana", "g", (replace(alert(), service=name, labels={"area": name}),), NOW)
        facts = routing_facts(delivery, teams)
        for match in (("team", frozenset({"TILL "})), ("area", frozenset({NAME})), ("service", frozenset({NAME}))):
            routes = (Route(("kasse\u200b",), (match,)), Route(("rest",)))
            assert incident_places(facts, routes, channels, [Platform.SLACK]) == (Place(Platform.SLACK, "C1"),), name


def test_catalogues_and_plumbline_yaml_name_the_same_teams_and_services() -> None:
    written = Team("till", "Till", services=frozenset({NAME}))
    for name in VARIANTS:
        assert team_named(name, [Team("x", NAME)]) is not None
        other = Team("kiosk", "Kiosk", services=frozenset({name, "stamps"}))
        teams = merged_teams([written], [other, Team("TILL\u00a0", "Till", services=frozenset({name}))])
        spelled, calls = spelled_alike(teams, {name: ("STAMPS", "mail")})
        assert [(team.id, team.services) for team in spelled] == [("till", {NAME}), ("kiosk", {"stamps"})]
        assert calls == {NAME: ("stamps", "mail")}
    assert means_nobody(" Nobody\u200b.")
