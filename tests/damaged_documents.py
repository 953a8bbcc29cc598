"""Documents damaged at random, through an ingestion."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from adapters.secret_detector import SecretPatterns
from adapters.sources import parsing
from adapters.sources.folder import FolderSource
from core.knowledge.redactor import Redactor
from core.model.conversation import PUBLIC
from handlers.knowledge.ingest_knowledge import IngestReport, ingest_knowledge
from tests.fakes.documents import VAULT, mutated
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex

BUDGET = 10.0  # seconds of processor time for one of them, which are small


async def damaged_documents_read(folder: Path, numbers: Iterable[int]) -> IngestReport:
    """Ingest the files of these numbers.

    Asserts that the ingestion comes to its end, that some are understood, that none takes longer than its budget, and
    that none is public which names other readers.
    """
    restricted = set[str]()
    for number in numbers:
        suffix, content, names_readers = mutated(number)
        name = f"{number}{suffix}"
        (folder / name).write_bytes(content)
        if names_readers:
            restricted.add(f"docs/{name}")
    index, source = FakePassageIndex(), FolderSource("docs", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parsing, "PROCESSOR_SECONDS", BUDGET)
        report = await ingest_knowledge([source], index, FakeEncoderStore(), redact=Redactor(SecretPatterns(), ()))
    assert report.failed == {}
    left_out = report.left_out.get("docs", [])
    limits = "seconds of processor time", "cannot be read within", "MiB of memory", "ends the process"
    assert [each for each in left_out if any(limit in each.reason for limit in limits)] == []
    public = {passage.document_id async for passage in index.scan() if PUBLIC in passage.readers}
    assert public & restricted == set()
    readers = [passage.readers async for passage in index.scan()]
    assert {PUBLIC} in readers and {VAULT} in readers  # noqa: PT018
    return report
