"""Incidents as vectors of the embedding model that was configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from core.model.incident import Incident, PastIncident

MAX_CHARACTERS = 2_000  # of a text that are embedded: such models read 128 to 512 tokens


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of unit length by the digest of their text, all by the embedding model of this name."""

    embedder: str
    vectors: Mapping[bytes, Vector]

    def rows(self, digests: Sequence[bytes]) -> NDArray[np.float32]:
        """Return one row for each digest. Raises KeyError for one that was not embedded."""
        return np.stack([self.vectors[digest] for digest in digests], dtype=np.float32)


def embedded_text(incident: Incident | PastIncident) -> str:
    """Return what was known when it was opened, each line once and with single blanks: alerts repeat their title."""
    lines = f"{incident.title}\n{incident.description}\n{incident.service}".splitlines()
    return "\n".join(dict.fromkeys(filter(None, (" ".join(line.split()) for line in lines))))[:MAX_CHARACTERS]


def digest_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
