from __future__ import annotations

import pytest

from core.model.badge import NO_POLICY, Badge, Policy, Strength
from tests.cases import every_case

POLICY = Policy(ask_below=0.4, ping_owner_above=0.8)


def badge(probability: float | None) -> Badge:
    return Badge(Strength.WEAK, probability)


@every_case(
    ("probability", "asks", "pings"),
    [(0.39, True, False), (0.4, False, False), (0.8, False, False), (0.81, False, True), (None, False, False)],
)
def test_only_a_calibrated_badge_beyond_a_bound_changes_anything(
    probability: float | None, asks: bool, pings: bool
) -> None:
    assert (POLICY.asks(badge(probability)), POLICY.pings(badge(probability))) == (asks, pings)


@pytest.mark.parametrize("shown", [None, badge(0.0), badge(1.0)])
def test_without_a_policy_nothing_changes(shown: Badge | None) -> None:
    assert not NO_POLICY.asks(shown)
    assert not NO_POLICY.pings(shown)
