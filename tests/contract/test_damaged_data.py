"""Files that are derived from others may be damaged in any way: what is in them is learned or built anew.

`make test` tries some mutations, `make external` MANY.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from adapters.model_formats import ENCODER, OWNER_MODEL, ArrayFile, ArrayFormat
from adapters.qdrant_edge import EdgeIndex
from core.knowledge.passages import passages_of
from core.knowledge.terms import Encoder
from core.model.conversation import PUBLIC
from core.model.document import Document, Passage
from core.ports import EncodedPassage, SparseVector
from core.triage.owner_model import OwnerModel
from tests.fakes.past_incidents import past_incidents
from tests.folders import copy_folder

MANY = 500
EVERYBODY = frozenset({PUBLIC})


def passages() -> list[Passage]:
    texts = ["Canaries are rolled back.", "Keys are rotated and published.", "The canary waits for keys."]
    documents = [Document(f"docs/{number}", "docs", "runbooks", "", text) for number, text in enumerate(texts)]
    return [passage for document in documents for passage in passages_of(document)]


def mutations(content: bytes, count: int, seed: int = 1) -> Iterator[bytes]:
    """Flipped, cut, overwritten and repeated at random; each differs from the content."""
    chance = random.Random(seed)
    while count:
        start, mutated = chance.randrange(len(content)), bytearray(content)
        match chance.randrange(4):
            case 0:
                mutated[start] ^= 1 << chance.randrange(8)
            case 1:
                del mutated[start:]
            case 2:
                mutated[start : start + 64] = chance.randbytes(64)
            case _:
                mutated[start:start] = content[:start]
        if mutated != content:
            count -= 1
            yield bytes(mutated)


@pytest.mark.parametrize(
    ("kind", "count"),
    [("encoder", 40), *(pytest.param(kind, MANY, marks=pytest.mark.external) for kind in ("encoder", "owner model"))],
)
async def test_a_damaged_model_raises_nothing_is_told_once_and_is_learned_anew(
    tmp_path: Path, kind: str, count: int
) -> None:
    form: ArrayFormat[Any]
    form, content = (
        (ENCODER, Encoder.fitted(passages()))
        if kind == "encoder"
        else (OWNER_MODEL, OwnerModel.fitted(past_incidents()))
    )
    path, whole = tmp_path / "model.npz", form.written(content)
    for damaged in mutations(whole, count):
        path.unlink(missing_ok=True)
        path.write_bytes(damaged)
        store = ArrayFile(path, form)
        with capture_logs() as logs:
            assert [await store.load() for _ in range(2)] == [None, None]
        assert [(entry["event"], entry["model"]) for entry in logs] == [("learned_model_unreadable", kind)]
    path.write_bytes(whole)
    assert await ArrayFile(path, form).load() is not None


async def write(index: EdgeIndex) -> None:
    await index.clear(2)
    await index.upsert(
        [
            EncodedPassage(
                passage,
                SparseVector((7,), (1.0,)),
                np.ones((1, 2), np.float32),
            )
            for passage in passages()
        ]
    )


async def everything(index: EdgeIndex) -> int:
    """Everything that can be read is; the number of passages that are found."""
    hits = await index.search_lexical(SparseVector((7,), (1.0,)), EVERYBODY, 9)
    await index.search_dense(np.ones(2, np.float32), EVERYBODY, 9)
    await index.read([hit.passage_id for hit in hits], EVERYBODY)
    _ = [passage async for passage in index.scan()]
    await index.content_hashes("docs")
    await index.passages_of("docs/1", EVERYBODY)
    return await index.count()


@pytest.mark.parametrize("count", [4, pytest.param(20, marks=pytest.mark.external)])  # 1,500 take 15 minutes
async def test_a_damaged_index_raises_nothing_is_told_once_and_is_built_anew(tmp_path: Path, count: int) -> None:
    whole, folder, chance = tmp_path / "whole", tmp_path / "index", random.Random(1)
    index = EdgeIndex(whole)
    await write(index)
    await index.close()
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and path.stat().st_size)
    for seed in range(count):
        shutil.rmtree(folder, ignore_errors=True)
        copy_folder(whole, folder)
        path = folder / chance.choice(files)
        path.write_bytes(next(mutations(path.read_bytes(), 1, seed)))
        with capture_logs() as logs:
            index = EdgeIndex(folder)
            found = await everything(index)
        told = [entry["event"] for entry in logs if entry["log_level"] == "warning"]
        assert told in ([], ["index_damaged"])
        if told:
            assert found == 0
            if seed < 4:
                await write(index)
                assert await everything(index) == len(passages())
        await index.close()


async def test_a_damaged_length_does_not_let_the_index_grow_without_end(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = EdgeIndex(folder)
    await write(index)
    await index.close()
    for status in folder.rglob("has_values/status.dat"):
        status.write_bytes(b"\x1e\0\0\0\xd4" + status.read_bytes()[5:])
    index = EdgeIndex(folder)
    assert await everything(index) in (0, len(passages()))
    assert max(path.stat().st_size for path in folder.rglob("*")) < 2**31
    await index.close()


async def test_an_index_without_its_segments_does_not_keep_the_bot_from_starting(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = EdgeIndex(folder)
    await write(index)
    await index.close()
    for segment in folder.rglob("segment.json"):
        segment.write_bytes(b"")
    index = EdgeIndex(folder)
    assert await everything(index) == 0
    await write(index)
    assert await everything(index) == len(passages())
    await index.close()
