"""Which calls of which tools the fixed plan makes: those that need nothing but what is known of an incident."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

from core.ports import Tool, ToolParameter

MAX_CALLS = 24
MAX_COMBINED = 1_000  # values of all parameters of one tool that are put together
MAX_CHOICES = 4  # values of a parameter that has nothing to do with services
SERVICE_NAMES = frozenset({"service", "service_name", "app", "application", "component", "workload", "deployment"})


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """`service` is the one that it asks about, empty if it asks about none by name."""

    tool: Tool
    arguments: Mapping[str, str]
    service: str


def planned_calls(tools: Sequence[Tool], services: Sequence[str]) -> list[PlannedCall]:
    """At most MAX_CALLS calls, those about the first of the `services` first; of a tool that wants to know more, none."""
    found: list[tuple[int, PlannedCall]] = []
    for tool in tools:
        wanted = {parameter.name: _values(parameter, services) for parameter in tool.parameters}
        for values in islice(product(*wanted.values()), MAX_COMBINED):
            arguments = dict(zip(wanted, values, strict=True))
            about = next((value for value in values if value in services), "")
            found.append((services.index(about) if about else 0, PlannedCall(tool, arguments, about)))
    return [call for _, call in sorted(found, key=lambda each: each[0])[:MAX_CALLS]]


def _values(parameter: ToolParameter, services: Sequence[str]) -> tuple[str, ...]:
    """What a parameter is tried with; nothing where it cannot be known."""
    if parameter.snapshot:
        return ()
    if not parameter.choices:
        return tuple(services) if parameter.name.lower() in SERVICE_NAMES else ()
    about = tuple(service for service in services if service in parameter.choices)
    if about:
        return about
    return parameter.choices if len(parameter.choices) <= MAX_CHOICES else ()
