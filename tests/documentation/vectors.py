"""`python -m tests.documentation.vectors`: write the vectors of the sample company, with which `plumbline demo` starts."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from adapters.embeddings.embedded import EmbeddedEmbedder
from adapters.known_vectors import KnownVectors, digest
from bot.commands.demo import SAMPLE_COMPANY, VECTORS
from bot.config.settings import load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import ingest, open_core
from core.answering.excerpts import chunk_texts
from core.knowledge.passages import packed


async def sample_texts() -> list[str]:
    """Return the texts of the sample company that a model reads, each once."""
    workspace = load_workspace(SAMPLE_COMPANY / "plumbline.yaml")
    with tempfile.TemporaryDirectory(prefix="plumbline-vectors-") as folder:
        settings = load_settings(data_dir=Path(folder), database_url="", qdrant_url="", embeddings="none")
        async with open_core(settings, workspace) as core:
            await ingest(core)
            passages = [passage async for passage in core.knowledge.index.scan()]
    return sorted({text for passage in passages for text in chunk_texts(passage)})


async def content() -> bytes:
    """Return the file. Vectors of texts that have not changed are kept."""
    texts, embedder = await sample_texts(), EmbeddedEmbedder()
    rows = await KnownVectors(embedder, VECTORS).embed_passages(texts)
    records = (digest(text) + packed(row) for text, row in zip(texts, rows, strict=True))
    return b"\n".join((embedder.name.encode(), b"".join(records)))


if __name__ == "__main__":
    VECTORS.write_bytes(asyncio.run(content()))
