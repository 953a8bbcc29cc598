"""Incidents as vectors of the embedding model that was configured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from core.model.incident import Incident, PastIncident
from core.triage.mail import without_mail

MAX_CHARACTERS = 2_000  # of a text that are embedded: such models read 128 to 512 tokens
MAX_RAW_CHARACTERS = 8_000  # that are repaired for it: an escaped one takes seven

# Letters that a wrong encoding made of others: what the bytes of UTF-8 are in Windows-1252. It leaves some undefined,
# which programs keep as they are.
_CONTROLS = frozenset("\x81\x8d\x8f\x90\x9d")
_FOLLOWING = "\x80-\xbf" + "".join(re.escape(bytes([byte]).decode("cp1252", "ignore")) for byte in range(0x80, 0xA0))
_MOJIBAKE = re.compile(f"(?:[\xc2-\xdf][{_FOLLOWING}]|[\xe0-\xef][{_FOLLOWING}]{{2}}|[\xf0-\xf4][{_FOLLOWING}]{{3}})+")
_STRAIGHT = str.maketrans("“”„‘’‚", "\"\"\"'''")  # quotation marks
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
    plain = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text)
    return normalize("NFC", _MOJIBAKE.sub(_decoded, plain).translate(_STRAIGHT))


def _decoded(match: re.Match[str]) -> str:
    """Return the letters whose UTF-8 was read as Windows-1252; what is none stays."""
    try:
        return b"".join(
            bytes([ord(each)]) if each in _CONTROLS else each.encode("cp1252") for each in match[0]
        ).decode()
    except UnicodeError:
        return match[0]


def digest_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
