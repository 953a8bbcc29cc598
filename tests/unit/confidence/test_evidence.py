"""COE and RCE of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.evidence import CERTAIN, DECIDING, LIKENED, decidability, lead, support
from core.knowledge.document import Document
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage

SHARE = st.floats(0, 1)


def found(focus: float = 0.5, dense: float = 0.5, score: float = 1.0, document: str = "docs/a") -> RankedPassage:
    [passage] = passages_of(Document(document, "docs", "f", "Title", "Text."))
    return RankedPassage(passage, 1.0, dense, 1.0, score, 1.0, focus)


@given(SHARE, SHARE, SHARE, SHARE, SHARE)
def test_both_lie_between_0_and_1(focus: float, dense: float, known: float, coverage: float, ahead: float) -> None:
    assert 0 <= decidability([found(focus, dense)], known) <= 1
    assert 0 <= support(coverage, ahead) <= 1


def test_strong_evidence_decides_and_weak_evidence_does_not() -> None:
    assert decidability([found(0.9, 0.8)], 1.0) > 0.9
    assert decidability([found(0.1, 0.1)], 1.0) < 0.1


@pytest.mark.parametrize(
    ("less", "more"),
    [((0.3, 0.5, 1.0), (0.6, 0.5, 1.0)), ((0.5, 0.3, 1.0), (0.5, 0.6, 1.0)), ((0.5, 0.5, 0.3), (0.5, 0.5, 0.9))],
    ids=["focus", "cosine", "known words"],
)
def test_more_evidence_never_decides_less(less: tuple[float, float, float], more: tuple[float, float, float]) -> None:
    weaker, stronger = (decidability([found(focus, dense)], known) for focus, dense, known in (less, more))
    assert weaker < stronger


def test_only_the_best_passages_count() -> None:
    weak = [found(0.1, 0.1)] * LIKENED
    assert decidability([*weak, found(1.0, 1.0)], 1.0) == decidability(weak, 1.0)


def test_a_passage_without_a_cosine_takes_that_of_the_next_ones() -> None:
    lexical = [found(0.5, 0.0)] * DECIDING
    assert decidability([*lexical, found(0.0, 0.8)], 1.0) > decidability(lexical, 1.0)


def test_without_passages_nothing_can_be_decided() -> None:
    assert decidability([], 1.0) == 0.0


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
