"""The `status` command: show open incidents and the freshness of the knowledge, limited to what the audience may read."""

from __future__ import annotations

from core.incidents.incident_view import format_owner
from core.incidents.readable import visible
from core.model.conversation import PUBLIC, Question
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.ports import Ingestion
from handlers.incidents.declare_maintenance import open_windows
from handlers.ports import QuestionPorts

SHOWN_INCIDENTS = 5
LOOKED_AT = 50  # latest incidents searched for open ones


async def show_status(question: Question, ports: QuestionPorts) -> None:
    """Post the status.

    Incidents of other private channels are neither named nor counted, and sources are shown only to workspace members.
    Silenced incidents are listed. The reason why a source cannot be read is not shown, because it may name confidential
    things.
    """
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        ingestions = await transaction.ingestions.all()
    opened = [
        incident
        for incident in visible(recent, question.audience, ports.channels)
        if incident.state is IncidentState.OPEN
    ]
    lines = [f"{len(opened)} open incident{'' if len(opened) == 1 else 's'}."]
    lines += [f"• {incident.title} ({_format_state(incident)})" for incident in opened[:SHOWN_INCIDENTS]]
    windows = await open_windows(question.audience, ports.maintenance, ports.store, ports.clock.now())
    lines += [f"Maintenance: {window}" for window in windows]
    if PUBLIC in question.audience.readers:
        lines += [f"{await ports.index.count()} passages indexed.", *map(_freshness, ingestions)]
    await ports.poster.post_once(f"status:{question.id}", question.place, Notice("\n".join(lines)))


def _format_state(incident: Incident) -> str:
    since = f"since {incident.started_at:%Y-%m-%d %H:%M} UTC"
    owner = incident.taken_by or format_owner(incident)
    silenced = f"silenced by {incident.silenced.silenced_by}" if incident.silenced is not None else ""
    part = "part of another incident" if incident.absorbed is not None else ""
    return ", ".join(filter(None, (since, owner, silenced, part, "flapping" if incident.flapping else "")))


def _freshness(ingestion: Ingestion) -> str:
    if ingestion.finished_at is None:
        return f"• {ingestion.source}: first import, {ingestion.documents} documents so far"
    failed = ", could not be read since" if ingestion.failure else ""
    left_out = f", {len(ingestion.left_out)} left out" if ingestion.left_out else ""
    read = f"read {ingestion.finished_at:%Y-%m-%d %H:%M} UTC"
    return f"• {ingestion.source}: {ingestion.documents} documents{left_out}, {read}{failed}"
