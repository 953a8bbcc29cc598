"""A source of questions and answers: the rows of a CSV file, with the columns `question` and `answer`."""

from __future__ import annotations

import csv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

from adapters.section import Host
from adapters.sources.section import FileSection, Readers
from core.knowledge.clean_text import without_struck
from core.model.document import Document
from core.model.errors import SourceUnavailable


class FaqSource:
    """A CSV file, each row of which is a document, in Markdown. The column `readers`, if it is there, overrides `readers`."""

    def __init__(self, name: str, path: Path, readers: tuple[str, ...]) -> None:
        self.name = name
        self._path = path
        self._readers = readers

    async def documents(self) -> AsyncIterator[Document]:
        try:
            with self._path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file, restval=""))
        except (OSError, ValueError, csv.Error) as error:
            raise SourceUnavailable(f"{self._path} cannot be read: {error}.") from error
        for row in rows:
            if question := row.get("question"):
                readers = (row.get("readers") or "").split() or self._readers
                answer = without_struck(row.get("answer") or "")
                yield Document(
                    f"{self.name}/{question}", self.name, "faq", question, answer, readers=frozenset(readers)
                )


class FaqSection(FileSection):
    """Questions and answers. `readers` may read them."""

    kind: Literal["faq"]
    readers: Readers

    def open(self, host: Host) -> FaqSource:
        return FaqSource(self.name, self.path, self.readers)
