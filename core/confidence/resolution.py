"""Labels from resolution notes: a claim is right if its cause agrees with the noted cause.

As in LM-PACE (section 5.1.1), agreement is a text similarity above a threshold, chosen by the best F1 on people's
labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from core.knowledge.terms import terms
from core.model.incident import Resolution

DEFAULT_THRESHOLD = 0.5  # used until MIN_LABELS claims have both a note and a person's label
MIN_LABELS = 20  # needed to fit the threshold
MAX_FIELD = 2_000  # characters per field of a note

NOTED = ("root_cause", "fix", "owner")  # the texts of a `Resolution`

_NAME = r"(?:root[ -]?cause|cause|fix(?:ed by)?|mitigation|resolution|owner|owning team)"
_MARKS = r"[^\w\n]{0,20}"  # list or emphasis marks; bounded, because it is tried at the start of every line
_FIELD = re.compile(
    rf"^{_MARKS}(?P<name>{_NAME}){_MARKS}:{_MARKS}(?:\n(?!{_MARKS}{_NAME}{_MARKS}:){_MARKS})?(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)


def read_resolution(note: str) -> Resolution:
    """Return the fields of a note, separated by line ends or semicolons: “root cause: …; fix: …; owner: …”."""
    fields: dict[str, str] = {}
    for match in _FIELD.finditer(note.replace(";", "\n")):
        name = match["name"].lower()
        kind = "owner" if "own" in name else "root_cause" if "cause" in name else "fix"
        fields.setdefault(kind, match["text"].strip()[:MAX_FIELD])
    return Resolution(fields.get("root_cause", ""), fields.get("fix", ""), fields.get("owner", ""))


def is_resolution(text: str) -> bool:
    """Return whether a text begins with the name of a note's field and a colon."""
    return _FIELD.match(text.lstrip()) is not None


def completed(earlier: Resolution | None, note: Resolution) -> Resolution:
    """Return the note, with its empty fields taken from the earlier one."""
    if earlier is None:
        return note
    fields = [name for name in NOTED if not getattr(note, name)]
    kept = {name: getattr(earlier, name) for each in fields for name in (each, f"{each}_by")}
    return replace(note, readers=earlier.readers | note.readers, **kept)


def agreement(claimed: str, noted: str) -> float:
    """Return the share of the noted cause's terms that the claimed cause contains."""
    note = set(terms(noted))
    return len(note & set(terms(claimed))) / len(note) if note else 0.0


def fit_threshold(agreements: Sequence[float], correct: Sequence[bool]) -> float:
    """Return the agreement at which a claim counts as right: the best F1 on people's labels.

    Returns DEFAULT_THRESHOLD for fewer than MIN_LABELS labels, or if all are equal.
    """
    scores, labels = np.array(agreements, np.float64), np.array(correct, np.bool_)
    if len(labels) < MIN_LABELS or labels.all() or not labels.any():
        return DEFAULT_THRESHOLD
    levels = np.unique(scores)
    predictions = scores[:, None] >= levels[None, :]
    right = (predictions & labels[:, None]).sum(axis=0)
    f1 = 2 * right / (predictions.sum(axis=0) + labels.sum())
    best = int(np.argmax(f1))
    below = levels[best - 1] if best else 0.0
    return float((levels[best] + below) / 2)
