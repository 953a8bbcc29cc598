"""Routing of incidents to channels."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.conversation import Channel, Place, Platform
from core.model.errors import ConfigurationError
from core.model.incident import AlertDelivery
from core.model.silences import Facts, alert_facts
from core.model.team import Route, Team


def routing_facts(delivery: AlertDelivery, teams: Sequence[Team]) -> Facts:
    """Return the facts that routes match, for the incident that a delivery opens (at least one of its alerts fires).

    They are its labels, and in addition `source`, `service`, `severity` (normalised) and `team` (ids of the teams that
    own the service).
    """
    return alert_facts(delivery.first_firing, delivery.source, teams)


def incident_places(
    facts: Facts, routes: Sequence[Route], channels: Sequence[Channel], platforms: Sequence[Platform]
) -> tuple[Place, ...]:
    """Return the places of the first matching route: `incident_place`, then the places of `also`."""
    main = incident_place(facts, routes, channels, platforms)
    route = next(route for route in routes if _main_place(route, facts, channels, platforms) == main)
    others = (place for name in route.also for place in _places(name, channels, platforms))
    return tuple(dict.fromkeys((main, *others)))


def incident_place(
    facts: Facts, routes: Sequence[Route], channels: Sequence[Channel], platforms: Sequence[Platform]
) -> Place:
    """Return the first available channel of the first matching route, by the order of `platforms`.

    Raises ConfigurationError if no route leads to a channel on an enabled platform.
    """
    main = (_main_place(route, facts, channels, platforms) for route in routes)
    if (found := next(filter(None, main), None)) is not None:
        return found
    known = {name: " or ".join(sorted(values)) for name, values in sorted(facts.items()) if any(values)}
    raise ConfigurationError(
        f"No route in plumbline.yaml leads an incident with {known} to a channel on "
        f"{' or '.join(platforms)}: add a route without `match` as the last one."
    )


def _main_place(route: Route, facts: Facts, channels: Sequence[Channel], platforms: Sequence[Platform]) -> Place | None:
    if not route.matches(facts):
        return None
    found = [place for name in route.channels for place in _places(name, channels, platforms)]
    return min(found, key=lambda place: platforms.index(place.platform), default=None)


def _places(name: str, channels: Sequence[Channel], platforms: Sequence[Platform]) -> list[Place]:
    """Return a channel's place on every platform that has it, in the order of the platforms."""
    ids = next((channel.ids for channel in channels if channel.name == name), dict[Platform, str]())
    return [Place(platform, ids[platform]) for platform in platforms if platform in ids]
