"""What an embedding model adds to the owner model: incidents that mean the same in other words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.model.incident import PastIncident
from core.triage.discriminant import Discriminant, discriminant
from core.triage.embeddings import Embeddings, Vector, digest_of, embedded_text
from core.triage.kernel_ridge import kernel_ridge
from core.triage.logistic_regression import LogisticRegression, MainAxes, logistic_regression
from core.triage.neighbours import neighbour_signals

FloatArray = NDArray[np.float64]

Kernel = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.floating]]
"""Of the cosines of the vectors, and of the likeness of the words."""


def _meant(cosines: NDArray[np.float32], _: NDArray[np.float32]) -> NDArray[np.floating]:
    """Sees mainly incidents that mean much the same."""
    return np.exp((cosines - 1) / 0.5)


def _meant_and_said(cosines: NDArray[np.float32], likeness: NDArray[np.float32]) -> NDArray[np.floating]:
    """Sees the words too."""
    return (_meant(cosines, likeness) + likeness) / 2


KERNELS: tuple[tuple[Kernel, float], ...] = ((_meant, 0.1), (_meant_and_said, 0.05))  # with their ridge
NEIGHBOURHOODS = (4, 12)  # powers of the cosine with which past incidents vote


@dataclass(frozen=True, slots=True)
class Meaning:
    """`digests[i]` and row `i` of `vectors` belong to incident `i`; `duals[k]` has shape (incidents, teams)."""

    embedder: str
    digests: tuple[bytes, ...]
    vectors: NDArray[np.float32]
    duals: tuple[NDArray[np.float32], ...]
    logistic: LogisticRegression
    discriminant: Discriminant

    @classmethod
    def fitted(
        cls,
        incidents: Sequence[PastIncident],
        embeddings: Embeddings,
        likeness: NDArray[np.float32],
        axes: MainAxes,
        targets: NDArray[np.float32],
        same: Sequence[NDArray[np.int64]],
    ) -> tuple[Self, FloatArray]:
        """With its signals of the incidents as if each had been left out, shape (incidents, teams, signals).

        Raises KeyError if an incident was not embedded.
        """
        digests = tuple(digest_of(embedded_text(incident)) for incident in incidents)
        vectors = embeddings.rows(digests)
        cosines = vectors @ vectors.T
        fits = [kernel_ridge(kernel(cosines, likeness), ridge, targets, same) for kernel, ridge in KERNELS]
        for block in same:
            cosines[np.ix_(block, block)] = 0
        owners = targets.argmax(axis=1).astype(np.int32)
        voted = neighbour_signals(np.maximum(cosines, 0), owners, targets.shape[1], NEIGHBOURHOODS)
        logistic, regressed = logistic_regression(axes, owners, targets.shape[1], same, vectors)
        analysis, likely = discriminant(vectors, owners, targets.shape[1], same)
        duals = tuple(dual for dual, _ in fits)
        signals = np.stack([*(held for _, held in fits), *voted, regressed, likely], axis=2)
        return cls(embeddings.embedder, digests, vectors, duals, logistic, analysis), signals

    @property
    def embeddings(self) -> Embeddings:
        """Those that it was learned from."""
        return Embeddings(self.embedder, dict(zip(self.digests, self.vectors, strict=True)))

    def signals(self, vector: Vector, likeness: NDArray[np.float32], owners: NDArray[np.int32]) -> FloatArray:
        """What an incident's vector says for each team, shape (teams, signals); `likeness` is that of its words, and
        `owners` are the places of the teams of the incidents.
        """
        cosines = self.vectors @ vector
        scores = [kernel(cosines, likeness) @ dual for (kernel, _), dual in zip(KERNELS, self.duals, strict=True)]
        voted = neighbour_signals(np.maximum(cosines, 0)[np.newaxis], owners, scores[0].shape[0], NEIGHBOURHOODS)
        regressed = self.logistic.probabilities(likeness, vector)
        likely = self.discriminant.probabilities(vector)
        return np.stack([*scores, *(votes[0] for votes in voted), regressed, likely], axis=1, dtype=np.float64)
