"""Serialization of the encoder."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import structlog

from adapters.array_file import ArrayFormat, Arrays
from core.knowledge.encoder import FORMAT, Encoder, TermStatistics

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
        "families": dict(encoder.families),
        "embedded": encoder.embedded,
    }
    return {
        "meta": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        "terms": encoder.statistics.terms,
        "counts": encoder.statistics.counts,
        "repeated": encoder.statistics.repeated,
    }


def _unpack(arrays: Arrays) -> Encoder | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        log.warning("index_of_another_version", action="Searches find nothing until the next ingestion has rebuilt it.")
        return None
    return Encoder(
        TermStatistics(arrays["terms"], arrays["counts"], arrays["repeated"], meta["passages"], meta["total_length"]),
        meta["average_length"],
        meta["changed_since_fit"],
        meta["settled"],
        meta["embedder"],
        meta["families"],
        meta["embedded"],
    )


ENCODER = ArrayFormat(_pack, _unpack, "encoder")
