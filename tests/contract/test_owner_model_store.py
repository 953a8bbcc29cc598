"""The contract of LearnedStore, of the owner model, over the fake, the file and SQLite; PostgreSQL is external."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from adapters.model_formats import OWNER_MODEL
from core.ports import LearnedStore
from core.triage.owner_model import IncidentText, OwnerModel
from handlers.incidents.triage_incident import embed_past_incidents
from tests.contract.learned_models import PLACES, place
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.owner_models import FakeOwnerModelStore
from tests.fakes.past_incidents import past_incidents
from tests.fakes.puzzles import SENSES, puzzles

TEXT = IncidentText("toner lost in hall3", "toner lost in hall3")


@pytest.fixture(params=["fake", *PLACES])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LearnedStore[OwnerModel]]:
    if request.param == "fake":
        yield FakeOwnerModelStore()
    else:
        async with place(request.param, request, tmp_path) as opened:
            yield opened(OWNER_MODEL, FakeClock())


@cache
def model() -> OwnerModel:
    fitted = OwnerModel.fitted(past_incidents())
    assert fitted is not None
    return fitted


async def test_there_is_no_model_at_first(store: LearnedStore[OwnerModel]) -> None:
    assert await store.load() is None


async def test_the_model_comes_back_and_says_the_same(store: LearnedStore[OwnerModel]) -> None:
    await store.save(model())
    loaded = await store.load()
    assert loaded is not None
    assert loaded.probabilities(TEXT) == model().probabilities(TEXT)


async def test_what_an_embedding_model_adds_comes_back_too(store: LearnedStore[OwnerModel]) -> None:
    embeddings = await embed_past_incidents(puzzles(), FakeEmbedder(SENSES))
    meant = OwnerModel.fitted(puzzles(), embeddings)
    assert meant is not None
    await store.save(meant)
    loaded = await store.load()
    assert loaded is not None
    assert loaded.embedding is not None
    assert loaded.embedding.embedder == "fake"
    assert loaded.embedding.embeddings.vectors.keys() == embeddings.vectors.keys()
    for vector in (None, loaded.embedding.vectors[0]):
        assert loaded.probabilities(TEXT, vector) == meant.probabilities(TEXT, vector)


async def test_the_last_one_saved_counts(store: LearnedStore[OwnerModel]) -> None:
    await store.save(model())
    await store.load()
    await store.save(replace(model(), teams=("a", "b", "c")))
    loaded = await store.load()
    assert loaded is not None
    assert loaded.teams == ("a", "b", "c")


async def test_nothing_is_read_again_while_it_is_the_same(store: LearnedStore[OwnerModel]) -> None:
    await store.save(model())
    assert await store.load() is await store.load()
