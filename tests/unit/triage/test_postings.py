from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from core.triage.owner_model import Postings

TEXTS = [Counter("pool pool gateway".split()), Counter("scanner gate".split()), Counter()]
POSTINGS = Postings.of(TEXTS)


def test_a_text_is_wholly_like_itself_and_not_at_all_like_one_without_its_words() -> None:
    assert POSTINGS.similarities(TEXTS[0]) == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)


def test_a_word_that_nobody_knows_makes_a_text_less_like_any() -> None:
    known, diluted = (POSTINGS.similarities(Counter(text.split()))[0] for text in ("pool", "pool zeppelin"))
    assert 0 < diluted < known


def test_an_empty_text_is_like_none() -> None:
    assert not POSTINGS.similarities(Counter()).any()


def test_the_matrix_holds_the_same_vectors() -> None:
    products = POSTINGS.matrix() @ POSTINGS.matrix().T
    searched = np.stack([POSTINGS.similarities(text) for text in TEXTS])
    assert products.toarray() == pytest.approx(searched, abs=1e-6)
