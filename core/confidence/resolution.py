"""Labels from how incidents ended: the note that closed one says what the cause was, and a claim is right or wrong by it.

As LM-PACE labels its data (section 5.1.1): by the similarity of the claimed and the noted cause, above a threshold that
has the best F1 on labels that people gave.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from core.knowledge.terms import terms
from core.model.incident import Resolution

DEFAULT_THRESHOLD = 0.5  # while too few claims have both a note and a person's label
MIN_LABELS = 20  # from which on the threshold is fitted
MAX_FIELD = 2_000  # characters of a note's field

_NAME = r"(?:root[ -]?cause|cause|fix(?:ed by)?|mitigation|resolution|owner|owning team)"
_MARKS = r"[^\w\n]{0,20}"  # of a list, of emphasis; bounded, since it is tried at the beginning of every line
_FIELD = re.compile(
    rf"^{_MARKS}(?P<name>{_NAME}){_MARKS}:{_MARKS}(?:\n(?!{_MARKS}{_NAME}{_MARKS}:){_MARKS})?(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def read_resolution(note: str) -> Resolution:
    """The fields of a note, one to a line or set apart by semicolons: “root cause: …; fix: …; owner: …”."""
    fields: dict[str, str] = {}
    for found in _FIELD.finditer(note.replace(";", "\n")):
        name = found["name"].lower()
        kind = "owner" if "own" in name else "root_cause" if "cause" in name else "fix"
        fields.setdefault(kind, found["text"].strip()[:MAX_FIELD])
    return Resolution(**fields)


def is_resolution(text: str) -> bool:
    """Return whether a text begins as a note does: with the name of a field and a colon."""
    return _FIELD.match(text.lstrip()) is not None


def completed(earlier: Resolution | None, note: Resolution) -> Resolution:
    """The note with what it leaves open taken from the one before it."""
    if earlier is None:
        return note
    return Resolution(note.root_cause or earlier.root_cause, note.fix or earlier.fix, note.owner or earlier.owner)


def agreement(claimed: str, noted: str) -> float:
    """How far a claimed cause says what the noted one says: the share of the note's terms that it holds as well."""
    note = set(terms(noted))
    return len(note & set(terms(claimed))) / len(note) if note else 0.0


def fit_threshold(agreements: Sequence[float], correct: Sequence[bool]) -> float:
    """The agreement from which on a claim counts as right, by the best F1 on people's labels.

    DEFAULT_THRESHOLD while there are fewer than MIN_LABELS of them, or only right or only wrong ones.
    """
    scores, labels = np.array(agreements, np.float64), np.array(correct, np.bool_)
    if len(labels) < MIN_LABELS or labels.all() or not labels.any():
        return DEFAULT_THRESHOLD
    levels = np.unique(scores)
    said = scores[:, None] >= levels[None, :]
    right = (said & labels[:, None]).sum(axis=0)
    f1 = 2 * right / (said.sum(axis=0) + labels.sum())
    best = int(np.argmax(f1))
    below = levels[best - 1] if best else 0.0
    return float((levels[best] + below) / 2)
