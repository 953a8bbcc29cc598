"""`status`: what is open, and how fresh the knowledge is, as far as it may be told in the place of the question."""

from __future__ import annotations

from collections.abc import Sequence

from core.audience import may_see_incident
from core.conversation import PUBLIC, Channel, Question
from core.incident import IncidentState
from core.messages import Notice
from core.ports import Ingestion, PassageIndex, Store
from handlers.post_message import Poster

SHOWN_INCIDENTS = 5
LOOKED_AT = 50  # latest incidents among which open ones are counted


async def show_status(
    question: Question, *, channels: Sequence[Channel], store: Store, index: PassageIndex, poster: Poster
) -> None:
    """Incidents of other private channels are neither named nor counted; the sources are for the workspace alone.

    Why a source cannot be read stays with the operator: the reason may name what not everybody may know of.
    """
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        ingestions = await transaction.ingestions.all()
    opened = [
        incident
        for incident in recent
        if incident.state is IncidentState.OPEN and may_see_incident(question.audience, incident, channels)
    ]
    lines = [f"{len(opened)} open incident{'' if len(opened) == 1 else 's'}."]
    lines += [f"• {incident.title} (since {incident.started_at:%H:%M} UTC)" for incident in opened[:SHOWN_INCIDENTS]]
    if PUBLIC in question.audience.readers:
        lines += [f"{await index.count()} passages indexed.", *map(_freshness, ingestions)]
    await poster.post_once(f"status:{question.id}", question.place, Notice("\n".join(lines)))


def _freshness(ingestion: Ingestion) -> str:
    failed = ", could not be read since" if ingestion.failure else ""
    read = f"read {ingestion.finished_at:%Y-%m-%d %H:%M} UTC"
    return f"• {ingestion.source}: {ingestion.documents} documents, {read}{failed}"
