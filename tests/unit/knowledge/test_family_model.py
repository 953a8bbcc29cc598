"""Which family of documents a question is about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.knowledge import family_fit
from core.knowledge.character_grams import counted_grams
from core.knowledge.document import Passage
from core.knowledge.family_fit import fitted_family_model
from core.knowledge.family_model import FamilyModel, favoured
from core.knowledge.learning import learned_encoder
from core.knowledge.ranking import RankedPassage
from tests.unit.knowledge.made_up_families import long_pages, page, short_pages

PRIVATE = frozenset({"channel:private"})
SECRET = {
    "ferries": ["ironclad", "torpedo", "periscope", "mutiny", "sabotage"],
    "project zephyr": ["zephyrus", "takeover", "merger", "lawsuit", "severance"],
}


@pytest.fixture(scope="module")
def model() -> FamilyModel:
    return fitted_family_model(short_pages())


def ranked(*found: tuple[str, float]) -> list[RankedPassage]:
    return [
        RankedPassage(page(str(number), family, "Text.")[0], 1.0, 1.0, 1.0, score, 1.0, 1.0)
        for number, (family, score) in enumerate(found)
    ]


def families(passages: list[RankedPassage]) -> list[str]:
    return [found.passage.family for found in passages]


@pytest.mark.parametrize(
    ("question", "family"),
    [
        ("which gangway is at the mooring", "ferries"),
        ("how do I update the pallets", "depots"),
        ("the touchscreen shows an error", "kiosks"),
    ],
)
def test_a_question_goes_to_the_family_that_it_resembles(model: FamilyModel, question: str, family: str) -> None:
    opinion = model.opinion(question)
    assert max(opinion, key=lambda name: opinion[name]) == family


def test_a_question_that_resembles_nothing_says_the_same_of_every_family(model: FamilyModel) -> None:
    assert set(model.opinion("龘 ℵ").values()) == {0.0}


def test_chinese_needs_no_segmentation() -> None:
    words = {"存储": ["磁盘", "快照", "扩容", "卷组"], "网络": ["交换机", "端口", "路由", "网卡"]}
    passages = [
        found
        for family, own in words.items()
        for number in range(30)
        for found in page(f"{family}{number}", family, f"{own[number % 4]}{own[number // 4 % 4]}如何配置第{number}次")
    ]
    opinion = fitted_family_model(passages).opinion("怎样给磁盘扩容")
    assert opinion["存储"] > opinion["网络"]


def test_where_search_finds_what_surrounds_a_text_and_families_mean_nothing_there_is_no_opinion() -> None:
    assert fitted_family_model(long_pages()).opinion("status3 check3") == {}


@pytest.mark.parametrize(
    "passages",
    [[], page("a", "f", "Text."), short_pages(PRIVATE), short_pages(families={"ferries": ["deck", "hull"]})],
    ids=["nothing", "one page", "nothing public", "one family"],
)
def test_where_nothing_can_be_learned_there_is_no_opinion(passages: list[Passage]) -> None:
    assert fitted_family_model(passages).opinion("which deck") == {}


def test_restricted_documents_leave_no_trace_in_what_everybody_feels() -> None:
    public, secret = short_pages(), short_pages(PRIVATE, SECRET)
    assert len({passage.id for passage in [*public, *secret]}) > len(public)
    mixed = [found for pair in zip(secret, public, strict=False) for found in pair] + public[len(secret) :]
    known, learned = (learned_encoder(passages).family_model for passages in (public, mixed))
    assert (learned.families, learned.weight) == (known.families, known.weight)
    np.testing.assert_array_equal(learned.grams.features, known.grams.features)
    np.testing.assert_array_equal(learned.grams.rarity, known.grams.rarity)
    np.testing.assert_array_equal(learned.votes, known.votes)


def test_no_word_of_a_restricted_document_is_kept_and_no_family_that_is_restricted(model: FamilyModel) -> None:
    mixed = fitted_family_model([*short_pages(), *short_pages(PRIVATE, SECRET)])
    assert "project zephyr" not in mixed.opinion("zephyrus takeover")
    for word in ("zephyrus", "torpedo"):
        assert mixed.opinion(word) == model.opinion(word)
    numbers, _ = counted_grams("zeph")
    assert not np.isin(numbers[-1:], mixed.grams.features).any()


def test_what_is_said_for_a_family_does_not_grow_with_the_number_of_its_pages(model: FamilyModel) -> None:
    more = [
        found for number in range(60) for found in page(f"copy/{number}", "kiosks", short_pages()[-1 - number % 5].text)
    ]
    question = "is the deck at the harbour"
    opinion = fitted_family_model([*short_pages(), *more]).opinion(question)
    assert max(opinion, key=lambda name: opinion[name]) == "ferries"


def test_the_same_corpus_gives_the_same_model(model: FamilyModel) -> None:
    assert fitted_family_model(short_pages()).opinion("which deck") == model.opinion("which deck")


def test_public_documents_without_a_word_teach_nothing_and_stop_nothing() -> None:
    wordless = [found for family in "ab" for number in range(3) for found in page(f"{family}{number}", family, "!!! …")]
    wordless = [replace(found, title="!") for found in wordless]
    encoder = learned_encoder([*wordless, *short_pages(PRIVATE)])
    assert encoder.family_model.opinion("which deck") == {}
    assert learned_encoder(wordless).encode_passage(wordless[0]).passage == wordless[0]


def test_of_many_grams_those_are_kept_that_say_most_of_any_family(
    model: FamilyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family_fit, "MAX_GRAMS", 40)
    smaller = fitted_family_model(short_pages())
    strength = np.abs(model.votes).max(axis=1)
    strongest = model.grams.features[strength > np.sort(strength)[-20]]
    assert smaller.grams.features.size == 40
    assert strongest.size
    assert np.isin(strongest, smaller.grams.features).all()
    places = np.searchsorted(model.grams.features, smaller.grams.features)
    np.testing.assert_allclose(smaller.votes, model.votes[places], atol=1e-6)


def test_a_passage_of_the_likelier_family_comes_first() -> None:
    assert families(favoured(ranked(("a", 0.9), ("b", 0.8)), {"a": -1.0, "b": 0.5})) == ["b", "a"]


def test_a_clearly_better_match_comes_first_whatever_its_family() -> None:
    assert families(favoured(ranked(("a", 0.9), ("b", 0.2)), {"a": 0.0, "b": 0.5})) == ["a", "b"]


def test_a_family_that_is_not_known_loses_nothing() -> None:
    found = favoured(ranked(("private", 0.8), ("a", 0.9), ("b", 0.7)), {"a": -1.0, "b": 1.0})
    assert families(found) == ["private", "b", "a"]
    assert found[0].score == 0.8


def test_families_that_were_not_found_make_no_difference() -> None:
    found = ranked(("a", 0.9), ("private", 0.8))
    assert favoured(found, {"a": -2.0, "b": 5.0}) == found


def test_without_an_opinion_nothing_is_ranked_anew() -> None:
    found = ranked(("a", 0.9), ("b", 0.8))
    assert favoured(found, {}) == found
