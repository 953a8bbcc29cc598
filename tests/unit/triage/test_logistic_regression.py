"""Multinomial logistic regression, and what it says of incidents that it had not seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.triage.logistic_regression import LogisticRegression, MainAxes, logistic_regression

TEAMS, EACH = 3, 40
OWNERS = np.repeat(np.arange(TEAMS), EACH).astype(np.int32)
ALONE = [np.array([row]) for row in range(len(OWNERS))]


def texts(seed: int = 1) -> NDArray[np.float32]:
    """Unit vectors of words: two of each team, one that all use, and some of chance."""
    words = np.random.default_rng(seed).random((len(OWNERS), 12)) < 0.3
    words[:, : 2 * TEAMS] = False
    words[np.arange(len(OWNERS)), 2 * OWNERS + np.arange(len(OWNERS)) % 2] = True
    words[:, -1] = True
    return (words / np.linalg.norm(words, axis=1, keepdims=True)).astype(np.float32)


def fit(known: NDArray[np.float32], owners: NDArray[np.int32] = OWNERS) -> LogisticRegression:
    return logistic_regression(MainAxes.of(known @ known.T), owners, TEAMS, ALONE)[0]


def test_new_incidents_go_to_the_team_whose_words_they_have() -> None:
    known, new = texts(), texts(seed=2)
    regression = fit(known)
    found = np.array([regression.probabilities(known @ text) for text in new])
    assert (found.argmax(axis=1) == OWNERS).mean() > 0.95
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_the_main_axes_keep_the_likeness() -> None:
    known = texts()
    axes = MainAxes.of(known @ known.T)
    np.testing.assert_allclose(axes.coordinates @ axes.coordinates.T, known @ known.T, atol=1e-3)
    assert axes.coordinates.shape[1] <= known.shape[1], "there are no more directions than words"


def test_what_an_incident_shares_with_no_other_is_no_shared_direction() -> None:
    alike = np.where(np.eye(4), 1.0, 0.8).astype(np.float32)
    likeness = np.eye(10, dtype=np.float32)
    likeness[:4, :4] = alike
    shared = MainAxes.of(likeness).shared
    assert shared.shape == (10, 1)
    assert np.abs(shared[:4]).min() > 10 * np.abs(shared[4:]).max()
    assert MainAxes.of(alike[:1, :1]).shared.shape == (1, 1), "at least the longest is one"


def test_what_is_said_of_past_incidents_is_said_without_their_part() -> None:
    """Labels that follow no rule can be learned by heart alone: what was left out is guessed."""
    generator = np.random.default_rng(3)
    known = generator.normal(size=(len(OWNERS), 60)).astype(np.float32)
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    shuffled = generator.permutation(OWNERS)
    regression, left_out = logistic_regression(MainAxes.of(known @ known.T), shuffled, TEAMS, ALONE)
    by_heart = np.array([regression.probabilities(known @ text) for text in known])
    assert (by_heart.argmax(axis=1) == shuffled).mean() > 0.8
    assert (left_out.argmax(axis=1) == shuffled).mean() < 0.5


def test_what_says_the_same_is_left_out_together() -> None:
    known = np.eye(len(OWNERS), dtype=np.float32)
    known[1] = known[0]
    _, apart = logistic_regression(MainAxes.of(known @ known.T), OWNERS, TEAMS, ALONE)
    together = [np.array([0, 1]), *ALONE[2:]]
    _, left_out = logistic_regression(MainAxes.of(known @ known.T), OWNERS, TEAMS, together)
    assert apart[0, 0] > 0.35, "its double gives it away"
    assert left_out[0, 0] == pytest.approx(left_out[2, 0], abs=0.02)


def test_vectors_tell_what_words_do_not() -> None:
    known = np.ones((len(OWNERS), 1), np.float32)
    vectors = np.eye(TEAMS, dtype=np.float32)[OWNERS]
    regression, _ = logistic_regression(MainAxes.of(known @ known.T), OWNERS, TEAMS, ALONE, vectors)
    for team in range(TEAMS):
        assert regression.probabilities(known[:, 0], vectors[team * EACH]).argmax() == team


def test_a_team_that_a_part_does_not_know_is_improbable_there_and_no_more() -> None:
    owners = OWNERS.copy()
    owners[owners == TEAMS - 1] = 0
    owners[7] = TEAMS - 1
    _, left_out = logistic_regression(MainAxes.of(texts() @ texts().T), owners, TEAMS, ALONE)
    assert np.isfinite(left_out).all()
    assert 0 < left_out[7, TEAMS - 1] < 0.1
