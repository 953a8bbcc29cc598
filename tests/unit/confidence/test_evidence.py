"""COE and RCE of an answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.confidence.evidence import DECIDING, evaluate_answer
from core.confidence.prediction import Evaluation
from core.knowledge.document import Document
from core.knowledge.passages import passages_of
from core.knowledge.ranking import RankedPassage

[PASSAGE] = passages_of(Document("docs/a", "docs", "f", "Title", "Text."))
SHARE = st.floats(0, 1)


def found(focus: float, dense: float) -> RankedPassage:
    return RankedPassage(PASSAGE, 1.0, dense, 1.0, 1.0, 1.0, focus)


@given(SHARE, SHARE, SHARE, SHARE)
def test_both_lie_between_0_and_1(focus: float, dense: float, known: float, coverage: float) -> None:
    evaluation = evaluate_answer([found(focus, dense)], known, coverage)
    assert 0 <= evaluation.coe <= 1
    assert evaluation.rce == coverage


def test_strong_evidence_decides_and_weak_evidence_does_not() -> None:
    assert evaluate_answer([found(0.9, 0.8)], 1.0, 1.0).coe > 0.9
    assert evaluate_answer([found(0.1, 0.1)], 1.0, 1.0).coe < 0.1


@pytest.mark.parametrize(
    ("less", "more"),
    [((0.3, 0.5, 1.0), (0.6, 0.5, 1.0)), ((0.5, 0.3, 1.0), (0.5, 0.6, 1.0)), ((0.5, 0.5, 0.3), (0.5, 0.5, 0.9))],
    ids=["focus", "cosine", "known words"],
)
def test_more_evidence_never_decides_less(less: tuple[float, float, float], more: tuple[float, float, float]) -> None:
    weaker, stronger = (evaluate_answer([found(focus, dense)], known, 1.0).coe for focus, dense, known in (less, more))
    assert weaker < stronger


def test_only_the_best_passages_count() -> None:
    weak = [found(0.1, 0.1)] * DECIDING
    assert evaluate_answer([*weak, found(1.0, 1.0)], 1.0, 1.0) == evaluate_answer(weak, 1.0, 1.0)


def test_without_passages_there_is_no_evidence() -> None:
    assert evaluate_answer([], 1.0, 1.0) == Evaluation(0.0, 0.0)
