"""Numpy arrays in one file and one blob of bytes, written without pickle, and the models that are made of them.

The models are the encoder and those of triage: who owns an incident, and whether it needs a person.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import structlog

from core.knowledge.terms import FORMAT, Encoder, TermStatistics
from core.triage.owner_model import MODEL_FORMAT, EmbeddingSignals, OwnerModel, Postings, TeamScores, TextSimilarity
from core.triage.paging import VERSION, PageModel

T = TypeVar("T")

Arrays = Mapping[str, Any]  # numpy arrays by name

# Appended to the archive, where readers of archives ignore it.
_SEAL = b"plumbline sha256"
_SIZE = len(_SEAL) + hashlib.sha256().digest_size
# The errors that numpy raises for an intact file that another version wrote.
_UNREADABLE = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error),
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ArrayFormat(Generic[T]):
    """Conversion between a `T` and arrays. `unpack` returns None for an unknown version, or raises ValueError or
    KeyError.

    `name` describes the content in the log.
    """

    pack: Callable[[T], Arrays]
    unpack: Callable[[Arrays], T | None]
    name: str = "model"

    def written(self, content: T) -> bytes:
        file = io.BytesIO()
        np.savez(file, **self.pack(content))
        seal = _SEAL + hashlib.sha256(file.getbuffer()).digest()
        file.seek(0, os.SEEK_END)
        file.write(seal)
        return file.getvalue()

    def read(self, written: bytes) -> T | None:
        """Return the content; None, with a warning in the log, if it is damaged or of an unknown version."""
        archive, seal = memoryview(written)[:-_SIZE], written[-_SIZE:]
        if seal != _SEAL + hashlib.sha256(archive).digest():
            return self._unread("The file is damaged, or an earlier version wrote it.")
        try:
            with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:  # noqa: TID251 -- the one reader
                return self.unpack(arrays)
        except _UNREADABLE as error:
            return self._unread(str(error))

    def _unread(self, reason: str) -> None:
        log.warning("learned_model_unreadable", model=self.name, error=reason, action="It will be learned again.")


@dataclass(frozen=True, slots=True)
class _Loaded(Generic[T]):
    """The loaded value, and the state of its file (inode, modification time in ns)."""

    state: tuple[int, int]
    content: T | None


class ArrayFile(Generic[T]):
    """Implements `core.ports.LearnedStore`. Replaced by renaming: a reader sees the old content or the new one."""

    def __init__(self, path: Path, form: ArrayFormat[T]) -> None:
        self._path = path
        self._form = form
        self._loaded: _Loaded[T] | None = None

    async def load(self) -> T | None:
        """Return the content; None if nothing was saved or the file is damaged."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        state = (status.st_ino, status.st_mtime_ns)
        if self._loaded is None or self._loaded.state != state:
            self._loaded = _Loaded(state, await asyncio.to_thread(self._read))
        return self._loaded.content

    async def load_newest(self) -> T | None:
        return await self.load()

    async def save(self, content: T, /) -> None:
        await asyncio.to_thread(self._write, content)

    def _write(self, content: T) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        with temporary.open("wb") as file:
            file.write(self._form.written(content))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)

    def _read(self) -> T | None:
        try:
            return self._form.read(self._path.read_bytes())
        except OSError:
            return None


def _pack(encoder: Encoder) -> Arrays:
    meta = {
        "format": FORMAT,
        "passages": encoder.statistics.passages,
        "total_length": encoder.statistics.total_length,
        "average_length": encoder.average_length,
        "changed_since_fit": encoder.changed_since_fit,
        "settled": encoder.settled,
        "embedder": encoder.embedder,
        "families": dict(encoder.families),
        "embedded": encoder.embedded,
    }
    return {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "terms": encoder.statistics.terms,
        "counts": encoder.statistics.counts,
        "repeated": encoder.statistics.repeated,
    }


def _unpack(arrays: Arrays) -> Encoder | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        log.warning("index_of_another_version", action="Searches find nothing until the next ingestion has rebuilt it.")
        return None
    return Encoder(
        TermStatistics(arrays["terms"], arrays["counts"], arrays["repeated"], meta["passages"], meta["total_length"]),
        meta["average_length"],
        meta["changed_since_fit"],
        meta["settled"],
        meta["embedder"],
        meta["families"],
        meta["embedded"],
    )


ENCODER = ArrayFormat(_pack, _unpack, "encoder")


Part = TypeVar("Part", TeamScores, Postings)

_WORDS, _MEANING = "", "embedding-"  # prefixes of the names of the arrays


def _pack_owner_model(model: OwnerModel) -> Arrays:
    embedding = model.embedding
    meta = {"format": MODEL_FORMAT, "teams": model.teams, "embedder": embedding.embedder if embedding else ""}
    arrays: dict[str, Any] = {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8), "owners": model.owners}
    arrays |= _columns(_WORDS, model.scores)
    for index in fields(TextSimilarity):
        arrays |= _columns(f"{index.name}-", getattr(model.similarity, index.name))
    if embedding is not None:
        digests = np.frombuffer(b"".join(embedding.digests), np.uint8).reshape(len(embedding.digests), -1)
        arrays |= {"digests": digests, "vectors": embedding.vectors, **_columns(_MEANING, embedding.scores)}
    return arrays


def _unpack_owner_model(arrays: Arrays) -> OwnerModel | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != MODEL_FORMAT:
        return None
    embedding = None
    if meta["embedder"]:
        digests: list[bytes] = [digest.tobytes() for digest in arrays["digests"]]
        scores = _read(TeamScores, _MEANING, arrays)
        embedding = EmbeddingSignals(meta["embedder"], tuple(digests), arrays["vectors"], scores)
    return OwnerModel(
        tuple(meta["teams"]),
        arrays["owners"],
        TextSimilarity(*(_read(Postings, f"{index.name}-", arrays) for index in fields(TextSimilarity))),
        _read(TeamScores, _WORDS, arrays),
        (),
        embedding,
    )


def _columns(prefix: str, part: TeamScores | Postings) -> dict[str, Any]:
    return {f"{prefix}{field.name}": getattr(part, field.name) for field in fields(part)}


def _read(kind: type[Part], prefix: str, arrays: Arrays) -> Part:
    return kind(*(arrays[f"{prefix}{field.name}"] for field in fields(kind)))


OWNER_MODEL = ArrayFormat(_pack_owner_model, _unpack_owner_model, "owner model")
"""`held_out` is not saved, because it is needed only to label a newly fitted model."""


def _pack_page_model(model: PageModel) -> Arrays:
    return {each.name: np.asarray(getattr(model, each.name)) for each in fields(PageModel)} | {"format": VERSION}


def _unpack_page_model(arrays: Arrays) -> PageModel | None:
    if str(arrays["format"]) != VERSION:
        return None
    values: dict[str, Any] = {each.name: arrays[each.name] for each in fields(PageModel)}
    values["bias"] = float(arrays["bias"])
    return PageModel(**values)


PAGE_MODEL = ArrayFormat(_pack_page_model, _unpack_page_model, "page model")
