from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.errors import Conflict, PlumblineError
from handlers.common.stored_incident import MAX_ATTEMPTS, update_incident
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

INCIDENT = explained_incident(id="i1", revision=3)


@pytest.fixture
def store() -> InMemoryStore:
    store = InMemoryStore()
    store.incidents.by_id["i1"] = INCIDENT
    return store


async def test_a_change_is_saved_as_the_next_revision(store: InMemoryStore) -> None:
    changed = await update_incident("i1", lambda latest: replace(latest, taken_by="Ada"), store)
    assert changed == replace(INCIDENT, taken_by="Ada", revision=4)
    assert store.incidents.by_id["i1"] == changed


async def test_a_change_that_changes_nothing_makes_no_revision(store: InMemoryStore) -> None:
    assert await update_incident("i1", lambda latest: latest, store) == INCIDENT
    assert store.incidents.by_id["i1"].revision == 3


async def test_whoever_loses_a_race_repeats_the_change_on_what_the_winner_left(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS - 1
    changed = await update_incident(
        "i1", lambda latest: replace(latest, delivery_count=latest.delivery_count + 1), store
    )
    assert changed.delivery_count == INCIDENT.delivery_count + 1


async def test_a_change_of_an_incident_that_was_saved_since_it_was_read_keeps_both_changes(
    store: InMemoryStore,
) -> None:
    await update_incident("i1", lambda latest: replace(latest, taken_by="Ada"), store)
    changed = await update_incident("i1", lambda latest: replace(latest, alert_count=77), store, INCIDENT)
    assert changed == replace(INCIDENT, taken_by="Ada", alert_count=77, revision=5)


async def test_whoever_always_loses_gives_up(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS
    with pytest.raises(Conflict, match="Incident i1 is changed too often"):
        await update_incident("i1", lambda latest: replace(latest, taken_by="Ada"), store)


async def test_an_incident_that_does_not_exist_cannot_be_changed(store: InMemoryStore) -> None:
    with pytest.raises(PlumblineError, match="Incident i2 does not exist"):
        await update_incident("i2", lambda latest: latest, store)
