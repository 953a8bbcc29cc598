"""The owner model as bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from adapters.array_format import ArrayFormat, Arrays
from core.triage.distil import Alignment
from core.triage.likeness import Likeness
from core.triage.meaning import Meaning
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
        "embedder": model.meaning.embedder if model.meaning else "",
    }
    arrays: dict[str, Any] = {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "owners": model.owners,
        "centre": model.stack.centre,
        "weights": model.stack.weights,
    }
    arrays |= {f"dual-{number}": dual for number, dual in enumerate(model.duals)}
    arrays |= _meaning_arrays(model.meaning) if model.meaning else {}
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
        _meaning(meta["embedder"], arrays) if meta.get("embedder") else None,
    )


def _meaning_arrays(meaning: Meaning) -> dict[str, Any]:
    return {
        "digests": np.frombuffer(b"".join(meaning.digests), np.uint8).reshape(len(meaning.digests), -1),
        "vectors": meaning.vectors,
        "meaning-duals": np.stack(meaning.duals),
        "meaning-centre": meaning.stack.centre,
        "meaning-weights": meaning.stack.weights,
    }


def _meaning(embedder: str, arrays: Arrays) -> Meaning:
    digests: list[bytes] = [digest.tobytes() for digest in arrays["digests"]]
    stack = Stack(arrays["meaning-centre"], arrays["meaning-weights"])
    return Meaning(embedder, tuple(digests), arrays["vectors"], tuple(arrays["meaning-duals"]), stack)


OWNER_MODEL = ArrayFormat(_pack, _unpack)
"""What was held out is not kept: labels were made of it when the model was new. A version of Plumbline that knows no
`meaning` reads the rest.
"""
