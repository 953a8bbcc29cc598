"""A query → ranked passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from core.knowledge.passages import passages_of
from core.knowledge.retriever import CANDIDATES, Retriever
from core.knowledge.terms import Encoder
from core.model.conversation import PUBLIC, Audience
from core.model.document import Document
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex

EVERYBODY = Audience()
SECRETS = [f"channel:team-{n}" for n in range(8)]


async def corpus(documents: Sequence[Document]) -> tuple[FakePassageIndex, FakeEncoderStore]:
    passages = [passage for document in documents for passage in passages_of(document)]
    encoder = Encoder.fitted(passages)
    index, encoders = FakePassageIndex(), FakeEncoderStore()
    await index.upsert([encoder.encode_passage(passage) for passage in passages])
    await encoders.save(encoder)
    return index, encoders


def page(name: str, text: str, readers: frozenset[str] = frozenset({PUBLIC})) -> Document:
    return Document(f"docs/{name}", "docs", "runbooks", name, text, readers=readers)


PAGES = [
    page("rollback", "Roll back with slipway. The canary is taken away in seconds."),
    page("keys", "Signing keys rotate monthly. Publish the key set with identityctl."),
    page("metrics", "kube_pod_status_ready falls when the kubelet is gone."),
    page("chinese", "磁盘空间不足时,清理旧的镜像。"),
]


@pytest.fixture
async def retriever() -> Retriever:
    return Retriever(*await corpus(PAGES))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("rolling back canaries", "rollback"),
        ("publish keys", "keys"),
        ("kube_pod_status_ready", "metrics"),
        ("pod status", "metrics"),
        ("磁盘空间", "chinese"),
    ],
)
async def test_the_page_that_says_it_comes_first(query: str, expected: str, retriever: Retriever) -> None:
    found = await retriever.retrieve(query, EVERYBODY, 3)
    assert found[0].passage.document_id == f"docs/{expected}"


async def test_partial_scores_are_kept(retriever: Retriever) -> None:
    best = (await retriever.retrieve("publish the key set", EVERYBODY, 1))[0]
    assert best.lexical > 0
    assert best.dense == 0
    assert 0 < best.score <= 1


async def test_weights_say_what_is_rare_and_known_what_the_corpus_has_words_for(retriever: Retriever) -> None:
    retrieval = await retriever.search("publish zebra", EVERYBODY, 5)
    assert set(retrieval.weights) == {"publish", "zebra"}
    assert 0 < retrieval.known < 1
    assert (await retriever.search("publish", EVERYBODY, 5)).known == pytest.approx(1.0)
    assert (await retriever.search("zebra", EVERYBODY, 5)).known == 0.0


async def test_no_passage_scores_more_than_is_attainable_however_often_a_word_is_repeated(retriever: Retriever) -> None:
    once, often = [await retriever.search(query, EVERYBODY, 5) for query in ("publish", "publish " * 50)]
    assert 0 < once.passages[0].lexical < once.attainable
    assert often.passages[0].lexical / often.attainable == pytest.approx(once.passages[0].lexical / once.attainable)


@pytest.mark.parametrize("query", ["", "   ", "?!", "the of", "zebra", "\x00\ufffd"])
async def test_a_query_that_shares_nothing_finds_nothing(query: str, retriever: Retriever) -> None:
    assert await retriever.retrieve(query, EVERYBODY, 5) == []


async def test_no_more_than_asked_for_come_back() -> None:
    retriever = Retriever(*await corpus([page(str(n), f"the canary number{n} waits") for n in range(60)]))
    assert len(await retriever.retrieve("canary", EVERYBODY, 7)) == 7
    assert len(await retriever.retrieve("canary", EVERYBODY, 100)) == CANDIDATES
    assert await retriever.retrieve("canary", EVERYBODY, 0) == []


async def test_what_a_place_may_not_read_is_never_found() -> None:
    planted = [
        page(f"secret-{n}", f"canary pass phrase of team {n}", frozenset({name})) for n, name in enumerate(SECRETS)
    ]
    retriever = Retriever(*await corpus([*PAGES, *planted]))
    for n, name in enumerate(SECRETS):
        found = await retriever.retrieve(f"canary pass phrase team {n}", Audience(frozenset({PUBLIC, name})), 20)
        assert {item.passage.document_id for item in found if "secret" in item.passage.document_id} == {
            f"docs/secret-{n}"
        }
    found = await retriever.retrieve("canary pass phrase team", EVERYBODY, 20)
    assert not [item for item in found if "secret" in item.passage.document_id]


async def test_a_changed_passage_is_looked_at_anew() -> None:
    index, encoders = await corpus([*PAGES, page("drain", "Nothing is said here of draining.")])
    retriever = Retriever(index, encoders)
    before = (await retriever.retrieve("cordon the node", EVERYBODY, 5))[:1]
    changed = passages_of(page("drain", "Cordon the node, then drain it."))
    encoder = (await encoders.load()).updated(changed, [])  # type: ignore[union-attr]
    await index.upsert([encoder.encode_passage(passage) for passage in changed])
    await encoders.save(encoder)
    after = await retriever.retrieve("cordon the node", EVERYBODY, 5)
    assert not before
    assert after[0].passage.document_id == "docs/drain"


async def test_an_embedding_model_finds_what_shares_no_word() -> None:
    class Topics:
        """Knows that a rollback and an undo are the same."""

        name = "topics"
        dimensions = 2

        async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
            return np.array([await self.embed_query(text) for text in texts], np.float32)

        async def embed_query(self, text: str) -> NDArray[np.float32]:
            return np.array([1, 0] if "slipway" in text or "undo" in text else [0, 1], np.float32)

    index, encoders = await corpus(PAGES)
    model = Topics()
    for key, point in list(index.points.items()):
        [vector] = await model.embed_passages([point.passage.indexed_text])
        index.points[key] = replace(point, dense=vector[np.newaxis])
    encoder = encoders.saved[-1]
    await encoders.save(replace(encoder, embedder=model.name))
    found = await Retriever(index, encoders, model).retrieve("undo", EVERYBODY, 1)
    assert found[0].passage.document_id == "docs/rollback"


async def test_before_anything_was_ingested_nothing_is_found() -> None:
    assert await Retriever(FakePassageIndex(), FakeEncoderStore()).retrieve("canary", EVERYBODY, 5) == []
