"""What an embedding model adds to the owner model: incidents that mean the same in other words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.incident import PastIncident
from core.triage.embeddings import Embeddings, Vector, digest_of, embedded_text
from core.triage.kernel_ridge import kernel_ridge
from core.triage.stacking import Stack

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


@dataclass(frozen=True, slots=True)
class Meaning:
    """`digests[i]` and row `i` of `vectors` belong to incident `i`; `duals[k]` has shape (incidents, teams).

    `stack` was fitted to the signals of the words followed by those of the meaning.
    """

    embedder: str
    digests: tuple[bytes, ...]
    vectors: NDArray[np.float32]
    duals: tuple[NDArray[np.float32], ...]
    stack: Stack

    @property
    def embeddings(self) -> Embeddings:
        """Those that it was learned from."""
        return Embeddings(self.embedder, dict(zip(self.digests, self.vectors, strict=True)))

    def signals(self, vector: Vector, likeness: NDArray[np.float32]) -> FloatArray:
        """What an incident's vector says for each team, shape (teams, signals); `likeness` is that of its words."""
        cosines = self.vectors @ vector
        scores = [kernel(cosines, likeness) @ dual for (kernel, _), dual in zip(KERNELS, self.duals, strict=True)]
        return np.stack(scores, axis=1).astype(np.float64)


@dataclass(frozen=True, slots=True)
class MeaningFit:
    """A meaning that has no stack yet; `signals` are of incidents as if left out, shape (incidents, teams, signals)."""

    embedder: str
    digests: tuple[bytes, ...]
    vectors: NDArray[np.float32]
    duals: tuple[NDArray[np.float32], ...]
    signals: FloatArray

    @classmethod
    def of(
        cls,
        incidents: Sequence[PastIncident],
        embeddings: Embeddings,
        likeness: NDArray[np.float32],
        targets: NDArray[np.float32],
        same: Sequence[NDArray[np.int64]],
    ) -> MeaningFit:
        """Raises KeyError if an incident was not embedded."""
        digests = tuple(digest_of(embedded_text(incident)) for incident in incidents)
        vectors = embeddings.rows(digests)
        cosines = vectors @ vectors.T
        fits = [kernel_ridge(kernel(cosines, likeness), ridge, targets, same) for kernel, ridge in KERNELS]
        signals = np.stack([held for _, held in fits], axis=2)
        return cls(embeddings.embedder, digests, vectors, tuple(dual for dual, _ in fits), signals)

    def with_stack(self, stack: Stack) -> Meaning:
        return Meaning(self.embedder, self.digests, self.vectors, self.duals, stack)
