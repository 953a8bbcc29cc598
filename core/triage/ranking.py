"""Whose incident it is by all signals: a conditional logit of them, and boosted trees that look at its best teams again.

The logit weighs each signal by itself. The trees see which of them agree, and how far the best rival is; they learn from
pairs of an incident that was left out and one of its candidates, whose only label is whether it was the owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.triage.boosted_trees import BoostedTrees, fit_trees
from core.triage.parts import PARTS, parts_of
from core.triage.stacking import Stack, fit_stack

CANDIDATES = 15  # the logit's best teams, of which the trees say which is the owner
TRUST = 0.5  # in the trees; the rest is the logit's
MIN_TREE_PAIRS = 10_000  # of an incident and a candidate, below which too little is left out to grow trees from
MAX_PAIRS = 600_000  # of an incident and a team, that the weights of the signals are learned from
PAIRS_AT_ONCE = 100_000  # each takes half a kilobyte

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is known beside the signals of past incidents, as if each had been left out; shapes (incidents, teams).

    `counts` are of each team's other incidents; the blocks of `same` say the same.
    """

    counts: NDArray[np.int64]
    documents: FloatArray
    owners: NDArray[np.int32]
    same: Sequence[NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """`trees` has one forest for each part of the incidents that it was not grown from, or none."""

    stack: Stack
    trees: tuple[BoostedTrees, ...] = ()

    def probabilities(self, signals: FloatArray, counts: NDArray[np.int64], documents: FloatArray) -> FloatArray:
        """Over the teams, of one incident.

        `signals` has shape (teams, signals); `counts` (teams,), each team's number of past incidents; `documents`
        (teams,), each team's share of what all team documents say of the incident. The trees know nothing of a team
        without past incidents: it keeps what the logit gives to it.
        """
        stacked = self.stack.probabilities(signals, np.log1p(counts), documents)
        known = int(np.count_nonzero(counts))
        if not self.trees or known < 2:
            return stacked
        candidates = _candidates(np.where(counts > 0, stacked, -1.0)[np.newaxis], known)
        rows = _rows(signals[np.newaxis], counts, documents[np.newaxis], candidates)
        shares = np.mean([_shares(trees, rows) for trees in self.trees], axis=0)
        return _blended(stacked[np.newaxis], candidates, shares)[0]


def fit_ranking(signals: FloatArray, left_out: LeftOut) -> tuple[Ranking, FloatArray]:
    """The ranking, and what it says of the incidents, shape (incidents, teams): of each the trees that did not see it."""
    incidents, teams = left_out.counts.shape
    # A team's only incident would give itself away.
    guessable = left_out.counts[np.arange(incidents), left_out.owners] > 0
    size = PAIRS_AT_ONCE // teams + 1
    pieces = [slice(begin, begin + size) for begin in range(0, incidents, size)]
    stack, stacked = _fit_logit(signals, left_out, guessable, pieces)
    candidates = _candidates(stacked, teams)
    if teams < 2 or np.count_nonzero(guessable) * candidates.shape[1] < MIN_TREE_PAIRS:
        return Ranking(stack), stacked
    totals = np.bincount(left_out.owners, minlength=teams)  # which, unlike the others' number, do not tell the owner
    pairs = np.concatenate(
        [_rows(signals[piece], totals, left_out.documents[piece], candidates[piece]) for piece in pieces]
    )
    right = candidates == left_out.owners[:, np.newaxis]
    teaching, part = guessable & right.any(axis=1), parts_of(left_out.same, incidents)
    trees: list[BoostedTrees] = []
    shares = np.zeros(right.shape)
    for number in range(PARTS):
        seen = teaching & (part != number)
        trees.append(fit_trees(pairs[seen].reshape(-1, pairs.shape[2]), right[seen].ravel()))
        shares[part == number] = _shares(trees[-1], pairs[part == number])
    return Ranking(stack, tuple(trees)), _blended(stacked, candidates, shares)


def _fit_logit(
    signals: FloatArray, left_out: LeftOut, guessable: NDArray[np.bool_], pieces: Sequence[slice]
) -> tuple[Stack, FloatArray]:
    """The stack, and its probabilities, shape (incidents, teams)."""
    rows = np.flatnonzero(guessable)[:: 1 + left_out.counts.size // MAX_PAIRS]
    log_counts = np.log1p(left_out.counts)
    stack = fit_stack(signals[rows], log_counts[rows], left_out.documents[rows], left_out.owners[rows])
    probabilities = [
        stack.probabilities(signals[piece], log_counts[piece], left_out.documents[piece]) for piece in pieces
    ]
    return stack, np.concatenate(probabilities)


def _candidates(stacked: FloatArray, known: int) -> NDArray[np.int64]:
    """The places of the best teams, best first, shape (incidents, candidates)."""
    return np.argsort(-stacked, axis=1, kind="stable")[:, : min(CANDIDATES, known)]


def _rows(
    signals: FloatArray, counts: NDArray[np.int64], documents: FloatArray, candidates: NDArray[np.int64]
) -> FloatArray:
    """What the trees see of each candidate, shape (incidents, candidates, features).

    Every signal, and its lead over the best of the other teams.
    """
    first_two = np.partition(signals, -2, axis=1)
    second, best = first_two[:, -2:-1], first_two[:, -1:]
    own = np.take_along_axis(signals, candidates[..., np.newaxis], axis=1)
    rival: FloatArray = np.where(own == best, second, best)
    rest = [np.log1p(counts)[candidates], np.take_along_axis(documents, candidates, axis=1)]
    return np.concatenate([own, own - rival, np.stack(rest, axis=2)], axis=2)


def _shares(trees: BoostedTrees, rows: FloatArray) -> FloatArray:
    """Of each candidate, in what the trees give to all of them."""
    odds = trees.log_odds(rows.reshape(-1, rows.shape[2])).reshape(rows.shape[:2])
    chances = 1 / (1 + np.exp(-odds))
    return chances / chances.sum(axis=1, keepdims=True)


def _blended(stacked: FloatArray, candidates: NDArray[np.int64], shares: FloatArray) -> FloatArray:
    """The candidates share anew what the logit gave to all of them; the others keep theirs."""
    own = np.take_along_axis(stacked, candidates, axis=1)
    blended = stacked.copy()
    anew = TRUST * shares * own.sum(axis=1, keepdims=True) + (1 - TRUST) * own
    np.put_along_axis(blended, candidates, anew, axis=1)
    return blended
