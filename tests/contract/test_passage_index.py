"""The contract of PassageIndex, over the fake, the embedded engine and a server's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from adapters.qdrant_edge import EdgeIndex
from core.model.conversation import PUBLIC
from core.ports import PassageIndex, SparseVector
from tests.contract.passages import EVERYBODY, encoded, point_id
from tests.fakes.passage_index import FakePassageIndex

# The client's local mode stands in for a server here and says at every start what it does not index.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant"),
    pytest.mark.filterwarnings("ignore:Local mode performs exact"),
]

PAYMENTS = frozenset({PUBLIC, "channel:payments-private"})
DIMENSIONS = 4


@pytest.fixture(params=["fake", "edge", "client"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PassageIndex]:
    match request.param:
        case "fake":
            chosen: PassageIndex = FakePassageIndex()
        case "edge":
            chosen = EdgeIndex(tmp_path / "index")
        case _:
            from qdrant_client import AsyncQdrantClient  # takes long to be imported

            from adapters.qdrant import QdrantIndex

            chosen = QdrantIndex(AsyncQdrantClient(":memory:"))
    yield chosen
    await chosen.close()


@pytest.fixture
async def written(index: PassageIndex) -> PassageIndex:
    await index.clear(DIMENSIONS)
    await index.upsert(
        [
            encoded("docs/a.md", 1, {7: 2.0, 9: 1.0}, [1, 0, 0, 0]),
            encoded("docs/a.md", 2, {7: 1.0}, [0, 1, 0, 0]),
            encoded("docs/secret.md", 1, {7: 5.0}, [1, 0, 0, 0], readers=frozenset({"channel:payments-private"})),
            encoded("chat/1", 1, {11: 1.0}, [0, 0, 1, 0]),
        ]
    )
    return index


def query(*terms: int) -> SparseVector:
    return SparseVector(terms, tuple(1.0 for _ in terms))


def vector(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


async def test_an_index_that_was_never_written_to_is_empty(index: PassageIndex) -> None:
    assert await index.count() == 0
    assert await index.search_lexical(query(7), EVERYBODY, 10) == []
    assert await index.search_dense(vector(1, 0, 0, 0), EVERYBODY, 10) == []
    assert await index.read([point_id("docs/a.md", 1)], EVERYBODY) == []
    assert await index.passages_of("docs/a.md", EVERYBODY) == []
    assert await index.content_hashes("docs") == {}
    assert [passage async for passage in index.scan()] == []
    await index.delete_documents(["docs/a.md"])


async def test_lexical_search_ranks_by_inner_product(written: PassageIndex) -> None:
    found = await written.search_lexical(query(7, 9), EVERYBODY, 10)
    assert [hit.passage_id for hit in found] == [point_id("docs/a.md", 1), point_id("docs/a.md", 2)]
    assert [hit.score for hit in found] == pytest.approx([3.0, 1.0])


async def test_lexical_search_returns_nothing_that_shares_no_term(written: PassageIndex) -> None:
    assert await written.search_lexical(query(4_000_000_000), EVERYBODY, 10) == []
    assert await written.search_lexical(query(), EVERYBODY, 10) == []


async def test_dense_search_ranks_by_inner_product(written: PassageIndex) -> None:
    found = await written.search_dense(vector(0.6, 0.8, 0, 0), EVERYBODY, 2)
    assert [hit.passage_id for hit in found] == [point_id("docs/a.md", 2), point_id("docs/a.md", 1)]
    assert [hit.score for hit in found] == pytest.approx([0.8, 0.6], abs=1e-3)


async def test_of_a_passage_with_several_vectors_the_nearest_counts(written: PassageIndex) -> None:
    both = replace(encoded("docs/b.md", 1, {}, [1]), dense=np.array([[0.6, 0, 0, 0.8], [0, 0.6, 0, 0.8]], np.float32))
    await written.upsert([both])
    for asked in (vector(0.6, 0, 0, 0.8), vector(0, 0.6, 0, 0.8)):
        [found] = await written.search_dense(asked, EVERYBODY, 1)
        assert (found.passage_id, found.score) == (both.passage.id, pytest.approx(1.0, abs=1e-2))


async def test_a_passage_comes_back_as_it_was_written(written: PassageIndex) -> None:
    expected = encoded("docs/a.md", 1, {}, [])
    [found] = await written.read([expected.passage.id], EVERYBODY)
    assert found == expected.passage
    assert (await written.passages_of("docs/a.md", EVERYBODY))[0] == expected.passage


async def test_passages_are_read_in_the_order_in_which_they_are_asked_for(written: PassageIndex) -> None:
    asked = [point_id("chat/1", 1), point_id("docs/a.md", 2), point_id("docs/gone.md", 1), point_id("docs/a.md", 1)]
    found = await written.read(asked, EVERYBODY)
    assert [item.id for item in found] == [asked[0], asked[1], asked[3]]
    assert await written.read([], EVERYBODY) == []


async def test_no_search_shows_what_the_readers_may_not_read(written: PassageIndex) -> None:
    for readers in (EVERYBODY, frozenset({"channel:payments"}), frozenset[str]()):
        found = [
            *await written.search_lexical(query(7), readers, 10),
            *await written.search_dense(vector(1, 0, 0, 0), readers, 10),
        ]
        secret = point_id("docs/secret.md", 1)
        assert secret not in {hit.passage_id for hit in found}
        assert await written.read([secret], readers) == []
        assert await written.passages_of("docs/secret.md", readers) == []


async def test_a_reader_of_a_private_document_finds_it(written: PassageIndex) -> None:
    [hit] = await written.search_lexical(query(7), PAYMENTS, 1)
    [found] = await written.read([hit.passage_id], PAYMENTS)
    assert found.document_id == "docs/secret.md"
    assert [passage.number for passage in await written.passages_of("docs/secret.md", PAYMENTS)] == [1]


async def test_nobody_reads_without_a_reader(written: PassageIndex) -> None:
    assert await written.search_lexical(query(7), frozenset(), 10) == []
    assert await written.search_dense(vector(1, 0, 0, 0), frozenset(), 10) == []


async def test_passages_of_a_document_come_in_order(written: PassageIndex) -> None:
    assert [passage.number for passage in await written.passages_of("docs/a.md", EVERYBODY)] == [1, 2]


async def test_writing_a_known_passage_replaces_it(written: PassageIndex) -> None:
    await written.upsert([encoded("docs/a.md", 2, {13: 1.0}, [0, 0, 0, 1], content_hash="h2")])
    assert await written.count() == 4
    [hit] = await written.search_lexical(query(13), EVERYBODY, 1)
    assert [found.content_hash for found in await written.read([hit.passage_id], EVERYBODY)] == ["h2"]


async def test_deleting_documents_removes_all_their_passages_and_no_other(written: PassageIndex) -> None:
    await written.delete_documents(["docs/a.md", "docs/unknown.md"])
    assert {passage.document_id async for passage in written.scan()} == {"docs/secret.md", "chat/1"}
    await written.delete_documents([])
    assert await written.count() == 2


async def test_content_hashes_are_those_of_one_source(written: PassageIndex) -> None:
    assert await written.content_hashes("docs") == {"docs/a.md": "h1", "docs/secret.md": "h1"}
    assert await written.content_hashes("chat") == {"chat/1": "h1"}
    assert await written.content_hashes("doc") == {}


async def test_a_scan_sees_every_passage_or_those_of_some_documents(written: PassageIndex) -> None:
    assert len([passage async for passage in written.scan()]) == 4
    assert [passage.document_id async for passage in written.scan(["chat/1"])] == ["chat/1"]


async def test_clearing_removes_everything_and_takes_vectors_of_another_length(written: PassageIndex) -> None:
    await written.clear(2)
    assert await written.count() == 0
    await written.upsert([encoded("docs/a.md", 1, {7: 1.0}, [0, 1])])
    assert len(await written.search_dense(vector(0, 1), EVERYBODY, 5)) == 1


async def test_an_index_without_embeddings_is_searched_by_words_alone(index: PassageIndex) -> None:
    await index.clear(0)
    lexical = encoded("docs/a.md", 1, {7: 2.0}, [])
    await index.upsert([lexical])
    [hit] = await index.search_lexical(lexical.lexical, EVERYBODY, 5)
    assert hit.passage_id == lexical.passage.id
