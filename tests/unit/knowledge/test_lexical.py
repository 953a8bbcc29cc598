"""BM25 as an inner product."""

from __future__ import annotations

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from core.knowledge.lexical import K1, B, TermCounts, passage_vector, query_vector, term_counts
from core.knowledge.passages import passages_of
from core.knowledge.statistics import MeasuredPassage, TermStatistics
from core.knowledge.term_numbers import term_number
from core.knowledge.terms import terms
from core.model.document import Document, Passage
from core.ports import SparseVector

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


def counts(item: Passage) -> TermCounts:
    return term_counts(item)


def measured(item: Passage) -> MeasuredPassage:
    return counts(item).numbers, counts(item).repeated, counts(item).length


def statistics(passages: list[Passage]) -> TermStatistics:
    return TermStatistics.empty().changed([measured(item) for item in passages], ())


def product(left: SparseVector, right: SparseVector) -> float:
    weights = dict(zip(left.indices, left.values, strict=True))
    return sum(weights.get(index, 0.0) * value for index, value in zip(right.indices, right.values, strict=True))


@pytest.mark.parametrize("query", ["drain a runner", "canary", "wait for the key", "runner job disk"])
def test_the_inner_product_ranks_as_bm25_does(query: str) -> None:
    passages = [passage(text) for text in TEXTS]
    known = statistics(passages)
    ours = [
        product(
            query_vector(dict.fromkeys(terms(query), 1.0), known),
            passage_vector(counts(item), known.average_length),
        )
        for item in passages
    ]
    reference = BM25Okapi([terms(text) for text in TEXTS], k1=K1, b=B)
    # the library's idf is another one (it can be negative), so it gets ours
    reference.idf = {term: float(query_vector({term: 1.0}, known).values[0]) for text in TEXTS for term in terms(text)}
    assert ours == pytest.approx(reference.get_scores(terms(query)).tolist())


def test_indices_are_distinct_and_ascending_and_weights_positive() -> None:
    vector = passage_vector(counts(passage(TEXTS[0], "Runner")), 10.0)
    assert list(vector.indices) == sorted(set(vector.indices))
    assert all(0 <= index < 2**32 for index in vector.indices)
    assert all(value > 0 for value in vector.values)


def test_a_word_in_the_title_counts_more_than_one_in_the_text() -> None:
    named, plain = (
        passage_vector(counts(item), 10.0) for item in (passage("wait now", "canary"), passage("wait now canary"))
    )
    assert max(named.values) > max(plain.values)


def test_a_query_of_unknown_terms_is_empty() -> None:
    assert query_vector({"unheard": 1.0}, statistics([passage(TEXTS[0])])) == SparseVector((), ())


def test_statistics_after_a_change_are_those_of_the_corpus_as_it_is() -> None:
    passages = [passage(text) for text in TEXTS]
    counted = [measured(item) for item in passages]
    changed = TermStatistics.empty().changed(counted, ()).changed(counted[:1], counted[2:4])
    expected = TermStatistics.empty().changed([counted[0], counted[0], counted[1], counted[4], counted[5]], ())
    np.testing.assert_array_equal(changed.terms, expected.terms)
    np.testing.assert_array_equal(changed.counts, expected.counts)
    np.testing.assert_array_equal(changed.repeated, expected.repeated)
    assert (changed.passages, changed.total_length) == (expected.passages, pytest.approx(expected.total_length))


def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    known = statistics([passage(text) for text in TEXTS])
    rare, common = (query_vector({term: 1.0}, known).values[0] for term in ("payment", "wait"))
    assert rare > common > 0


def test_of_two_terms_as_rare_the_one_that_its_passages_repeat_weighs_more() -> None:
    texts = ["the runner fails; look at the runner", "a runner, then another runner", "raise a quota", "lower a quota"]
    known = statistics([passage(text) for text in texts])
    repeated, mentioned = (query_vector({term: 1.0}, known).values[0] for term in ("runner", "quota"))
    assert repeated > mentioned


def test_a_term_in_the_title_counts_as_repeated() -> None:
    item = passage("wait now", "canary")
    assert counts(item).repeated.tolist() == counts(passage("canary canary")).numbers.tolist()


def test_a_term_that_no_passage_holds_weighs_about_as_much_as_the_rarest() -> None:
    known = statistics([passage(text) for text in TEXTS])
    numbers = np.array([term_number("payment"), term_number("unheard")], np.uint32)
    held, lacking = known.weights(numbers).tolist()
    assert 0.5 < held / lacking < 2
