"""What only the embedded index promises: one process at a time, and nothing lost by a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.qdrant_edge import EdgeIndex
from core.model.conversation import PUBLIC
from core.model.errors import IndexUnavailable

pytestmark = pytest.mark.external  # each starts a process that imports the index

WRITER = """
import asyncio, sys
from pathlib import Path
import numpy as np
from adapters.qdrant_edge import EdgeIndex
from core.model.document import Document
from core.knowledge.passages import passages_of
from core.ports import EncodedPassage, SparseVector

async def main():
    index = EdgeIndex(Path(sys.argv[1]))
    await index.clear(2)
    passage = passages_of(Document("docs/a.md", "docs", "runbooks", "A", "Some text."))[0]
    vectors = SparseVector((7,), (1.0,)), np.ones((1, 2), np.float32)
    await index.upsert([EncodedPassage(passage, *vectors)])
    print("written", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def writer(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "index")], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "written"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_process_is_told_what_to_do(writer, tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailable, match="open in another process"):
        EdgeIndex(tmp_path / "index")


async def test_what_was_written_survives_a_kill(writer, tmp_path: Path) -> None:
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    index = EdgeIndex(tmp_path / "index")
    assert [passage.document_id for passage in await index.passages_of("docs/a.md", frozenset({PUBLIC}))] == [
        "docs/a.md"
    ]
    await index.close()
