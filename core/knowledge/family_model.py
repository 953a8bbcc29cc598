"""Which family of documents a question is about, learned from the documents that everybody may read.

Every text of a family speaks for it as far as it resembles the question, and texts that say the same share one voice:
kernel ridge regression on the families (Rasmussen and Williams 2006, sections 2.2 and 6.5), with the cosine of TF-IDF
vectors of character n-grams as kernel. That kernel is linear, so all that was learned is one row of numbers for each
n-gram, and a question costs the sum of its n-grams' rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.knowledge.character_grams import GramWeights, counted_grams
from core.knowledge.ranking import RankedPassage

MAX_READ = 500  # characters of a question that are read


@dataclass(frozen=True, slots=True)
class FamilyModel:
    """`votes[i, j]` is what the i-th n-gram, at a weight of 1, says for the j-th of `families`.

    What it says of a question counts `weight` times in the logarithm of a passage's score. That is learned; of a model that
    does not surely help `families` is empty.
    """

    families: tuple[str, ...]
    grams: GramWeights
    votes: NDArray[np.float32]
    weight: float = 0.0

    @classmethod
    def empty(cls) -> Self:
        return cls((), GramWeights(np.empty(0, np.uint32), np.empty(0, np.float32), 1.0), np.empty((0, 0), np.float32))

    def opinion(self, question: str) -> dict[str, float]:
        """Family → `weight` times what is said for it; a family that is not known is missing."""
        if not self.families:
            return {}
        spots, values = self.grams.row(counted_grams(question[:MAX_READ]))
        return dict(zip(self.families, (self.weight * (values @ self.votes[spots])).tolist(), strict=True))


def favoured(ranked: Sequence[RankedPassage], opinion: Mapping[str, float]) -> list[RankedPassage]:
    """Passages ranked anew, those of less likely families with lower scores; of an unknown family nothing is said.

    The likeliest family that is there keeps its scores: families that are not there make no difference.
    """
    if not opinion:
        return list(ranked)
    best = max((opinion[found.passage.family] for found in ranked if found.passage.family in opinion), default=0.0)
    scored: list[RankedPassage] = []
    for found in ranked:
        score = found.score * math.exp(opinion.get(found.passage.family, best) - best)
        scored.append(replace(found, score=score, withheld=found.score - score))
    return sorted(scored, key=lambda found: (-found.score, found.passage.id))
