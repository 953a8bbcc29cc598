"""Incidents as vectors of the embedding model that was configured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from core.model.incident import Incident, PastIncident
from core.triage.mail import without_mail

MAX_CHARACTERS = 2_000  # of a text that are embedded: such models read 128 to 512 tokens
MAX_RAW_CHARACTERS = 8_000  # that are repaired for it: an escaped one takes seven

_ESCAPED = re.compile(r"_x((?!D[89A-F])[0-9A-F]{4})_", re.IGNORECASE)

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
    """Return what was known when it was opened, each line once: alerts repeat their title.

    Repaired where exports broke its letters, which a model that learned from clean text cannot read, and without what mail
    programs add, which would make all that came by mail look alike.
    """
    raw = f"{incident.title}\n{incident.description}\n{incident.service}"[:MAX_RAW_CHARACTERS]
    return _each_line_once(without_mail(_repaired(raw)))[:MAX_CHARACTERS]


def _each_line_once(text: str) -> str:
    """Return the text with single blanks, as such models read it: lines that differ in no more are one."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(dict.fromkeys(filter(None, lines)))


def _repaired(text: str) -> str:
    """Without the escapes of spreadsheets (ST_Xstring of ECMA-376, part 1) and what a wrong encoding made of letters."""
    from ftfy import fix_text

    return fix_text(_ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text))


def digest_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
