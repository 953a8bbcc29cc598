"""Outcomes of earlier badges with about the same probability."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from core.confidence.measures import BINS


@dataclass(frozen=True, slots=True)
class TrackRecord:
    """Of the `judged` predictions shown at more than `above` and at most `up_to`, `right` were right.

    The bounds are those of the reliability diagram's bin, in [0, 1].
    """

    above: float
    up_to: float
    judged: int
    right: int


def track_record(probability: float, judged: Iterable[tuple[float, bool]]) -> TrackRecord | None:
    """Return the record of the bin of `probability` over pairs of (shown probability, correct); None if the bin is
    empty.
    """
    bin_of = _bin(probability)
    outcomes = [correct for shown, correct in judged if _bin(shown) == bin_of]
    if not outcomes:
        return None
    return TrackRecord(bin_of / BINS, (bin_of + 1) / BINS, len(outcomes), sum(outcomes))


def _bin(probability: float) -> int:
    return max(0, math.ceil(round(probability * BINS, 9)) - 1)
