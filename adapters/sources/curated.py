"""Sources without an external system: confirmed answers, and the empty successor of a removed source."""

from __future__ import annotations

from collections.abc import AsyncIterator

from core.model.curated import SOURCE, document
from core.model.document import Document
from core.ports import Clock, Store


class CuratedSource:
    """The confirmed answers that have not expired. Raises StoreUnavailable."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    @property
    def name(self) -> str:
        return SOURCE

    async def documents(self) -> AsyncIterator[Document]:
        async with self._store.transaction() as transaction:
            current = await transaction.curated.current(self._clock.now())
        for answer in current:
            yield document(answer)


class RemovedSource:
    """An empty source, so that everything read from it earlier is deleted."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def documents(self) -> AsyncIterator[Document]:
        return
        yield
