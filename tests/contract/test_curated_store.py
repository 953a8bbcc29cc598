"""The contract of CuratedStore, over the fake and every database."""

from __future__ import annotations

from datetime import timedelta

from core.ports import Store
from tests import samples as messages
from tests.contract.records import NOW


async def test_a_curated_answer_comes_back_as_it_was_saved_last(store: Store) -> None:
    proposal = messages.proposed(id="a")
    answer = messages.confirmed(id="a", readers=frozenset({"channel:vault", "person:slack:U1"}))
    async with store.transaction() as transaction:
        await transaction.curated.save(proposal)
        assert await transaction.curated.get("a") == proposal
        await transaction.curated.save(answer)
    async with store.transaction() as transaction:
        assert await transaction.curated.get("a") == answer
        assert await transaction.curated.get("b") is None


async def test_a_curated_answer_is_current_from_its_confirmation_until_it_expires(store: Store) -> None:
    second = messages.confirmed(id="b", expires_at=NOW + timedelta(seconds=1))
    first = messages.confirmed(id="a", expires_at=NOW + timedelta(seconds=2))
    async with store.transaction() as transaction:
        for answer in (messages.proposed(id="c"), second, first):
            await transaction.curated.save(answer)
        assert await transaction.curated.current(NOW) == [first, second]
        assert await transaction.curated.current(NOW + timedelta(seconds=1)) == [first]
