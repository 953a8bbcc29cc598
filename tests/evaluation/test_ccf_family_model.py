"""Which family a question is about."""

from __future__ import annotations

import numpy as np
import pytest

from bot.evaluation.ccf_family_model import FamilyModel

TEXTS = {
    "network": [
        "How is a VLAN opened?",
        "Which ports does the switch use?",
        "Why is the switch port down?",
        "VLAN 网络",
    ],
    "storage": [
        "How large is a volume?",
        "Why is the disk full?",
        "Which volume holds the disk snapshot?",
        "存储卷扩容",
    ],
}


def model(without: str = "") -> FamilyModel:
    pairs = [(text, family) for family, texts in TEXTS.items() for text in texts if text != without]
    return FamilyModel.fitted([text for text, _ in pairs], [family for _, family in pairs])


@pytest.mark.parametrize(
    ("question", "family"),
    [("which VLAN does the port have", "network"), ("snapshot of a volume", "storage"), ("如何扩容", "storage")],
)
def test_a_question_goes_to_the_family_that_it_resembles(question: str, family: str) -> None:
    fitted = model()
    shares = fitted.evidence(question).shares
    assert fitted.families[int(shares.argmax())] == family


@pytest.mark.parametrize("question", ["", "?", "zzz", "which VLAN does the port have"])
def test_the_families_share_all_evidence(question: str) -> None:
    shares = model().evidence(question).shares
    assert shares.sum() == pytest.approx(1.0)
    assert (shares >= 0).all()


def test_a_question_that_resembles_nothing_leaves_the_families_level() -> None:
    evidence = model().evidence("龘")
    assert evidence.shares.tolist() == [0.5, 0.5]
    assert not evidence.similarities.any()


def test_its_own_text_is_the_most_similar_and_equal_to_itself() -> None:
    similarities = model().evidence(TEXTS["network"][1]).similarities
    assert int(similarities.argmax()) == 1
    assert similarities[1] == pytest.approx(1.0)


def test_unknown_words_make_a_question_less_similar() -> None:
    known, unknown = model().evidence("the disk"), model().evidence("the disk qqqqqq")
    assert (unknown.similarities <= known.similarities).all()
    assert unknown.similarities.max() < known.similarities.max()


def test_repeating_a_text_hardly_adds_to_what_it_says() -> None:
    texts = [text for family in TEXTS for text in TEXTS[family]]
    families = [family for family in TEXTS for _ in TEXTS[family]]
    asked = "Why is the switch full?"
    repeated = FamilyModel.fitted([*texts, *[TEXTS["network"][2]] * 5], [*families, *["network"] * 5])
    votes = model().evidence(asked).shares[0], repeated.evidence(asked).shares[0]
    assert abs(votes[1] - votes[0]) < 0.1


def test_held_out_shares_are_close_to_those_of_a_model_without_the_text() -> None:
    fitted = model()
    texts = [text for family in TEXTS for text in TEXTS[family]]
    without = np.array([model(text).evidence(text).shares for text in texts])
    assert np.abs(fitted.held_out - without).max() < 0.1
    assert np.abs(fitted.held_out - np.array([fitted.evidence(text).shares for text in texts])).max() > 0.1


def test_one_family_has_all_evidence() -> None:
    assert FamilyModel.fitted(["a b", "c d"], ["only", "only"]).evidence("a").shares.tolist() == [1.0]


def test_nothing_can_be_learned_from_nothing() -> None:
    with pytest.raises(ValueError, match="texts"):
        FamilyModel.fitted([], [])
