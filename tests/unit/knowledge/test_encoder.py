"""What is learned from a corpus."""

from __future__ import annotations

import numpy as np
import pytest

from core.knowledge.document import Document, Passage
from core.knowledge.encoder import Encoder, joined
from core.knowledge.latent import DIMENSIONS, LatentModel
from core.knowledge.passages import passages_of
from core.knowledge.term_numbers import term_numbers

TEXTS = {
    "a": "The canary is rolled back when the error rate rises. Rolling back takes two minutes.",
    "b": "A rollback of the canary needs no approval. The error rate is watched for ten minutes.",
    "c": "Signing keys rotate every month and are published in the key set.",
    "d": "The key set is published by identity; signing with an unpublished key rejects every token.",
    "e": "Ferries report their position over satellite every minute.",
    "f": "Positions of ferries arrive late when the satellite link is slow.",
}


def corpus(names: str = "abcdef") -> list[Passage]:
    return [
        p for name in names for p in passages_of(Document(f"docs/{name}", "docs", "x", f"Page {name}", TEXTS[name]))
    ]


def model_of(texts: list[str]) -> LatentModel:
    return LatentModel.fitted(texts, ["family"] * len(texts))


@pytest.mark.parametrize(("query", "about"), [("canary error", "ab"), ("published keys", "cd"), ("late ferries", "ef")])
def test_a_query_is_nearest_to_the_texts_about_the_same(query: str, about: str) -> None:
    model = model_of(list(TEXTS.values()))
    vector, _ = model.encode_query(query)
    nearness = {name: float(model.encode_passage(term_numbers(text)) @ vector) for name, text in TEXTS.items()}
    assert set(sorted(nearness, key=lambda name: -nearness[name])[:2]) == set(about)


def test_vectors_have_unit_length_and_the_stated_dimensions() -> None:
    model = model_of(list(TEXTS.values()))
    for vector in (
        model.encode_passage(term_numbers("canary and a word unheard of")),
        model.encode_query("canary error rate")[0],
    ):
        assert vector.shape == (DIMENSIONS,)
        assert vector.dtype == np.float32
        assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_a_query_that_shares_nothing_with_the_corpus_has_a_vector_of_zeros() -> None:
    for model in (model_of(list(TEXTS.values())), model_of([])):
        vector, fidelity = model.encode_query("zebra")
        assert not vector.any()
        assert fidelity == 0.0


def test_a_passage_that_the_model_does_not_know_is_near_to_nothing() -> None:
    model = model_of(list(TEXTS.values()))
    assert model.encode_passage(term_numbers("zebra")) @ model.encode_query("canary")[0] == 0.0


def test_a_small_family_is_represented_as_well_as_a_large_one() -> None:
    generator = np.random.default_rng(3)
    large = [" ".join(f"manual{n}" for n in generator.integers(0, 400, 40)) for _ in range(600)]
    small = [" ".join(f"runbook{n}" for n in generator.integers(0, 80, 20)) for _ in range(30)]
    model = LatentModel.fitted([*large, *small], ["manual"] * 600 + ["runbooks"] * 30)
    represented = [1 - model.encode_passage(term_numbers(text))[-1] ** 2 for text in small]
    assert np.mean(represented) > 0.9


def test_a_fit_is_deterministic() -> None:
    first, second = (model_of(list(TEXTS.values())) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_a_corpus_gives_the_same_encoder_in_whatever_order_it_comes() -> None:
    passages = [
        passage
        for number in range(400)
        for passage in passages_of(
            Document(f"docs/{number}", "docs", "x", f"Page {number}", page(np.random.default_rng(number)))
        )
    ]
    forwards, backwards = Encoder.fitted(passages), Encoder.fitted(passages[::-1])
    assert forwards.latent.trained
    np.testing.assert_array_equal(forwards.latent.components, backwards.latent.components)


def page(generator: np.random.Generator) -> str:
    """Three sections of two sentences."""
    sentence = "The {} of the {} waits for the {} before it begins with the {} that comes next."
    words = [f"word{number}" for number in generator.integers(0, 200, 24)]
    sentences = [sentence.format(*words[first : first + 4]) for first in range(0, 24, 4)]
    return "\n\n".join(f"## {words[first]}\n\n{sentences[first]} {sentences[first + 1]}" for first in (0, 2, 4))


def test_an_update_keeps_statistics_exact_and_stored_vectors_valid() -> None:
    encoder = Encoder.fitted(corpus("abcd"))
    updated = encoder.updated(corpus("ef"), corpus("a"))
    np.testing.assert_array_equal(updated.statistics.counts, Encoder.fitted(corpus("bcdef")).statistics.counts)
    assert updated.average_length == encoder.average_length
    assert updated.latent is encoder.latent
    assert updated.families == Encoder.fitted(corpus("bcdef")).families == {"x": 5}


def test_an_encoder_is_outdated_when_more_than_a_fifth_of_the_corpus_changed() -> None:
    encoder = Encoder.fitted(corpus("abcde"))
    assert not encoder.updated(corpus("f"), []).outdated
    assert encoder.updated(corpus("f"), corpus("ab")).outdated


def test_an_encoder_with_an_embedding_model_fits_its_own_all_the_same() -> None:
    encoder = Encoder.fitted(corpus(), "some-model")
    assert encoder.embedder == "some-model"
    assert encoder.latent.features.size == Encoder.fitted(corpus()).latent.features.size > 0


def test_two_models_have_an_equal_say_in_how_near_a_passage_is() -> None:
    first, second = np.array([1, 0], np.float32), np.array([0.6, 0.8], np.float32)
    near, far = joined(first, second), joined(second, -second)
    assert np.linalg.norm(near) == pytest.approx(1.0)
    assert near @ far == pytest.approx((0.6 - 1.0) / 2)


def test_a_query_beside_a_pretrained_vector_is_represented_in_full() -> None:
    encoder = Encoder.fitted(corpus())
    unknown = encoder.encode_query("zzz")
    assert unknown.fidelity == 0.0
    both = unknown.beside(np.array([1, 0], np.float32))
    assert both.fidelity == 1.0
    assert both.dense.shape == (DIMENSIONS + 2,)
