"""The judgement whether an incident needs a person before there are outcomes to learn from.

`python -m tests.benchmarks fit-paging` fits the model on generated incidents, and writes it with its origin. Its
probabilities are calibrated on judgements by a fit on other kinds of incidents than the judged one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from core.model.calibrator import Steps
from core.model.prediction import Evaluation
from core.triage.paging import VERSION, PageModel

PRIOR_VERSION = f"{VERSION}-prior"
TARGET = Path(__file__).with_name("paging_prior.json")


@cache
def _read() -> dict[str, Any]:
    return json.loads(TARGET.read_text("utf-8"))


@cache
def prior() -> PageModel:
    """Return the model."""
    arrays = {name: np.array(_read()[name], float) for name in ("mean", "scale", "weights", "judged", "needed")}
    return PageModel(bias=float(_read()["bias"]), **arrays)


def prior_probability(raw: float) -> float:
    """Return the calibrated probability of a judgement by the model."""
    return Steps(tuple(_read()["upper"]), tuple(_read()["probabilities"])).probability(Evaluation(1.0, raw))
