"""Probabilistic linear discriminant analysis, and what it says of incidents that it had not seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.triage.discriminant import discriminant

TEAMS, EACH, DIMENSIONS = 3, 40, 12
OWNERS = np.repeat(np.arange(TEAMS), EACH).astype(np.int32)
ALONE = [np.array([row]) for row in range(len(OWNERS))]


def around(centres: NDArray[np.float32], seed: int = 1, spread: float = 0.15) -> NDArray[np.float32]:
    """One vector of unit length near the centre of each incident's team."""
    vectors = centres + spread * np.random.default_rng(seed).standard_normal((len(centres), DIMENSIONS))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


CENTRES = np.eye(DIMENSIONS, dtype=np.float32)[OWNERS]


def test_new_incidents_go_to_the_team_that_they_are_near() -> None:
    analysis, left_out = discriminant(around(CENTRES), OWNERS, TEAMS, ALONE)
    found = analysis.probabilities(around(CENTRES, seed=2))
    assert (found.argmax(axis=1) == OWNERS).mean() > 0.95
    assert (left_out.argmax(axis=1) == OWNERS).mean() > 0.95
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(
        analysis.probabilities(around(CENTRES)[7]), analysis.probabilities(around(CENTRES))[7], rtol=1e-3
    )


def test_it_is_the_bayes_rule_where_its_assumptions_hold() -> None:
    """Normal vectors around normal centres, many of each team: the nearest mean is the most likely."""
    centres = np.zeros((len(OWNERS), DIMENSIONS), np.float32)
    centres[:, 0] = OWNERS - 1
    vectors = (centres + 0.3 * np.random.default_rng(5).standard_normal(centres.shape)).astype(np.float32)
    analysis, _ = discriminant(vectors, OWNERS, TEAMS, ALONE)
    between = np.zeros((3, DIMENSIONS), np.float32)
    between[:, 0] = (-0.9, 0.1, 0.9)
    assert analysis.probabilities(between).argmax(axis=1).tolist() == [0, 1, 2]


def test_it_reads_what_its_vectors_were_made_of() -> None:
    directions = np.random.default_rng(6).standard_normal((20, DIMENSIONS)).astype(np.float32)
    centres = np.random.default_rng(7).standard_normal((TEAMS, 20))[OWNERS]
    sources = (centres + 0.3 * np.random.default_rng(8).standard_normal(centres.shape)).astype(np.float32)
    analysis, _ = discriminant(sources @ directions, OWNERS, TEAMS, ALONE)
    found = analysis.after(directions).log_odds(sources)
    np.testing.assert_allclose(found, analysis.log_odds(sources @ directions), rtol=1e-3, atol=1e-3)
    assert (found.argmax(axis=1) == OWNERS).mean() > 0.95


def test_labels_that_follow_no_rule_are_guessed_and_nothing_is_claimed() -> None:
    generator = np.random.default_rng(3)
    shuffled = generator.permutation(OWNERS)
    vectors = generator.standard_normal((len(OWNERS), 60)).astype(np.float32)
    _, left_out = discriminant(vectors, shuffled, TEAMS, ALONE)
    assert (left_out.argmax(axis=1) == shuffled).mean() < 0.5
    assert left_out.max(axis=1).mean() < 0.5


def test_what_says_the_same_is_left_out_together() -> None:
    vectors = around(CENTRES, spread=0.5)
    strange = np.zeros(DIMENSIONS, np.float32)
    strange[-1] = 1
    vectors[0], vectors[1] = strange, strange
    _, apart = discriminant(vectors, OWNERS, TEAMS, ALONE)
    _, together = discriminant(vectors, OWNERS, TEAMS, [np.array([0, 1]), *ALONE[2:]])
    assert apart[0, 0] > together[0, 0] + 0.05, "its double gives it away"


def test_a_team_of_few_incidents_is_expected_nearer_to_the_mean_and_further_around() -> None:
    owners = np.concatenate([OWNERS, [TEAMS]]).astype(np.int32)
    centres = np.eye(DIMENSIONS, dtype=np.float32)[owners]
    alone = [np.array([row]) for row in range(len(owners))]
    analysis, left_out = discriminant(around(centres), owners, TEAMS + 1, alone)
    assert np.isfinite(left_out).all()
    assert (analysis.bends[TEAMS] < analysis.bends[0]).any()
    assert (analysis.bends[TEAMS] <= analysis.bends[0] + 1e-6).all()
    assert analysis.probabilities(around(centres)[-1]).argmax() == TEAMS, "one incident is enough to be found again"


@pytest.mark.parametrize("owners", [np.zeros(12, np.int32), np.arange(12, dtype=np.int32)])
def test_one_team_alone_and_teams_of_one_incident_are_no_error(owners: NDArray[np.int32]) -> None:
    vectors = around(CENTRES[:12])
    analysis, left_out = discriminant(vectors, owners, int(owners.max()) + 1, [np.array([row]) for row in range(12)])
    assert np.isfinite(left_out).all()
    assert np.isfinite(analysis.probabilities(vectors)).all()
