"""BM25 as an inner product."""

from __future__ import annotations

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from core.knowledge.passages import passages_of
from core.knowledge.terms import K1, B, Encoder, TermCounts, TermStatistics, term_number, terms
from core.model.document import Document, Passage
from core.ports import SparseVector
from tests.cases import every_case

TEXTS = [
    "drain the runner and wait for its job, then retire the runner",
    "the canary is rolled back at five per cent",
    "a runner without disk space fails every job",
    "payment latency rises while the pool waits for connections",
    "rotate the key, publish the key, and wait",
    "the canary waits",
]


def passage(text: str, title: str = "") -> Passage:
    return passages_of(Document(f"docs/{abs(hash(text))}", "docs", "runbooks", title, text))[0]


def product(left: SparseVector, right: SparseVector) -> float:
    weights = dict(zip(left.indices, left.values, strict=True))
    return sum(weights.get(index, 0.0) * value for index, value in zip(right.indices, right.values, strict=True))


@pytest.mark.parametrize("query", ["drain a runner", "canary", "wait for the key", "runner job disk"])
def test_the_inner_product_ranks_as_bm25_does(query: str) -> None:
    passages = [passage(text) for text in TEXTS]
    encoder = Encoder.fitted(passages)
    asked = encoder.encode_query(query)
    ours = [product(asked.lexical, encoder.encode_passage(item).lexical) for item in passages]
    reference = BM25Okapi([terms(text) for text in TEXTS], k1=K1, b=B)
    # the library's idf is another one (it can be negative), so it gets ours
    reference.idf = dict(asked.weights)
    assert ours == pytest.approx(reference.get_scores(terms(query)).tolist())


def test_indices_are_distinct_and_ascending_and_weights_positive() -> None:
    vector = TermCounts.of(passage(TEXTS[0], "Runner")).vector(10.0)
    assert list(vector.indices) == sorted(set(vector.indices))
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert all(value > 0 for value in vector.values)


def test_a_query_of_unknown_terms_is_empty() -> None:
    assert Encoder.fitted([passage(TEXTS[0])]).encode_query("unheard").lexical == SparseVector((), ())


def test_two_words_that_a_passage_writes_as_one_count_half_and_only_where_a_passage_does() -> None:
    encoder = Encoder.fitted([passage("slipway rollback SERVICE"), passage("how to roll dough"), passage("a way back")])
    weights = encoder.encode_query("how do I roll back the gateway?").weights
    whole = encoder.encode_query("rollback").weights
    assert weights["rollback"] == pytest.approx(whole["rollback"] / 2)
    assert not {"backgateway", "backth"} & set(weights)
    assert set(encoder.encode_query("roll the back").weights) == {"roll", "back"}


@every_case("name", ["seat-inventory", "orders_db", "edge.gateway.proxy"])
def test_a_name_that_a_passage_holds_weighs_with_its_parts_as_much_as_one_word(name: str) -> None:
    encoder = Encoder.fitted(
        [passage(f"{name} is ours"), passage("migrations of tables"), passage("inventory of seats")]
    )
    weights = encoder.encode_query(f"{name} migrations").weights
    of_name = [weight for term, weight in weights.items() if term != "migrat"]
    assert sum(of_name) <= max(
        *encoder.encode_query("migrations").weights.values(), *encoder.encode_query("unheard").weights.values()
    )
    assert len(of_name) > 1


def test_the_parts_of_a_path_that_no_passage_holds_weigh_as_words() -> None:
    encoder = Encoder.fitted([passage("chandlery has images"), passage("java builds")])
    weights = encoder.encode_query("https://chandlery.example/java/lib.jar").weights
    assert weights["chandleri"] == encoder.encode_query("chandlery").weights["chandleri"]


def test_statistics_after_a_change_are_those_of_the_corpus_as_it_is() -> None:
    counted = [TermCounts.of(passage(text)) for text in TEXTS]
    changed = TermStatistics().changed(counted, ()).changed(counted[:1], counted[2:4])
    expected = TermStatistics().changed([counted[0], counted[0], counted[1], counted[4], counted[5]], ())
    np.testing.assert_array_equal(changed.terms, expected.terms)
    np.testing.assert_array_equal(changed.counts, expected.counts)
    np.testing.assert_array_equal(changed.repeated, expected.repeated)
    assert (changed.passages, changed.total_length) == (expected.passages, pytest.approx(expected.total_length))


def test_a_rare_term_weighs_more_than_a_common_one_and_about_as_much_as_an_unknown_one() -> None:
    known = TermStatistics().changed([TermCounts.of(passage(text)) for text in TEXTS], ())
    numbers = np.array([term_number(term) for term in ("payment", "wait", "unheard")], np.uint32)
    rare, common, lacking = known.weights(numbers).tolist()
    assert rare > common > 0
    assert 0.5 < rare / lacking < 2


def test_of_two_terms_as_rare_the_one_that_its_passages_repeat_weighs_more() -> None:
    texts = ["the runner fails; look at the runner", "a runner, then another runner", "raise a quota", "lower a quota"]
    weights = Encoder.fitted([passage(text) for text in texts]).encode_query("runner quota").weights
    assert weights["runner"] > weights["quota"]
