"""The encoder in a file of the data directory, read again whenever some process has replaced it."""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.knowledge.encoder import FORMAT, Encoder
from core.knowledge.latent import LatentModel
from core.knowledge.statistics import TermStatistics


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What was read, and the state of the file it was read from (inode, modification time in ns)."""

    state: tuple[int, int]
    encoder: Encoder | None


class EncoderFile:
    """An EncoderStore on one file. Replaced by renaming, so that a reader sees the old one or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loaded: _Loaded | None = None

    async def load(self) -> Encoder | None:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        state = (status.st_ino, status.st_mtime_ns)
        if self._loaded is None or self._loaded.state != state:
            self._loaded = _Loaded(state, await asyncio.to_thread(_read, self._path))
        return self._loaded.encoder

    async def save(self, encoder: Encoder) -> None:
        await asyncio.to_thread(_write, self._path, encoder)


def _write(path: Path, encoder: Encoder) -> None:
    meta = {
        "format": FORMAT,
        "passages": encoder.statistics.passages,
        "total_length": encoder.statistics.total_length,
        "average_length": encoder.average_length,
        "changed_since_fit": encoder.changed_since_fit,
        "settled": encoder.settled,
        "embedder": encoder.embedder,
        "trained": encoder.latent.trained,
        "families": dict(encoder.families),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    with temporary.open("wb") as file:
        np.savez(
            file,
            meta=np.frombuffer(json.dumps(meta).encode(), np.uint8),
            terms=encoder.statistics.terms,
            counts=encoder.statistics.counts,
            features=encoder.latent.features,
            idf=encoder.latent.idf,
            components=encoder.latent.components.astype(np.float16),
        )
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _read(path: Path) -> Encoder | None:
    """None for a file of another format or a damaged one: the next ingestion learns the encoder anew."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
            if meta["format"] != FORMAT:
                return None
            return Encoder(
                TermStatistics(arrays["terms"], arrays["counts"], meta["passages"], meta["total_length"]),
                meta["average_length"],
                LatentModel(
                    arrays["features"], arrays["idf"], arrays["components"].astype(np.float32), meta["trained"]
                ),
                meta["changed_since_fit"],
                meta["settled"],
                meta["embedder"],
                meta["families"],
            )
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None
