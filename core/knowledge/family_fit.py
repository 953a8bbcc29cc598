"""Learns the family model, from the documents that everybody may read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.knowledge.character_grams import GramWeights, counted_grams
from core.knowledge.document import Passage
from core.knowledge.family_model import FamilyModel
from core.knowledge.family_texts import FamilyText, family_texts, public_sample
from core.knowledge.family_weight import family_weight

if TYPE_CHECKING:
    from scipy.sparse import csc_array

PENALTY = 0.3  # ridge added to a kernel whose diagonal is 1; a third or three times as much told headings apart as well
MAX_GRAMS = 50_000  # those that say most are kept: bounds the memory of 100 families to 20 MB
SEED = 11


def fitted_family_model(passages: Sequence[Passage]) -> FamilyModel:
    """The model of what everybody may read; the same whatever else `passages` hold. Deterministic. Takes seconds."""
    generator = np.random.default_rng(SEED)
    sample = public_sample(passages, generator)
    families = tuple(sorted({passage.family for passage in sample}))
    if len(families) < 2:
        return FamilyModel.empty()
    texts = family_texts(sample, generator)
    grams, votes, held_out = _regression(texts, families)
    weight = family_weight(sample, families, texts, held_out, generator)
    if not weight:
        return FamilyModel.empty()
    return FamilyModel(families, grams, votes, weight)


def _regression(
    texts: Sequence[FamilyText], families: Sequence[str]
) -> tuple[GramWeights, NDArray[np.float32], NDArray[np.float64]]:
    """The MAX_GRAMS n-grams that say most, their votes, and what a model of all other documents would say of each text.

    The last in closed form (Rasmussen and Williams 2006, eq. 5.12, by blocks); only the rarity of n-grams is that of all.
    """
    # Only a fit needs it, and a running bot is spared the import.
    from scipy.sparse import csr_array

    counted = [counted_grams(found.text) for found in texts]
    grams = GramWeights.fitted(counted)
    rows = [grams.row(each) for each in counted]
    matrix = csr_array(
        (
            np.concatenate([values for _, values in rows]),
            np.concatenate([spots for spots, _ in rows]),
            np.cumsum([0, *(spots.size for spots, _ in rows)]),
        ),
        shape=(len(texts), grams.features.size),
    )
    targets = np.array([[float(found.family == family) for family in families] for found in texts]) - 1 / len(families)
    inverse = np.linalg.inv((matrix @ matrix.T).toarray() + PENALTY * np.eye(len(texts)))
    duals = inverse @ targets
    held_out = np.empty_like(targets)
    documents = np.unique([found.document_id or f"\n{found.family}" for found in texts], return_inverse=True)[1]
    for document in range(documents.max() + 1):
        own = np.flatnonzero(documents == document)
        held_out[own] = targets[own] - np.linalg.solve(inverse[np.ix_(own, own)], duals[own])
    kept = _strongest(matrix.T, duals)
    return grams.only(kept), np.asarray(matrix[:, kept].T @ duals, np.float32), held_out


def _strongest(grams: csc_array, duals: NDArray[np.float64]) -> NDArray[np.intp]:
    """Those that say most for or against any family, ascending; one family after the other, so as to take little memory."""
    strength = np.zeros(grams.shape[0])
    for dual in duals.T:
        np.maximum(strength, np.abs(grams @ dual), out=strength)
    return np.sort(np.argsort(-strength, kind="stable")[:MAX_GRAMS])
