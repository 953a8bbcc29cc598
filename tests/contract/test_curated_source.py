"""Confirmed answers become documents, and are gone when they expire."""

from __future__ import annotations

from datetime import timedelta

import pytest

from adapters.store.knowledge import CuratedSource
from core.model.document import Document
from tests.fakes.clock import FakeClock
from tests.fakes.store import InMemoryStore
from tests.samples import START, confirmed, proposed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


async def documents(store: InMemoryStore, clock: FakeClock) -> list[Document]:
    return [document async for document in CuratedSource(store, clock).documents()]


async def test_the_title_of_a_confirmed_answer_says_who_vouches_for_it(store: InMemoryStore, clock: FakeClock) -> None:
    await store.curated.save(confirmed(readers=frozenset({"channel:vault"})))
    (document,) = await documents(store, clock)
    assert document.title == (
        "How do I roll back a canary? · Confirmed by Asha Brandt on 2026-03-14, expires 2026-09-10"
    )
    assert document.text == confirmed().text
    assert document.readers == {"channel:vault"}
    assert document.updated_at == START
    assert document.id.startswith(f"{document.source}/")


async def test_a_proposal_is_no_document(store: InMemoryStore, clock: FakeClock) -> None:
    await store.curated.save(proposed())
    assert await documents(store, clock) == []


async def test_an_answer_is_gone_when_it_expires(store: InMemoryStore, clock: FakeClock) -> None:
    await store.curated.save(confirmed(expires_at=START + timedelta(days=180)))
    clock.advance(180 * 86_400 - 1)
    assert len(await documents(store, clock)) == 1
    clock.advance(1)
    assert await documents(store, clock) == []
