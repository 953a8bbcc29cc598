"""Past incidents in parts, each to be judged by what was fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PARTS = 5


def parts_of(same: Sequence[NDArray[np.int64]], incidents: int) -> NDArray[np.int64]:
    """The part of each incident, from 0 to PARTS - 1; the blocks of `same`, which say the same, stay together."""
    part = np.zeros(incidents, np.int64)
    for number, block in enumerate(same):
        part[block] = number % PARTS
    return part
