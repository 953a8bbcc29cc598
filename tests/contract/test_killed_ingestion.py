"""An ingestion killed at any of its batches loses nothing: what stood there still does, and the next run completes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adapters.model_formats import ENCODER, ArrayFile
from adapters.qdrant_edge import EdgeIndex
from adapters.sources.folder import FolderSource
from core.knowledge.terms import Encoder
from core.model.conversation import PUBLIC
from handlers.knowledge.ingest_knowledge import BATCH, ingest_knowledge

pytestmark = pytest.mark.external  # each kills a process that has imported all that reads documents

PAGES = 2 * BATCH + 50  # three batches
READERS = frozenset({PUBLIC})

INGESTER = """
import asyncio, sys, threading
from pathlib import Path
from adapters.model_formats import ArrayFile
from adapters.model_formats import ENCODER
from adapters.qdrant_edge import EdgeIndex
from adapters.sources.folder import FolderSource
from handlers.knowledge.ingest_knowledge import ingest_knowledge

home, stop = Path(sys.argv[1]), int(sys.argv[2])

def on_progress(progress):
    if progress.total and progress.done >= stop:
        print("here", flush=True)
        threading.Event().wait()

source = FolderSource("pages", home / "pages")
index, encoders = EdgeIndex(home / "index"), ArrayFile(home / "encoder.npz", ENCODER)
asyncio.run(ingest_knowledge([source], index, encoders, None, on_progress))
"""


def write_pages(home: Path, edition: str, numbers: range) -> None:
    (home / "pages").mkdir(exist_ok=True)
    for number in numbers:
        (home / "pages" / f"page{number}.md").write_text(f"# Page {number}\n\nThe {edition} edition of word{number}.\n")


def killed_after(home: Path, passages: int) -> None:
    """Ingest the pages in a process of its own, which is killed when this many passages are written."""
    command = [sys.executable, "-c", INGESTER, str(home), str(passages)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "here"
        process.kill()


async def ingested(home: Path) -> tuple[EdgeIndex, Encoder]:
    index, encoders = EdgeIndex(home / "index"), ArrayFile(home / "encoder.npz", ENCODER)
    await ingest_knowledge([FolderSource("pages", home / "pages")], index, encoders)
    encoder = await encoders.load()
    assert encoder is not None
    return index, encoder


async def texts(index: EdgeIndex) -> dict[str, str]:
    return {passage.document_id: passage.text async for passage in index.scan()}


@pytest.mark.parametrize("passages", [BATCH, 2 * BATCH, PAGES])
async def test_a_first_ingestion_that_was_killed_is_completed_by_the_next(tmp_path: Path, passages: int) -> None:
    write_pages(tmp_path, "first", range(PAGES))
    killed_after(tmp_path, passages)
    index, encoder = await ingested(tmp_path)
    found = await texts(index)
    assert len(found) == await index.count() == PAGES
    assert all("first edition" in text for text in found.values())
    assert encoder.settled
    fitted = Encoder.fitted([passage async for passage in index.scan()])
    np.testing.assert_array_equal(encoder.statistics.counts, fitted.statistics.counts)
    nearest = await index.search_lexical(encoder.encode_query(f"word{PAGES - 1}").lexical, READERS, 1)
    [found] = await index.read([nearest[0].passage_id], READERS)
    assert found.title == f"Page {PAGES - 1}"
    await index.close()


async def test_what_was_indexed_before_is_still_there_when_an_update_is_killed(tmp_path: Path) -> None:
    write_pages(tmp_path, "first", range(PAGES))
    index, _ = await ingested(tmp_path)
    await index.close()
    changed = range(BATCH // 4)
    write_pages(tmp_path, "second", changed)
    killed_after(tmp_path, len(changed))

    index = EdgeIndex(tmp_path / "index")
    assert len(await texts(index)) == PAGES
    await index.close()
    index, encoder = await ingested(tmp_path)
    found = await texts(index)
    assert sum("second edition" in text for text in found.values()) == len(changed)
    assert sum("first edition" in text for text in found.values()) == PAGES - len(changed)
    assert encoder.statistics.passages == PAGES
    await index.close()
