"""The contract of ReplicaStore, over the fake and every database."""

from __future__ import annotations

from datetime import timedelta

from core.ports import Store
from tests.contract.records import NOW


async def test_a_replica_is_known_from_when_it_was_seen_until_it_is_removed(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.replicas.seen("us", NOW)
        await transaction.replicas.seen("them", NOW)
        await transaction.replicas.seen("us", NOW + timedelta(seconds=2))
        assert await transaction.replicas.all() == {"us": NOW + timedelta(seconds=2), "them": NOW}
        await transaction.replicas.remove("them")
        assert list(await transaction.replicas.all()) == ["us"]
