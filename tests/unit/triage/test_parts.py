from __future__ import annotations

import numpy as np

from core.triage.parts import PARTS, parts_of


def test_what_says_the_same_is_in_the_same_part_and_all_parts_are_used() -> None:
    same = [np.array([0, 9]), *(np.array([row]) for row in range(1, 9))]
    part = parts_of(same, 10)
    assert part[0] == part[9]
    assert set(part.tolist()) == set(range(PARTS))
