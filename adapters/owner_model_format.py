"""The owner model as bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from adapters.array_format import ArrayFormat, Arrays
from core.triage.distil import Alignment
from core.triage.likeness import Likeness
from core.triage.owner_model import FORMAT, OwnerModel
from core.triage.postings import Postings
from core.triage.stacking import Stack

_INDEXES = ("words", "characters", "titles")
_COLUMNS = ("terms", "starts", "rows", "counts", "lengths")


def _pack(model: OwnerModel) -> Arrays:
    meta = {
        "format": FORMAT,
        "teams": model.teams,
        "counterparts": dict(model.alignment.counterparts),
        "regressions": len(model.duals),
    }
    arrays: dict[str, Any] = {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "owners": model.owners,
        "centre": model.stack.centre,
        "weights": model.stack.weights,
    }
    arrays |= {f"dual-{number}": dual for number, dual in enumerate(model.duals)}
    for index in _INDEXES:
        postings: Postings = getattr(model.likeness, index)
        arrays |= {f"{index}-{column}": getattr(postings, column) for column in _COLUMNS}
    return arrays


def _unpack(arrays: Arrays) -> OwnerModel | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        return None
    indexes = [Postings(*(arrays[f"{index}-{column}"] for column in _COLUMNS)) for index in _INDEXES]
    duals = tuple(arrays[f"dual-{number}"] for number in range(meta["regressions"]))
    return OwnerModel(
        tuple(meta["teams"]),
        arrays["owners"],
        Likeness(*indexes),
        Alignment(meta["counterparts"]),
        duals,
        Stack(arrays["centre"], arrays["weights"]),
        (),
    )


OWNER_MODEL = ArrayFormat(_pack, _unpack)
"""What was held out is not kept: labels were made of it when the model was new."""
