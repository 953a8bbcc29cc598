"""What is learned from a corpus."""

from __future__ import annotations

import numpy as np
import pytest

from core.knowledge.document import Document, Passage
from core.knowledge.encoder import Encoder
from core.knowledge.latent import DIMENSIONS, LatentModel
from core.knowledge.passages import passages_of

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


def test_texts_about_the_same_are_nearer_than_others() -> None:
    model = LatentModel.fitted(list(TEXTS.values()))
    vectors = {name: model.encode(text) for name, text in TEXTS.items()}
    for first, second, other in (("a", "b", "c"), ("c", "d", "e"), ("e", "f", "a")):
        assert vectors[first] @ vectors[second] > vectors[first] @ vectors[other]


def test_vectors_have_unit_length_and_the_stated_dimensions() -> None:
    model = LatentModel.fitted(list(TEXTS.values()))
    vector = model.encode("canary error rate")
    assert vector.shape == (DIMENSIONS,)
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


def test_a_text_that_shares_nothing_with_the_corpus_has_a_vector_of_zeros() -> None:
    model = LatentModel.fitted(list(TEXTS.values()))
    assert not model.encode("").any()
    assert not LatentModel.fitted([]).encode("canary").any()


def test_a_fit_is_deterministic() -> None:
    first, second = (LatentModel.fitted(list(TEXTS.values())) for _ in range(2))
    np.testing.assert_array_equal(first.components, second.components)


def test_an_update_keeps_statistics_exact_and_stored_vectors_valid() -> None:
    encoder = Encoder.fitted(corpus("abcd"))
    updated = encoder.updated(corpus("ef"), corpus("a"))
    np.testing.assert_array_equal(updated.statistics.counts, Encoder.fitted(corpus("bcdef")).statistics.counts)
    assert updated.average_length == encoder.average_length
    assert updated.latent is encoder.latent


def test_an_encoder_is_outdated_when_more_than_a_fifth_of_the_corpus_changed() -> None:
    encoder = Encoder.fitted(corpus("abcde"))
    assert not encoder.updated(corpus("f"), []).outdated
    assert encoder.updated(corpus("f"), corpus("ab")).outdated


def test_an_encoder_with_an_embedding_model_fits_none_of_its_own() -> None:
    encoder = Encoder.fitted(corpus(), "some-model")
    assert encoder.embedder == "some-model"
    assert encoder.latent.features.size == 0
