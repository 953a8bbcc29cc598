"""Ordinary worlds have no cause, their faulty twins have theirs: a sample of `python -m tests.benchmarks worlds`.

Every failure names the shape, the twin and the way in.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from core.model.findings import Origin
from tests.cases import every_case
from tests.worlds.shapes import SHAPES, Shape, world_of
from tests.worlds.ways import WAYS, Verdict, applies, is_right, verdict
from tests.worlds.world import HOUR, MINUTE, World

OFTEN = ("pasted", "prompts", "text", "json")  # ways that take a tenth of a second or less
RARELY = 8  # every eighth shape is read through the readers, which start a server
CROWD = 100


@cache
def ways_of(shape: Shape) -> tuple[str, ...]:
    """Return the ways in which the sample reads a shape: by turns, and always one that shows all its twins."""
    number = list(SHAPES).index(shape.name)
    chosen = [OFTEN[number % len(OFTEN)], *(["readers"] if number % RARELY == 0 else [])]
    worlds = [world_of(shape.name, name) for name in ("", *(name for name, _ in shape.twins))]
    hidden = [each for each in worlds if not any(applies(each, way) for way in chosen)]
    return tuple(dict.fromkeys([*chosen, *(["readers"] if hidden else [])]))


def worlds_in(way: str) -> Iterator[tuple[str, str]]:
    for shape in SHAPES.values():
        if way in ways_of(shape):
            yield from ((shape.name, twin) for twin in ("", *(name for name, _ in shape.twins)))


def fault_in(world: World, said: Verdict) -> str:
    """Return what is wrong with what is said of a world; empty if nothing is."""
    if world.truth is None:
        return f"has no cause, and is told {said.cause}" if said.cause else ""
    return "" if is_right(world, said.cause) else f"has another cause than {said.cause or 'none'}"


@every_case("way", WAYS)
def test_a_healthy_world_has_no_cause_and_each_twin_has_its_own(way: str) -> None:
    wrong: list[str] = []
    for shape, twin in worlds_in(way):
        world = world_of(shape, twin)
        if applies(world, way) and (fault := fault_in(world, verdict(world, way))):
            wrong.append(f"{shape}, {twin or 'healthy'}, {way}: {fault}")
    assert not wrong, "\n".join(wrong)


def test_the_sample_has_every_shape_and_every_twin_in_a_way_that_shows_it() -> None:
    read = {pair for way in WAYS for pair in worlds_in(way) if applies(world_of(*pair), way)}
    assert read == {(each.name, twin) for each in SHAPES.values() for twin in ("", *(name for name, _ in each.twins))}


@every_case("way", WAYS)
def test_a_service_that_is_known_to_have_no_endpoint_is_at_fault_though_its_pods_are_ready(way: str) -> None:
    world = world_of("named_target_port", "target_name_of_no_port")
    assert not fault_in(world, verdict(world, way))


# The culprit of each twin: what is taken out, and the way in. What is left is a state or a setting that alone tells less.
CULPRITS = (
    ("pool_is_at_ease", "pool_lowered_by_a_change", "change", "readers"),
    ("exception_that_is_caught", "exception_after_a_release", "change", "readers"),
    ("killed_for_memory_last_week", "cache_raised_above_the_memory_limit", "change", "readers"),
    ("pool_is_at_ease", "pool_lowered_by_a_change", "log", "readers"),
    ("exception_that_is_caught", "exception_after_a_release", "log", "readers"),
    ("undeclared_port", "target_port_refuses", "log", "text"),
    ("everything_is_well", "name_is_not_resolved", "log", "prompts"),
    ("json_with_zero_errors", "database_refuses_connections", "log", "json"),
    ("only_metrics_declared", "readiness_probe_asks_another_port", "event", "text"),
    ("scheduled_after_a_while", "no_node_has_the_label", "event", "pasted"),
    ("scheduled_after_a_while", "taint_is_not_tolerated", "event", "prompts"),
    ("service_account_of_its_own", "service_account_is_absent", "event", "text"),
)


def without(world: World, healthy: World, culprit: str) -> None:
    """Take out of a twin the changes, the log messages or the events that its healthy world does not have."""
    if culprit == "change":
        usual = [each["title"] for each in healthy.changes]
        world.changes = [each for each in world.changes if each["title"] in usual]
    elif culprit == "event":
        usual = [each["message"] for each in healthy.of("Event")]
        world.objects = [each for each in world.objects if each["kind"] != "Event" or each["message"] in usual]
    else:
        for logs, before in (
            (world.pod_logs, healthy.pod_logs),
            (world.previous_logs, healthy.previous_logs),
            (world.logs, healthy.logs),
        ):
            for key, rows in logs.items():
                logs[key] = [row for row in rows if row in before.get(key, ())]  # type: ignore[index]


def test_without_its_culprit_a_cause_is_not_told() -> None:
    wrong: list[str] = []
    for shape, twin, culprit, way in CULPRITS:
        world, healthy = world_of(shape, twin), world_of(shape)
        if fault := fault_in(world, verdict(world, way)):
            wrong.append(f"{shape}, {twin}, {way}: {fault}")
        without(world, healthy, culprit)
        said = verdict(world, way)
        first = said.explanation.cause
        is_told = (
            first is not None and first.origin is Origin.CHANGE if culprit == "change" else is_right(world, said.cause)
        )
        if is_told:
            wrong.append(f"{shape}, {twin} without its {culprit}, {way}: is still told {said.cause}")
    assert not wrong, "\n".join(wrong)


CROWDED = (
    ("everything_is_well", "config_map_is_wrong", "text"),
    ("killed_for_memory_last_week", "killed_for_memory_now", "json"),
    ("scheduled_after_a_while", "no_node_has_the_label", "prompts"),
    ("image_pulled_at_the_third_attempt", "image_does_not_exist", "pasted"),
    ("pool_is_at_ease", "pool_lowered_by_a_change", "readers"),
)


def crowd(world: World) -> None:
    """Add a hundred healthy pods of other workloads, as many of their events, and as many changes of them."""
    names = [f"{part}-{number}" for part in ("lantern", "compass") for number in range(5)]
    for name in names:
        world.app(name, replicas=CROWD // len(names), age=-2 * HOUR)
    pods = [each["metadata"]["name"] for name in names for each in world.pods(name)]
    assert len(pods) == CROWD
    for number, pod in enumerate(pods):
        at = -2 * HOUR + number
        reason, message, warning = (
            ("Scheduled", f"Successfully assigned {pod} to node-1", False),
            ("Started", "Started container", False),
            ("Pulled", 'Container image "registry.example/x:1.7.3" already present on machine', False),
            ("Unhealthy", 'Readiness probe failed: Get "http://10.1.1.1:8080/": connect: connection refused', True),
        )[number % 4]
        world.event("Pod", pod, reason, message, at, warning=warning)
        name = names[number % len(names)]
        title, kind, files = (
            (f"docs: describe {name}", "commit", ("README.md",)),
            (f"release 3.{number}.0", "deploy", ()),
            (f"test: cover the edges of {name}", "commit", ("tests/test_edges.py",)),
        )[number % 3]
        world.change(title, -23 * HOUR + number * 13 * MINUTE, kind=kind, app=name, files=files)


def test_a_hundred_healthy_pods_events_and_changes_make_no_cause_and_hide_none() -> None:
    wrong: list[str] = []
    for shape, twin, way in CROWDED:
        for name in ("", twin):
            world = world_of(shape, name)
            crowd(world)
            if fault := fault_in(world, verdict(world, way)):
                wrong.append(f"{shape}, {name or 'healthy'} in a crowd, {way}: {fault}")
    assert not wrong, "\n".join(wrong)
