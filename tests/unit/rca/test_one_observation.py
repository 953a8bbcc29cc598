"""An object is the same, whatever form a tool prints it in: JSON, YAML or the text of `kubectl describe`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache

import pytest
import yaml

from core.rca.cluster.reading import read
from core.rca.cluster.state import Cluster, Container, Event, Resource, ShownPart
from core.rca.log_lines import reason_of
from core.rca.tool_outputs import PASTED, ToolOutput, records_of
from tests.worlds.forms import NOW, described
from tests.worlds.shapes import SHAPES, world_of
from tests.worlds.world import Object, World

DESCRIBED = ("Pod", "Service", "Deployment", "StatefulSet", "Node")
FORMS = ("json", "yaml", "list of json")


@cache
def worlds() -> Mapping[str, World]:
    """Return all worlds by name, those of one shape with the same names and noise."""
    return {
        f"{shape.name}, {twin or 'healthy'}": world_of(shape.name, twin)
        for shape in SHAPES.values()
        for twin in ("", *(name for name, _ in shape.twins))
    }


def objects() -> Iterator[tuple[str, World, Object]]:
    """Yield each different object of all worlds that `kubectl describe` is written for, with its name."""
    seen = set[str]()
    for name, world in worlds().items():
        for given in world.objects:
            text = described(world, given) if given["kind"] in DESCRIBED else ""
            if text and text not in seen:
                seen.add(text)
                yield f"{name}: {given['kind']}/{given['metadata']['name']}", world, given


def cluster_of(text: str) -> Cluster:
    return read([ToolOutput("kubectl", {"namespace": "live"}, text)], NOW)


def written(given: Object, form: str) -> str:
    if form == "yaml":
        return yaml.safe_dump(given, sort_keys=False)
    return json.dumps(given if form == "json" else {"apiVersion": "v1", "kind": "List", "items": [given]})


def only(cluster: Cluster) -> Resource:
    [resource] = cluster.resources.values()
    return resource


def as_described(resource: Resource) -> dict[str, object]:
    """Return the fields of an object that a description shows, in the words that both forms have.

    A description names no port, and has endpoints beside a service, which in the API are an object of their own.
    """
    containers = tuple(_as_described(each, resource.kind) for each in resource.containers)
    shown: dict[str, object] = {
        "kind": resource.kind, "name": resource.name, "namespace": resource.namespace, "labels": dict(resource.labels), "containers": containers,
    }  # fmt: skip
    fields = {
        "Pod": ("status", "reason", "message", "wanted", "ready", "owner", "node", "node_selector", "claims"),
        "Service": ("selector", "address"),
        "Workload": ("wanted", "ready"),
        "Node": ("status", "cordoned", "is_control"),
    }[resource.kind]
    shown |= {name: getattr(resource, name) for name in fields}
    if resource.kind == "Node":
        shown["conditions"] = [replace(each, at=None) for each in resource.conditions]
    if resource.kind == "Service":
        shown |= {"labels": {}, "ports": [(each.number, each.protocol, each.target) for each in resource.ports]}
    return shown


def _as_described(container: Container, kind: str) -> Container:
    ports = tuple(replace(each, name="", target="") for each in container.ports)
    plain = {key: value for key, value in container.environment.items() if value and not value.startswith("<set to")}
    seen = replace(container, ports=ports, environment=plain)
    return seen if kind == "Pod" else replace(seen, ready=None, restarts=None)


@pytest.mark.parametrize("form", FORMS[:2])
def test_an_object_is_the_same_in_a_manifest_and_in_a_description(form: str) -> None:
    different: list[str] = []
    for place, world, given in objects():
        ours, theirs = (
            as_described(only(cluster_of(text))) for text in (written(given, form), described(world, given))
        )
        different += [f"{place} {name}: {ours[name]} != {theirs[name]}" for name in ours if ours[name] != theirs[name]]
    assert not different, "\n".join(different[:20])


def test_a_manifest_is_the_same_in_json_and_in_yaml() -> None:
    different: list[str] = []
    given = {json.dumps(each): each for world in worlds().values() for each in world.objects}
    for each in given.values():
        told = [_plain(cluster_of(written(each, form))) for form in FORMS]
        different += [f"{each['kind']}/{each['metadata']['name']}: {told}"] if told != [told[0]] * len(FORMS) else []
    assert not different, "\n".join(different[:20])


def _plain(cluster: Cluster) -> tuple[list[Resource], list[Event]]:
    """Return what was read, without the lines that show it."""
    nothing = ShownPart("", "")
    return (
        [replace(each, shown=()) for each in cluster.resources.values()],
        [replace(each, shown=nothing) for each in cluster.events],
    )


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        (
            (
                "javax.servlet.ServletException: no answer\n\tat web.Front.get(Front.java:8)\n"
                "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available\n\tat db.Pool.get(Pool.java:1)"
            ),
            "SQLTransientConnectionException: HikariPool-1 - Connection is not available",
        ),
        (
            (
                'Traceback (most recent call last):\n  File "/srv/api.py", line 7, in picks\n    days = now - login\n'
                "TypeError: unsupported operand type(s) for -: 'datetime' and 'NoneType'"
            ),
            "TypeError: unsupported operand type(s) for -: 'datetime' and 'NoneType'",
        ),
    ],
    ids=["Java", "Python"],
)
@pytest.mark.parametrize("tool", [PASTED, "get_logs"])
def test_the_error_below_a_record_without_a_time_belongs_to_it_and_is_its_reason(
    trace: str, reason: str, tool: str
) -> None:
    text = f"2026-03-10T09:00:00Z INFO started\n2026-03-10T09:00:01Z ERROR request failed\n{trace}\n"
    records = records_of(ToolOutput(tool, {}, text), "shop", datetime(2026, 3, 10, 9, 1, tzinfo=UTC))
    assert [each.level for each in records] == ["INFO", "ERROR"]
    assert reason_of(records[-1].text) == reason


def test_a_log_below_a_heading_in_pasted_text_is_that_of_the_service_it_names() -> None:
    row = "2026-03-10T09:00:01Z ERROR no route to host"
    text = f"Baskets are empty (service cart)\n\nlast lines of stock:\n{row}\n"
    records = records_of(ToolOutput(PASTED, {}, text), "cart", datetime(2026, 3, 10, 9, 1, tzinfo=UTC))
    assert [each.service for each in records] == ["stock"]
