"""The contract of EncoderStore, over the fake and the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from adapters.encoder_file import EncoderFile
from core.knowledge.document import Document
from core.knowledge.encoder import FORMAT, Encoder
from core.knowledge.passages import passages_of
from core.ports import EncoderStore
from tests.fakes.passage_index import FakeEncoderStore


@pytest.fixture(params=["fake", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> EncoderStore:
    return FakeEncoderStore() if request.param == "fake" else EncoderFile(tmp_path / "data" / "encoder.npz")


@pytest.fixture
def encoder() -> Encoder:
    texts = ["canaries are rolled back", "keys are rotated and published", "the canary waits for keys"]
    return Encoder.fitted(
        [p for n, text in enumerate(texts) for p in passages_of(Document(f"d/{n}", "d", "f", "", text))]
    )


async def test_there_is_no_encoder_at_first(store: EncoderStore) -> None:
    assert await store.load() is None


async def test_the_encoder_comes_back_and_encodes_as_before(store: EncoderStore, encoder: Encoder) -> None:
    await store.save(replace(encoder, changed_since_fit=2, settled=False, embedder="m"))
    loaded = await store.load()
    assert loaded is not None
    assert (loaded.changed_since_fit, loaded.settled, loaded.embedder) == (2, False, "m")
    assert (loaded.families, loaded.latent.trained) == ({"f": 3}, False)
    before, after = encoder.encode_query("rotated canary"), loaded.encode_query("rotated canary")
    assert after.lexical == before.lexical
    np.testing.assert_allclose(after.dense, before.dense, atol=2e-3)  # the file keeps half precision


async def test_the_last_one_saved_counts(store: EncoderStore, encoder: Encoder) -> None:
    await store.save(encoder)
    await store.load()
    await store.save(replace(encoder, changed_since_fit=9))
    loaded = await store.load()
    assert loaded is not None
    assert loaded.changed_since_fit == 9


async def test_another_process_sees_what_was_saved(tmp_path: Path, encoder: Encoder) -> None:
    path = tmp_path / "encoder.npz"
    reader = EncoderFile(path)
    assert await reader.load() is None
    await EncoderFile(path).save(encoder)
    assert await reader.load() is not None


async def test_nothing_is_read_again_while_the_file_is_the_same(tmp_path: Path, encoder: Encoder) -> None:
    store = EncoderFile(tmp_path / "encoder.npz")
    await store.save(encoder)
    assert await store.load() is await store.load()


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 cut off"])
async def test_a_damaged_file_is_as_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "encoder.npz"
    path.write_bytes(content)
    assert await EncoderFile(path).load() is None


async def test_a_file_of_another_format_is_as_none_and_the_log_says_what_mends_it(
    tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "encoder.npz"
    await EncoderFile(path).save(encoder)
    monkeypatch.setattr("adapters.encoder_file.FORMAT", FORMAT + 1)
    with capture_logs() as logs:
        assert await EncoderFile(path).load() is None
    assert [entry["event"] for entry in logs] == ["index_of_another_version"]
