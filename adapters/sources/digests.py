"""Digests of files, by which a source knows those that have not changed before it parses them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from adapters import html
from adapters.sources.section import cursor_of, positions_of
from core.knowledge import clean_text
from core.model.document import Document
from core.ports import LeftOut

_DIGESTS = TypeAdapter(dict[str, str])


@cache
def parser() -> bytes:
    """Return a digest of the code that makes documents of files: what another one made of a file is made anew."""
    files = [*Path(__file__).parent.glob("*.py"), Path(html.__file__), Path(clean_text.__file__)]
    return hashlib.blake2b(b"".join(file.read_bytes() for file in sorted(files)), digest_size=8).digest()


class Digests:
    """The digests of a source's files by their paths: as they were when it was read last, and as they are now."""

    def __init__(self, source: str, cursor: str) -> None:
        self._source = source
        self._before = positions_of(cursor, _DIGESTS)
        self._now = dict[str, str]()
        self._changed = set[str]()  # ids of the documents that were read

    def is_known(self, path: str, content: bytes) -> bool:
        """Return whether a file has the same bytes as before, and note them."""
        self._now[path] = hashlib.blake2b(parser() + content, digest_size=16).hexdigest()
        return self._now[path] == self._before.get(path)

    def changes(
        self, path: str, parts: Sequence[Document | LeftOut]
    ) -> tuple[tuple[Document, ...], tuple[LeftOut, ...]]:
        """Return the documents of a file and what was left out of it, for which it is read again the next time."""
        documents = tuple(part for part in parts if isinstance(part, Document))
        left_out = tuple(part for part in parts if isinstance(part, LeftOut))
        self._changed |= {document.id for document in documents}
        if left_out:
            self._now.pop(path, None)
        return documents, left_out

    def end(self, known_ids: frozenset[str]) -> tuple[frozenset[str], str]:
        """Return those of the known documents that are gone, and the cursor for the next reading."""
        same = {path for path, digest in self._now.items() if digest == self._before.get(path)}
        gone = {each for each in known_ids - self._changed if self._path(each) not in same}
        return frozenset(gone), cursor_of(self._now)

    def _path(self, document_id: str) -> str:
        return document_id.removeprefix(f"{self._source}/").partition("#page=")[0]
