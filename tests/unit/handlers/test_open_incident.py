from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

import pytest

from core.conversation import Place, Platform
from core.errors import ConfigurationError, Conflict
from core.incident import Alert, AlertDelivery, AlertStatus, Incident, IncidentState, Severity
from core.ports import Task
from handlers.open_incident import MAX_ATTEMPTS, open_incident
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.CONSOLE, "incidents")
FIRING = Alert("a", "LatencyHigh", AlertStatus.FIRING, Severity.WARNING, NOW, "till", labels={"service": "till"})
RESOLVED = replace(FIRING, status=AlertStatus.RESOLVED)
OTHER = replace(FIRING, fingerprint="b")

_numbers = count(1)


def delivery(*alerts: Alert, key: str = "", group: str = "group") -> AlertDelivery:
    return AlertDelivery(key or f"key {next(_numbers)}", "alertmanager", group, alerts, NOW)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def opened(
    store: InMemoryStore, arrived: AlertDelivery, place_for: Callable[[dict[str, str]], Place] = lambda _: PLACE
) -> Incident | None:
    return await open_incident(arrived, store=store, place_for=place_for, new_id=lambda: f"i{next(_numbers)}")


async def run_all(store: InMemoryStore) -> list[Task]:
    """Take up everything that waits, as the dispatcher does."""
    tasks = await store.tasks.claim(100)
    for task in tasks:
        await store.tasks.mark_started(task.key)
    return tasks


async def test_a_firing_alert_opens_an_incident_and_asks_for_its_investigation(store: InMemoryStore) -> None:
    incident = await opened(store, delivery(FIRING))
    assert incident is not None
    assert store.incidents.by_id == {incident.id: incident}
    assert incident.place == PLACE
    assert await run_all(store) == [
        Task(f"investigate_incident:{incident.id}", "investigate_incident", incident.id, {})
    ]


async def test_the_place_follows_from_the_labels_of_an_alert_that_fires(store: InMemoryStore) -> None:
    over = replace(RESOLVED, fingerprint="over", labels={"service": "shelf"})
    asked: list[dict[str, str]] = []

    def place_for(labels: dict[str, str]) -> Place:
        asked.append(labels)
        return PLACE

    await opened(store, delivery(over, FIRING), place_for)
    assert asked == [{"service": "till"}]


async def test_a_delivery_that_was_seen_before_is_dropped(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING, key="same"))
    assert await opened(store, delivery(FIRING, key="same")) is None
    assert list(store.incidents.by_id.values()) == [first]


async def test_a_resolved_alert_that_nobody_knew_opens_nothing(store: InMemoryStore) -> None:
    assert await opened(store, delivery(RESOLVED)) is None
    assert store.incidents.by_id == {}
    assert store.tasks.added == {}


async def test_another_alert_of_the_group_is_folded_into_the_open_incident(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING))
    await run_all(store)
    second = await opened(store, delivery(FIRING, OTHER))
    assert first is not None
    assert second is not None
    assert (second.id, second.alert_count, second.revision) == (first.id, 2, 2)
    assert [task.workflow for task in await run_all(store)] == ["present_incident"]


async def test_another_group_is_another_incident(store: InMemoryStore) -> None:
    await opened(store, delivery(FIRING))
    await opened(store, delivery(FIRING, group="another"))
    assert len(store.incidents.by_id) == 2


async def test_an_alert_after_the_incident_was_resolved_opens_another(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING))
    resolved = await opened(store, delivery(RESOLVED))
    again = await opened(store, delivery(FIRING))
    assert first is not None
    assert resolved is not None
    assert again is not None
    assert (resolved.id, resolved.state) == (first.id, IncidentState.RESOLVED)
    assert again.id != first.id


async def test_a_storm_asks_for_one_presentation_until_somebody_takes_it_up(store: InMemoryStore) -> None:
    await opened(store, delivery(FIRING))
    await run_all(store)
    for _ in range(20):
        await opened(store, delivery(FIRING))
    assert len(await run_all(store)) == 1


async def test_what_arrives_once_a_presentation_is_taken_up_asks_for_another(store: InMemoryStore) -> None:
    """The one under way may have read the incident already."""
    await opened(store, delivery(FIRING))
    await run_all(store)
    await opened(store, delivery(FIRING))
    (under_way,) = await store.tasks.claim(100)
    last = await opened(store, delivery(FIRING))
    assert last is not None
    assert [task.key for task in await run_all(store)] == [under_way.key, f"present_incident:{last.id}:{last.revision}"]


async def test_a_writer_who_loses_a_race_tries_again(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS - 1
    assert await opened(store, delivery(FIRING)) is not None
    assert len(store.incidents.by_id) == len(store.tasks.added) == 1


async def test_a_writer_who_always_loses_gives_up_and_leaves_nothing_behind(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS
    with pytest.raises(Conflict, match="Alert group group: 10 attempts"):
        await opened(store, delivery(FIRING, key="same"))
    assert await opened(store, delivery(FIRING, key="same")) is not None, "its sender tries again"


async def test_an_alert_without_a_place_is_not_accepted(store: InMemoryStore) -> None:
    def nowhere(labels: dict[str, str]) -> Place:
        raise ConfigurationError("No route.")

    with pytest.raises(ConfigurationError):
        await opened(store, delivery(FIRING, key="same"), nowhere)
    assert await opened(store, delivery(FIRING, key="same")) is not None, "its sender tries again"
