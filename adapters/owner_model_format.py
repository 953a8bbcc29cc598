"""Serialization of the owner model."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from adapters.array_format import ArrayFormat, Arrays
from core.triage.boosted_trees import BoostedTrees
from core.triage.complement_bayes import ComplementBayes
from core.triage.discriminant import Discriminant
from core.triage.distil import Alignment
from core.triage.likeness import Likeness
from core.triage.logistic_regression import LogisticRegression
from core.triage.meaning import Meaning
from core.triage.owner_model import FORMAT, OwnerModel
from core.triage.postings import Postings
from core.triage.ranking import Ranking
from core.triage.stacking import Stack

Learner = TypeVar("Learner", LogisticRegression, Discriminant)

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
        "held": model.bayes.held,
    }
    arrays |= _ranking_arrays("", model.ranking)
    arrays |= _learner_arrays("", model.logistic) | _learner_arrays("", model.discriminant)
    arrays |= {f"dual-{number}": dual for number, dual in enumerate(model.duals)}
    arrays |= _meaning_arrays(model.meaning) if model.meaning else {}
    arrays |= _ranking_arrays("meaning-", model.meaning_ranking) if model.meaning_ranking else {}
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
        ComplementBayes(arrays["held"]),
        _learner(LogisticRegression, "", arrays),
        _learner(Discriminant, "", arrays),
        _ranking("", arrays),
        (),
        _meaning(meta["embedder"], arrays) if meta["embedder"] else None,
        _ranking("meaning-", arrays) if meta["embedder"] else None,
    )


def _meaning_arrays(meaning: Meaning) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "digests": np.frombuffer(b"".join(meaning.digests), np.uint8).reshape(len(meaning.digests), -1),
        "vectors": meaning.vectors,
        "meaning-duals": np.stack(meaning.duals),
    }
    return arrays | _learner_arrays("meaning-", meaning.logistic) | _learner_arrays("meaning-", meaning.discriminant)


def _meaning(embedder: str, arrays: Arrays) -> Meaning:
    digests: list[bytes] = [digest.tobytes() for digest in arrays["digests"]]
    return Meaning(
        embedder,
        tuple(digests),
        arrays["vectors"],
        tuple(arrays["meaning-duals"]),
        _learner(LogisticRegression, "meaning-", arrays),
        _learner(Discriminant, "meaning-", arrays),
    )


def _learner_arrays(prefix: str, learner: LogisticRegression | Discriminant) -> dict[str, Any]:
    name = type(learner).__name__
    return {f"{prefix}{name}-{field.name}": getattr(learner, field.name) for field in fields(learner)}


def _learner(kind: type[Learner], prefix: str, arrays: Arrays) -> Learner:
    return kind(*(arrays[f"{prefix}{kind.__name__}-{field.name}"] for field in fields(kind)))


def _ranking_arrays(prefix: str, ranking: Ranking) -> dict[str, Any]:
    return {
        f"{prefix}centre": ranking.stack.centre,
        f"{prefix}weights": ranking.stack.weights,
        f"{prefix}forests": np.array(len(ranking.trees)),
    } | {
        f"{prefix}forest-{number}-{field.name}": np.asarray(getattr(trees, field.name))
        for number, trees in enumerate(ranking.trees)
        for field in fields(trees)
    }


def _ranking(prefix: str, arrays: Arrays) -> Ranking:
    trees = [
        BoostedTrees(**{field.name: arrays[f"{prefix}forest-{number}-{field.name}"] for field in fields(BoostedTrees)})
        for number in range(int(arrays[f"{prefix}forests"]))
    ]
    return Ranking(Stack(arrays[f"{prefix}centre"], arrays[f"{prefix}weights"]), tuple(trees))


OWNER_MODEL = ArrayFormat(_pack, _unpack, "owner model")
"""What was held out is not kept: labels were made of it when the model was new."""
