from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from core.model.errors import ModelUnavailable
from core.model.findings import PastIncident
from core.triage.owner_model import OwnerModel, digest_of, embedded_text
from handlers.incidents import triage_incident
from handlers.incidents.triage_incident import embed_incident, embed_past_incidents
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.outage import incident
from tests.fakes.puzzles import SENSES, STRANGE_WORDS, puzzles


async def model(embedder: FakeEmbedder) -> OwnerModel:
    embeddings = await embed_past_incidents(puzzles(), embedder)
    fitted = await asyncio.to_thread(OwnerModel.fitted, puzzles(), embeddings)
    assert fitted is not None
    embedder.asked.clear()
    return fitted


async def test_only_what_is_new_is_embedded_and_what_is_no_longer_learned_from_is_dropped() -> None:
    embedder, past = FakeEmbedder(SENSES), puzzles()
    before = await embed_past_incidents(past[:200], embedder)
    embedder.asked.clear()
    after = await embed_past_incidents(past[10:210], embedder, before)
    assert sorted(embedder.asked) == sorted(embedded_text(each) for each in past[200:210])
    assert after.vectors.keys() == {digest_of(embedded_text(each)) for each in past[10:210]}


async def test_texts_of_about_one_length_are_embedded_together() -> None:
    embedder, past = FakeEmbedder(SENSES), puzzles()[:2]
    short, long = (replace(past[0], description="." * length) for length in (1, 9))
    await embed_past_incidents([long, past[1], short], embedder)
    assert embedder.asked == [embedded_text(each) for each in (past[1], short, long)]


async def test_thousands_of_texts_are_read_aside_while_others_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = set[int]()

    def read(past: PastIncident) -> str:
        readers.add(threading.get_ident())
        return embedded_text(past)

    monkeypatch.setattr(triage_incident, "embedded_text", read)
    await embed_past_incidents(puzzles(), FakeEmbedder(SENSES))
    assert readers
    assert threading.get_ident() not in readers


@pytest.mark.parametrize("other", [FakeEmbedder(SENSES, "another"), FakeEmbedder({**SENSES, "new": 7})])
async def test_the_vectors_of_another_model_are_of_no_use(other: FakeEmbedder) -> None:
    embedder = FakeEmbedder(SENSES)
    before = await embed_past_incidents(puzzles(), other)
    await embed_past_incidents(puzzles(), embedder, before)
    assert len(embedder.asked) == len(puzzles())


class Broken(FakeEmbedder):
    def _vector(self, text: str) -> NDArray[np.float64]:
        return super()._vector(text) * np.nan


class Cut(FakeEmbedder):
    def _vector(self, text: str) -> NDArray[np.float64]:
        return super()._vector(text)[1:]


class Hanging(FakeEmbedder):
    async def embed_query(self, text: str) -> NDArray[np.float32]:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.parametrize("embedder", [Broken(SENSES), Cut(SENSES)])
async def test_vectors_that_are_none_are_refused(embedder: FakeEmbedder) -> None:
    with pytest.raises(ModelUnavailable):
        await embed_past_incidents(puzzles(), embedder)


async def test_an_incident_gets_its_vector_if_the_model_learned_from_such() -> None:
    embedder = FakeEmbedder(SENSES)
    learned, asked = await model(embedder), replace(incident(), title=STRANGE_WORDS[0])
    assert await embed_incident(asked, learned, embedder) is not None
    assert await embed_incident(asked, replace(learned, embedding=None), embedder) is None
    assert await embed_incident(asked, None, embedder) is None
    assert await embed_incident(asked, learned, None) is None
    assert await embed_incident(asked, learned, FakeEmbedder(SENSES, "another")) is None


async def test_an_embedding_model_that_fails_or_hangs_holds_no_triage_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triage_incident, "EMBEDDING_DEADLINE", 0.01)
    learned, down = await model(FakeEmbedder(SENSES)), FakeEmbedder(SENSES)
    down.failing = True
    for embedder in (down, Broken(SENSES), Cut(SENSES), Hanging(SENSES)):
        assert await embed_incident(incident(), learned, embedder) is None
