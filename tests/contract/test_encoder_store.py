"""The contract of LearnedStore, of the encoder, over the fake, the file and SQLite; PostgreSQL is external."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from adapters.model_formats import ENCODER
from core.knowledge.passages import passages_of
from core.knowledge.terms import FORMAT, Encoder
from core.model.document import Document
from core.ports import LearnedStore
from tests.contract.learned_models import PLACES, Opened, place
from tests.fakes.clock import FakeClock
from tests.fakes.passage_index import FakeEncoderStore


@pytest.fixture
def encoder() -> Encoder:
    texts = ["canaries are rolled back", "keys are rotated and published", "the canary waits for keys"]
    return Encoder.fitted(
        [p for n, text in enumerate(texts) for p in passages_of(Document(f"d/{n}", "d", "f", "", text))]
    )


@pytest.fixture(params=["fake", *PLACES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LearnedStore[Encoder]]:
    if request.param == "fake":
        yield FakeEncoderStore()
    else:
        async with place(request.param, request, tmp_path) as opened:
            yield opened(ENCODER, FakeClock())


@pytest.fixture(params=PLACES)
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    async with place(request.param, request, tmp_path) as opened:
        yield opened


async def test_there_is_no_encoder_at_first(store: LearnedStore[Encoder]) -> None:
    assert await store.load() is None
    assert await store.load_newest() is None


async def test_the_encoder_comes_back_and_encodes_as_before(store: LearnedStore[Encoder], encoder: Encoder) -> None:
    await store.save(replace(encoder, changed_since_fit=2, settled=False, embedder="m"))
    loaded = await store.load()
    assert loaded is not None
    assert (loaded.changed_since_fit, loaded.settled, loaded.embedder) == (2, False, "m")
    assert loaded.families == {"f": 3}
    before, after = encoder.encode_query("rotated canary"), loaded.encode_query("rotated canary")
    assert after.lexical == before.lexical


async def test_the_last_one_saved_counts(store: LearnedStore[Encoder], encoder: Encoder) -> None:
    await store.save(encoder)
    await store.load()
    await store.save(replace(encoder, changed_since_fit=9))
    for loaded in (await store.load(), await store.load_newest()):
        assert loaded is not None
        assert loaded.changed_since_fit == 9


async def test_nothing_is_read_again_while_it_is_the_same(store: LearnedStore[Encoder], encoder: Encoder) -> None:
    await store.save(encoder)
    assert await store.load() is await store.load() is await store.load_newest()


async def test_another_process_sees_what_was_saved(opened: Opened, encoder: Encoder) -> None:
    clock = FakeClock()
    reader, writer = opened(ENCODER, clock), opened(ENCODER, clock)
    assert await reader.load() is None
    await writer.save(encoder)
    clock.advance(2)
    assert await reader.load() is not None


async def test_whoever_is_about_to_change_it_sees_what_another_process_saved_just_now(
    opened: Opened, encoder: Encoder
) -> None:
    clock = FakeClock()
    reader, writer = opened(ENCODER, clock), opened(ENCODER, clock)
    for changed in (1, 2):
        await writer.save(replace(encoder, changed_since_fit=changed))
        assert (await reader.load_newest()).changed_since_fit == changed


async def test_another_format_is_as_none_and_the_log_says_what_mends_it(
    opened: Opened, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened(ENCODER, FakeClock()).save(encoder)
    monkeypatch.setattr("adapters.model_formats.FORMAT", FORMAT + 1)
    with capture_logs() as logs:
        assert await opened(ENCODER, FakeClock()).load() is None
    assert [entry["event"] for entry in logs] == ["index_of_another_version"]
