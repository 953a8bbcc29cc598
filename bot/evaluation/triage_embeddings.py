"""Embeddings of an evaluation's tickets, both as past incidents and as queries."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from core.model.incident import Incident, PastIncident
from core.ports import Embedder
from core.triage.embeddings import Embeddings, Vector, embedded_text
from handlers.knowledge.embed_incidents import embed_past_incidents


@dataclass(slots=True)
class TicketEmbedder:
    """Embeds tickets, and caches embeddings between folds."""

    embedder: Embedder
    known: Embeddings | None = None

    def past(self, incidents: Sequence[PastIncident]) -> Embeddings:
        found = asyncio.run(embed_past_incidents(incidents, self.embedder, self.known))
        self.known = Embeddings(found.embedder, {**self.known.vectors, **found.vectors}) if self.known else found
        return found

    def asked(self, incidents: Sequence[Incident]) -> list[Vector]:
        return asyncio.run(self._asked(incidents))

    async def _asked(self, incidents: Sequence[Incident]) -> list[Vector]:
        return [await self.embedder.embed_query(embedded_text(incident)) for incident in incidents]
