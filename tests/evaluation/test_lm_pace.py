from __future__ import annotations

from functools import cache

import pytest

from tests.benchmarks import lm_pace
from tests.benchmarks.confidence import OPTIMISED, OPTIMISED_ALONE, UNIFORM, UNIFORM_ALONE

measured = cache(lm_pace.measured)


@pytest.mark.parametrize("measure", ["ece", "brier", "truth"])
def test_optimised_thresholds_are_truer_than_uniform_bins(measure: str) -> None:
    """The paper's table 2, its first two columns against its last two."""
    figures = measured()
    assert figures[OPTIMISED][measure] < figures[UNIFORM][measure]
    assert figures[OPTIMISED_ALONE][measure] < figures[UNIFORM_ALONE][measure]


@pytest.mark.parametrize("measure", ["brier", "truth"])
def test_coe_and_rce_together_are_truer_than_rce_alone(measure: str) -> None:
    """The paper's table 2, its odd columns against its even ones, by what a calibration error does not show."""
    figures = measured()
    assert figures[OPTIMISED][measure] < figures[OPTIMISED_ALONE][measure]
    assert figures[UNIFORM][measure] < figures[UNIFORM_ALONE][measure]


def test_coe_keeps_the_confidence_true_when_references_become_scarce() -> None:
    """What RCE alone is worth depends on how many references there were when it was fitted."""
    figures = measured(references=0.3)
    assert figures[OPTIMISED]["ece"] < 0.75 * figures[OPTIMISED_ALONE]["ece"]
