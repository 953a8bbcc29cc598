"""A source that plumbline.yaml no longer names."""

from __future__ import annotations

from collections.abc import AsyncIterator

from core.model.document import Document


class RemovedSource:
    """An empty source, so that everything read from it earlier is deleted."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def documents(self) -> AsyncIterator[Document]:
        return
        yield
