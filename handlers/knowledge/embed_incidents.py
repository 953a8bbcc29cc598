"""Turn incidents into vectors. Without an embedding model, triage compares their words."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import structlog
from numpy.typing import NDArray

from core.model.errors import ModelUnavailable
from core.model.incident import Incident
from core.model.past_incident import PastIncident
from core.ports import Embedder
from core.triage.owner_model import OwnerModel
from core.triage.text_similarity import Embeddings, Vector, digest_of, embedded_text

BATCH = 64  # texts per embedding call
DEADLINE = 5.0  # seconds that triage waits for the incident's embedding

log = structlog.get_logger()


async def embed_past_incidents(
    incidents: Sequence[PastIncident], embedder: Embedder, earlier: Embeddings | None = None
) -> Embeddings:
    """Return the vectors of all incidents, reusing those of `earlier` from the same model.

    Raises ModelUnavailable.
    """
    texts = await asyncio.to_thread(_texts, incidents)
    vectors_by_text: dict[bytes, Vector] = {}
    if earlier is not None and earlier.embedder == embedder.name:
        vectors_by_text = {
            digest: vector
            for digest, vector in earlier.vectors.items()
            if digest in texts and vector.shape == (embedder.dimensions,)
        }
    # A batch is padded to its longest text, so texts of similar length are embedded together.
    new = sorted((digest for digest in texts if digest not in vectors_by_text), key=lambda digest: len(texts[digest]))
    for begin in range(0, len(new), BATCH):
        batch = new[begin : begin + BATCH]
        vectors = await embedder.embed_passages([texts[digest] for digest in batch])
        _check(vectors, (len(batch), embedder.dimensions), embedder)
        vectors_by_text |= zip(batch, vectors, strict=True)
    return Embeddings(embedder.name, vectors_by_text)


async def embed_incident(incident: Incident, model: OwnerModel | None, embedder: Embedder | None) -> Vector | None:
    """Return the incident's vector, if the model learned from vectors of this embedder and it answers in time."""
    if model is None or model.embedding is None or embedder is None or model.embedding.embedder != embedder.name:
        return None
    try:
        async with asyncio.timeout(DEADLINE):
            vector = await embedder.embed_query(embedded_text(incident))
        _check(vector, model.embedding.vectors.shape[1:], embedder)
    except (ModelUnavailable, TimeoutError) as error:
        log.warning("triage_without_embedding", incident=incident.id, error=str(error) or "It did not answer in time.")
        return None
    return vector


def _texts(incidents: Sequence[PastIncident]) -> dict[bytes, str]:
    return {digest_of(text): text for text in map(embedded_text, incidents)}


def _check(vectors: NDArray[np.float32], shape: tuple[int, ...], embedder: Embedder) -> None:
    if vectors.shape != shape or not np.isfinite(vectors).all():
        raise ModelUnavailable(f"The embedding model {embedder.name} gave no usable vectors.")
