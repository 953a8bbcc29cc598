"""A source that plumbline.yaml named once, and names no longer."""

from __future__ import annotations

from collections.abc import AsyncIterator

from core.model.document import Document


class FormerSource:
    """Holds nothing any more, so that whatever was read from it goes."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def documents(self) -> AsyncIterator[Document]:
        return
        yield
