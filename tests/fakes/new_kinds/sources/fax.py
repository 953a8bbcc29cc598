"""A source that somebody adds: the faxes in a folder, each a text of which the first line is the title."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from adapters.section import Host
from adapters.sources.section import FileSection, Readers
from core.model.document import Document


class FaxSource:
    def __init__(self, name: str, folder: Path, readers: frozenset[str]) -> None:
        self.name = name
        self._folder = folder
        self._readers = readers

    async def documents(self) -> AsyncIterator[Document]:
        for file in sorted(self._folder.glob("*.fax")):
            title, _, text = file.read_text(encoding="utf-8").partition("\n")
            id_ = f"{self.name}/{file.stem}"
            yield Document(id_, self.name, "faxes", title, text, url="", readers=self._readers)


class FaxSection(FileSection):
    """Faxes. `readers` may read all of them."""

    kind: Literal["fax"]
    readers: Readers

    def open(self, host: Host) -> FaxSource:
        return FaxSource(self.name, self.path, frozenset(self.readers))
