"""COE and RCE of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.badge import Strength
from core.confidence.calibrator import badge_for
from core.confidence.evidence import (
    BREADTH,
    CERTAIN,
    DECIDING,
    LIKENED,
    certain,
    decidability,
    lead,
    support,
)
from core.confidence.prediction import Evaluation
from core.knowledge.document import Document
from core.knowledge.family_model import favoured
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval

SHARE = st.floats(0, 1)


ATTAINABLE = 20.0  # BM25


def found(
    focus: float = 0.5,
    dense: float = 0.5,
    lexical: float = 0.5,
    score: float = 1.0,
    document: str = "docs/a",
    family: str = "f",
) -> RankedPassage:
    """A passage; `lexical` as a share of ATTAINABLE."""
    [passage] = passages_of(Document(document, "docs", family, "Title", "Text."))
    return RankedPassage(passage, lexical * ATTAINABLE, dense, 1.0, score, 1.0, focus)


def retrieval(known: float = 1.0, background: float = 0.0, breadth: float = 2.0) -> Retrieval:
    return Retrieval([], {}, known, background, ATTAINABLE, breadth)


@given(SHARE, SHARE, SHARE, SHARE, SHARE, st.floats(1, 60), SHARE, SHARE)
def test_both_lie_between_0_and_1(
    focus: float,
    dense: float,
    lexical: float,
    known: float,
    background: float,
    breadth: float,
    coverage: float,
    ahead: float,
) -> None:
    assert 0 <= decidability([found(focus, dense, lexical)], retrieval(known, background, breadth)) <= 1
    assert 0 <= support(coverage, ahead) <= 1


def test_strong_evidence_decides_and_weak_evidence_does_not() -> None:
    assert decidability([found(0.9, 0.8, 0.8)], retrieval()) > 0.85
    assert decidability([found(0.1, 0.1, 0.1)], retrieval()) < 0.1


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ((found(focus=0.3), retrieval()), (found(focus=0.6), retrieval())),
        ((found(dense=0.3), retrieval()), (found(dense=0.6), retrieval())),
        ((found(lexical=0.3), retrieval()), (found(lexical=0.6), retrieval())),
        ((found(), retrieval(known=0.3)), (found(), retrieval(known=0.9))),
        ((found(), retrieval(background=0.3)), (found(), retrieval(background=0.1))),
        ((found(), retrieval(breadth=1.0)), (found(), retrieval(breadth=3.0))),
    ],
    ids=["focus", "cosine", "lexical score", "known words", "lower background", "more words"],
)
def test_more_evidence_decides_more(
    less: tuple[RankedPassage, Retrieval], more: tuple[RankedPassage, Retrieval]
) -> None:
    weaker, stronger = (decidability([passage], searched) for passage, searched in (less, more))
    assert weaker < stronger


def test_a_cosine_counts_by_what_it_is_above_the_background_of_the_query() -> None:
    """An encoder whose cosines all lie in the upper half decides as one whose cosines fill the whole range."""
    assert decidability([found(dense=0.8)], retrieval(background=0.6)) == pytest.approx(
        decidability([found(dense=0.5)], retrieval(background=0.0))
    )


def test_a_passage_no_nearer_than_the_background_has_no_nearness() -> None:
    far = decidability([found(dense=0.0)], retrieval(background=0.4))
    assert decidability([found(dense=0.3)], retrieval(background=0.4)) == far
    assert decidability([found(dense=1.0)], retrieval(background=1.0)) == far


def test_words_beyond_the_breadth_of_a_question_add_nothing() -> None:
    assert decidability([found()], retrieval(breadth=40.0)) == decidability([found()], retrieval(breadth=BREADTH))


def test_a_question_without_a_term_is_decided_by_the_cosine_alone() -> None:
    wordless = Retrieval([], {}, 1.0)
    assert decidability([found(focus=0.0, dense=0.1)], wordless) < decidability([found(focus=0.0, dense=0.9)], wordless)


def test_only_the_best_passages_count() -> None:
    weak = [found(0.1, 0.1, 0.1)] * LIKENED
    assert decidability([*weak, found(1.0, 1.0, 1.0)], retrieval()) == decidability(weak, retrieval())


def test_a_passage_without_a_cosine_takes_that_of_the_next_ones() -> None:
    lexical = [found(dense=0.0)] * DECIDING
    assert decidability([*lexical, found(dense=0.8)], retrieval()) > decidability(lexical, retrieval())


def test_without_passages_nothing_can_be_decided() -> None:
    assert decidability([], retrieval()) == 0.0


def test_the_lead_is_what_the_cited_documents_are_ahead_of_all_others() -> None:
    ranked = [found(score=0.8), found(score=0.7), found(score=0.6, document="docs/b")]
    assert lead(ranked, {"docs/a"}) == pytest.approx(0.25)
    assert lead(ranked, {"docs/a", "docs/b"}) == 1.0


@pytest.mark.parametrize("cited", [set[str](), {"docs/b"}, {"docs/elsewhere"}])
def test_who_is_not_ahead_has_no_lead(cited: set[str]) -> None:
    assert lead([found(score=0.8), found(score=0.6, document="docs/b")], cited) == 0.0


def test_an_answer_is_certain_only_if_it_is_ahead() -> None:
    assert support(1.0, 0.0) < CERTAIN < support(0.6, 0.35)
    assert support(0.5, 0.2) < support(0.6, 0.2) < support(0.6, 0.3)


def test_an_answer_is_certain_only_if_its_badge_calls_the_evidence_strong() -> None:
    for coe in (0.1, 0.3, 0.5, 0.7, 0.9):
        evaluation = Evaluation(coe, CERTAIN)
        assert certain(evaluation) is (badge_for(evaluation, None).strength is Strength.STRONG)
    assert not certain(Evaluation(1.0, CERTAIN - 0.01))
    assert certain(Evaluation(1.0, CERTAIN))


def test_a_likely_family_lends_its_documents_no_lead() -> None:
    ranked = [found(score=0.8, family="f"), found(score=0.6, document="docs/b", family="g")]
    weighed = favoured(ranked, {"f": 0.0, "g": -9.0})
    assert weighed[1].score < 0.001
    assert lead(weighed, {"docs/a"}) == pytest.approx(0.25)


def test_a_document_that_only_its_family_brought_to_the_front_has_no_lead() -> None:
    ranked = [found(score=0.8, family="f"), found(score=0.6, document="docs/b", family="g")]
    weighed = favoured(ranked, {"f": -9.0, "g": 0.0})
    assert weighed[0].passage.document_id == "docs/b"
    assert lead(weighed, {"docs/b"}) == 0.0
