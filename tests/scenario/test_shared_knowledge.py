"""Replicas on one PostgreSQL and one index: what one of them learned, all of them answer with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml

from bot.config.settings import load_settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, ingest, open_core
from core.model.conversation import Audience
from core.triage.owner_model import IncidentText, OwnerModel
from tests.databases import new_postgres_database
from tests.fakes.past_incidents import past_incidents

pytestmark = [
    pytest.mark.external,
    # The client's local mode stands in for a server here and says at every start what it does not index.
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "drain.md").write_text("# Drain a runner\n\nRun `drain --all`.", encoding="utf-8")
    (folder / "keys.md").write_text("# Rotate the keys\n\nRun `rotate --now`.", encoding="utf-8")
    return folder


@pytest.fixture
async def replicas(
    postgres: str, tmp_path: Path, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Core, Core]]:
    """Two of them, each with a data directory of its own, which look at what is learned at every question."""
    from qdrant_client import AsyncQdrantClient  # takes long to be imported

    from adapters.qdrant import QdrantIndex

    config = tmp_path / "plumbline.yaml"
    sources = [{"kind": "folder", "name": "handbook", "path": str(documents)}]
    config.write_text(yaml.safe_dump({"sources": sources}), encoding="utf-8")
    server = AsyncQdrantClient(":memory:")
    monkeypatch.setattr(QdrantIndex, "at", lambda *_: QdrantIndex(server))
    monkeypatch.setattr("adapters.store.knowledge.INTERVAL", timedelta())
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(new_postgres_database(postgres))

        async def replica(name: str) -> Core:
            settings = load_settings(data_dir=tmp_path / name, database_url=url, qdrant_url="http://qdrant:6333")
            return await stack.enter_async_context(open_core(settings, load_workspace(config)))

        yield await replica("one"), await replica("other")


async def found(core: Core, query: str) -> list[str]:
    passages = await core.knowledge.retriever.retrieve(query, Audience(), 1)
    return [ranked.passage.document_id for ranked in passages]


async def test_what_one_replica_ingested_is_found_by_the_other(replicas: tuple[Core, Core], documents: Path) -> None:
    one, other = replicas
    assert await found(other, "how do I drain a runner?") == []
    assert (await ingest(one)).added == 2
    assert await found(other, "how do I drain a runner?") == ["handbook/drain.md"]
    (documents / "brew.md").write_text("# Brew coffee\n\nPush the green lever.", encoding="utf-8")
    assert (await ingest(other)).added == 1
    assert await found(one, "which lever makes coffee?") == ["handbook/brew.md"]
    known, theirs = await one.knowledge.encoders.load(), await other.knowledge.encoders.load()
    assert known is not None
    assert theirs is not None
    assert known.statistics.passages == theirs.statistics.passages == await one.knowledge.index.count() == 3
    np.testing.assert_array_equal(known.statistics.counts, theirs.statistics.counts)


async def test_what_one_replica_ingested_is_not_read_again_by_another(replicas: tuple[Core, Core]) -> None:
    one, other = replicas
    await ingest(one)
    before = await one.knowledge.encoders.load()
    assert (await ingest(other)).unchanged == 2
    assert await one.knowledge.encoders.load() is before


async def test_the_owners_that_one_replica_learned_are_known_to_the_other(replicas: tuple[Core, Core]) -> None:
    one, other = replicas
    assert await other.owner_models.load() is None
    learned = OwnerModel.fitted(past_incidents())
    assert learned is not None
    await one.owner_models.save(learned)
    known = await other.owner_models.load()
    assert known is not None
    text = IncidentText("toner lost in hall3", "toner lost in hall3")
    assert known.probabilities(text) == learned.probabilities(text)
