import pytest

from core.answering.excerpts import candidates
from core.knowledge.passages import passages_of
from core.knowledge.retriever import Lexicon, RankedPassage, Retrieval, named_families, support
from core.knowledge.terms import terms
from core.model.document import Document

ASKED = "retries"


def ranked(family: str, text: str, score: float, number: int = 0) -> RankedPassage:
    document = Document(f"docs/{family}-{number}", "docs", family, "Retries", text)
    (passage,) = passages_of(document)
    return RankedPassage(passage, score, 0.0, score)


def retrieval(*passages: RankedPassage, hints: dict[str, float] | None = None) -> Retrieval:
    families = frozenset(each.passage.family for each in passages)
    return Retrieval(list(passages), dict.fromkeys(terms(ASKED), 1.0), 1.0, 10.0, families, hints or {})


LOKI = ranked("loki", "Loki retries a query five times.", 0.9)
FLUX = [ranked("flux", f"Flux retries step {number}.", 0.8, number) for number in range(3)]


def test_family_with_most_votes_outranks_the_family_of_the_best_passage() -> None:
    votes = retrieval(LOKI, *FLUX)
    assert support(ASKED, votes) == {"flux": 1.0, "loki": pytest.approx(0.9 / 2.4)}
    assert candidates(ASKED, votes)[0].passage.family == "flux"


def test_name_within_chinese_text_is_that_of_a_product() -> None:
    manuals = [ranked("rcp", "在RCP网管中配置retries", 0.8), ranked("umac", "在uMAC网管中配置retries", 0.9)]
    assert support(ASKED, retrieval(*manuals)) == {"rcp": pytest.approx(0.8 / 0.9), "umac": 1.0}


def test_keyword_of_a_family_in_the_question_outweighs_the_votes() -> None:
    assert support(ASKED, retrieval(LOKI, *FLUX, hints={"loki": 1.0}))["loki"] == 1.0


def test_product_that_the_question_names_outweighs_the_votes() -> None:
    assert support("retries in Loki", retrieval(LOKI, *FLUX))["loki"] == 1.0


def test_folder_that_is_no_product_neither_wins_nor_loses_by_votes() -> None:
    guides = [ranked("guides", f"Read the guides on retries, part {number}.", 0.5, number) for number in range(9)]
    assert support(ASKED, retrieval(LOKI, *FLUX[:1], *guides)) == {
        "loki": 1.0,
        "flux": pytest.approx(0.8 / 0.9),
        "guides": 1.0,
    }


def test_product_with_a_small_first_letter_votes() -> None:
    umac = [ranked("umac", f"The uMAC retries step {number}.", 0.8, number) for number in range(3)]
    assert support(ASKED, retrieval(LOKI, *umac))["umac"] == 1.0


@pytest.mark.parametrize(
    ("question", "hints"),
    [
        ("What does logql return?", {"loki": 1.0, "argo-cd": 0.0, "flux": 0.0}),
        ("Can LogQL read an ApplicationSet?", {"loki": 0.5, "argo-cd": 0.5, "flux": 0.0}),
        ("What is a LogQLish language?", {"loki": 0.0, "argo-cd": 0.0, "flux": 0.0}),
        ("如何删除裸金属?", {"loki": 0.0, "argo-cd": 0.0, "flux": 1.0}),
    ],
)  # fmt: skip
def test_families_share_the_keywords_of_a_question(question: str, hints: dict[str, float]) -> None:
    assert Lexicon({"loki": ["LogQL"], "argo-cd": ["ApplicationSet"], "flux": ["裸金属"]}).hints(question) == hints


@pytest.mark.parametrize(
    ("query", "named"),
    [("the argocd sync", {"argo-cd"}), ("Argo CD sync", {"argo-cd"}), ("in loki", {"loki"}), ("the sync", set[str]())],
)
def test_families_are_named_in_one_word_or_several(query: str, named: set[str]) -> None:
    assert named_families(query, frozenset({"argo-cd", "loki", "flux"})) == named
