"""Corpus files as knowledge sources for evaluations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from adapters.sources.formats import parse_markdown, title_from
from adapters.sources.front_matter import Properties
from bot.evaluation.json_lines import json_lines
from core.model.document import Document
from core.model.errors import MalformedInput


@dataclass(frozen=True, slots=True)
class CorpusFile:
    """A JSON lines file of documents as a knowledge source."""

    name: str
    path: Path

    async def documents(self) -> AsyncIterator[Document]:
        for row in json_lines(self.path, "path", "text"):
            yield _document(self.name, row["path"], row["text"])


def _document(source: str, path: str, text: str) -> Document:
    try:
        properties, body = parse_markdown(text)
    except MalformedInput:
        properties, body = Properties(), text
    place = PurePosixPath(path)
    family = place.parts[0] if len(place.parts) > 1 else source
    return Document(f"{source}/{path}", source, family, properties.title or title_from(place), body)
