from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.triage import boosted_trees, ranking
from core.triage.ranking import LeftOut, fit_ranking

TEAMS, INCIDENTS = 4, 800
RANDOM = np.random.default_rng(7)
OWNERS = RANDOM.integers(0, TEAMS, INCIDENTS).astype(np.int32)
NOISE = RANDOM.random((INCIDENTS, TEAMS, 2))
AGREEING = np.where(np.eye(TEAMS, dtype=bool)[OWNERS][..., np.newaxis], NOISE[..., :1], NOISE)  # only for the owner
NOTHING = np.zeros(TEAMS)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "TREES", 40)
    monkeypatch.setattr(ranking, "MIN_TREE_PAIRS", INCIDENTS * TEAMS)


def left_out(incidents: int = INCIDENTS) -> LeftOut:
    owners = OWNERS[:incidents]
    counts = np.bincount(owners, minlength=TEAMS) - np.eye(TEAMS, dtype=np.int64)[owners]
    return LeftOut(counts, np.zeros(counts.shape), owners, [np.array([row]) for row in range(incidents)])


def right(probabilities: NDArray[np.float64]) -> float:
    return float((probabilities.argmax(axis=1) == OWNERS).mean())


def test_it_sees_which_signals_agree() -> None:
    fitted, held_out = fit_ranking(AGREEING, left_out())
    alone = fitted.stack.probabilities(AGREEING, np.zeros((INCIDENTS, TEAMS)), np.zeros((INCIDENTS, TEAMS)))
    assert right(held_out) > right(alone) + 0.2
    assert held_out.sum(axis=1) == pytest.approx(1.0)


def test_where_nothing_tells_the_owner_it_does_not_claim_to_have_known() -> None:
    fitted, held_out = fit_ranking(NOISE, left_out())
    assert right(held_out) < 1 / TEAMS + 0.05
    counts = np.bincount(OWNERS, minlength=TEAMS)
    assert right(np.array([fitted.probabilities(row, counts, NOTHING) for row in NOISE])) > 1 / TEAMS + 0.1  # by heart


def test_a_team_without_past_incidents_keeps_what_the_logit_gives_to_it() -> None:
    fitted, _ = fit_ranking(AGREEING, left_out())
    counts = np.append(np.bincount(OWNERS, minlength=TEAMS), 0)
    signals, documents = np.concatenate([AGREEING[0], np.zeros((1, 2))]), np.append(NOTHING, 1.0)
    alone = fitted.stack.probabilities(signals, np.log1p(counts), documents)
    found = fitted.probabilities(signals, counts, documents)
    assert found[-1] == alone[-1]
    assert found.sum() == pytest.approx(1.0)
    assert not np.allclose(found, alone)


def test_where_one_team_alone_has_a_past_the_logit_decides() -> None:
    fitted, _ = fit_ranking(AGREEING, left_out())
    counts = np.array([5, 0])
    signals = AGREEING[0, :2]
    alone = fitted.stack.probabilities(signals, np.log1p(counts), NOTHING[:2])
    assert np.array_equal(fitted.probabilities(signals, counts, NOTHING[:2]), alone)


def test_a_short_history_grows_no_trees() -> None:
    fitted, held_out = fit_ranking(AGREEING[:-1], left_out(INCIDENTS - 1))
    assert fitted.trees == ()
    counts = left_out(INCIDENTS - 1).counts
    alone = fitted.stack.probabilities(AGREEING[:-1], np.log1p(counts), np.zeros(counts.shape))
    assert np.array_equal(held_out, alone)
