from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from core.triage.complement_bayes import ComplementBayes
from core.triage.postings import Postings

SAID = ("toner paper", "toner jam", "paper jam", "login token", "login token jam", "jam")
TEXTS: list[Mapping[str, int]] = [Counter(text.split()) for text in SAID]
OWNERS = np.array([0, 0, 0, 1, 1, 2], np.int32)
WORDS = Postings.of(TEXTS)
BAYES = ComplementBayes.of(WORDS, OWNERS, 3)


@pytest.mark.parametrize(("text", "owner"), [("toner empty", 0), ("token lost", 1)])
def test_the_team_whose_words_it_has_is_first(text: str, owner: int) -> None:
    assert BAYES.scores(WORDS, OWNERS, Counter(text.split())).argmax() == owner


def test_of_a_text_in_words_that_nobody_used_it_says_nothing() -> None:
    assert not BAYES.scores(WORDS, OWNERS, Counter(["zeppelin"])).any()
    assert not BAYES.scores(WORDS, OWNERS, Counter()).any()


def test_a_text_that_is_left_out_is_judged_as_by_who_never_saw_it() -> None:
    """Every word of the first text is in others too, so that the vocabulary is the same without it."""
    blocks = [np.array([row]) for row in range(len(TEXTS))]
    left_out = BAYES.left_out(WORDS, OWNERS, TEXTS, blocks)
    rest = Postings.of(TEXTS[1:])
    unseen = ComplementBayes.of(rest, OWNERS[1:], 3).scores(rest, OWNERS[1:], TEXTS[0])
    assert left_out[0] == pytest.approx(unseen)
    assert left_out[0] != pytest.approx(BAYES.scores(WORDS, OWNERS, TEXTS[0]))


def test_what_says_the_same_is_left_out_together() -> None:
    told_twice = [TEXTS[0], *TEXTS]
    owners = np.append(OWNERS[:1], OWNERS)
    words = Postings.of(told_twice)
    same = [np.array([0, 1]), *(np.array([row]) for row in range(2, len(told_twice)))]
    left_out = ComplementBayes.of(words, owners, 3).left_out(words, owners, told_twice, same)
    once = BAYES.left_out(WORDS, OWNERS, TEXTS, [np.array([row]) for row in range(len(TEXTS))])
    assert left_out[0] == pytest.approx(once[0])
    assert left_out[1] == pytest.approx(once[0])
