"""`status`: what is open, and how fresh the knowledge is."""

from __future__ import annotations

from core.conversation import Question
from core.incident import IncidentState
from core.messages import Notice
from core.ports import PassageIndex, Store
from handlers.post_message import Poster

SHOWN_INCIDENTS = 5
LOOKED_AT = 50  # latest incidents among which open ones are counted


async def show_status(question: Question, *, store: Store, index: PassageIndex, poster: Poster) -> None:
    async with store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        ingestions = await transaction.ingestions.all()
    opened = [incident for incident in recent if incident.state is IncidentState.OPEN]
    lines = [f"{len(opened)} open incident{'' if len(opened) == 1 else 's'}."]
    lines += [f"• {incident.title} (since {incident.started_at:%H:%M} UTC)" for incident in opened[:SHOWN_INCIDENTS]]
    lines.append(f"{await index.count()} passages indexed.")
    lines += [
        f"• {ingestion.source}: {ingestion.documents} documents, read {ingestion.finished_at:%Y-%m-%d %H:%M} UTC"
        + (f", last attempt failed: {ingestion.failure}" if ingestion.failure else "")
        for ingestion in ingestions
    ]
    await poster.post_once(f"status:{question.id}", question.place, Notice("\n".join(lines)))
