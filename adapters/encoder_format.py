"""The encoder as bytes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import structlog

from adapters.array_format import ArrayFormat, Arrays
from core.knowledge.character_grams import GramWeights
from core.knowledge.encoder import FORMAT, Encoder
from core.knowledge.family_model import FamilyModel
from core.knowledge.latent import LatentModel
from core.knowledge.statistics import TermStatistics

log = structlog.get_logger()


def _pack(encoder: Encoder) -> Arrays:
    meta = {
        "format": FORMAT,
        "passages": encoder.statistics.passages,
        "total_length": encoder.statistics.total_length,
        "average_length": encoder.average_length,
        "changed_since_fit": encoder.changed_since_fit,
        "settled": encoder.settled,
        "embedder": encoder.embedder,
        "trained": encoder.latent.trained,
        "families": dict(encoder.families),
        "told_apart": encoder.family_model.families,
        "unknown_gram": encoder.family_model.grams.unknown,
        "family_weight": encoder.family_model.weight,
    }
    return {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "terms": encoder.statistics.terms,
        "counts": encoder.statistics.counts,
        "repeated": encoder.statistics.repeated,
        "features": encoder.latent.features,
        "idf": encoder.latent.idf,
        "components": encoder.latent.components.astype(np.float16),
        "grams": encoder.family_model.grams.features,
        "gram_rarity": encoder.family_model.grams.rarity,
        "gram_votes": encoder.family_model.votes.astype(np.float16),
    }


def _unpack(arrays: Arrays) -> Encoder | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        log.warning("index_of_another_version", action="Nothing is found until the next ingestion has made it anew.")
        return None
    return Encoder(
        TermStatistics(arrays["terms"], arrays["counts"], arrays["repeated"], meta["passages"], meta["total_length"]),
        meta["average_length"],
        LatentModel(arrays["features"], arrays["idf"], arrays["components"].astype(np.float32), meta["trained"]),
        meta["changed_since_fit"],
        meta["settled"],
        meta["embedder"],
        meta["families"],
        FamilyModel(
            tuple(meta["told_apart"]),
            GramWeights(arrays["grams"], arrays["gram_rarity"], meta["unknown_gram"]),
            arrays["gram_votes"].astype(np.float32),
            meta["family_weight"],
        ),
    )


ENCODER = ArrayFormat(_pack, _unpack, "encoder")
"""The latent model and the votes of the family model keep half precision."""
