"""The `status` and `incidents` commands: show open incidents, and the freshness of the knowledge, limited to what the
audience may read.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.incidents.incident_view import format_owner
from core.incidents.readable import NONE_OPEN, visible
from core.model.conversation import PUBLIC, Audience, Question
from core.model.incident import Incident
from core.model.layout import counted
from core.model.messages import Notice
from core.ports import Ingestion
from handlers.common.ports import Ports
from handlers.incidents.declare_maintenance import open_windows

SHOWN_INCIDENTS = 5
LOOKED_AT = 1_000  # latest open incidents that are counted
WHICH_SERVICE = (
    "Which service is it? Say “rca SERVICE is slow” or paste the error after “rca”, and I look for the cause."
)


async def show_status(question: Question, ports: Ports) -> None:
    """Post the status.

    Incidents of other private channels are neither named nor counted, and sources are shown only to workspace members.
    Silenced incidents are listed. The reason why a source cannot be read is not shown, because it may name confidential
    things.
    """
    lines = await open_incidents(question.audience, ports)
    if PUBLIC in question.audience.readers:
        async with ports.store.transaction() as transaction:
            ingestions = await transaction.ingestions.all()
        lines += [
            f"{counted(await ports.knowledge.index.count(), 'passage')} indexed.",
            *map(format_source, ingestions),
        ]
    await ports.poster.post_once(f"status:{question.id}", question.place, Notice("\n".join(lines)))


async def show_incidents(question: Question, ports: Ports) -> None:
    """Post the open incidents. Whoever says that something is wrong is asked for the service."""
    lines = await open_incidents(question.audience, ports)
    prompt = [WHICH_SERVICE] if question.text else []
    await ports.poster.post_once(f"incidents:{question.id}", question.place, Notice("\n".join([*lines, *prompt])))


async def open_incidents(audience: Audience, ports: Ports) -> list[str]:
    """Return a line on how many incidents are open, one for each of the latest, and one for each maintenance window."""
    async with ports.store.transaction() as transaction:
        latest = await transaction.incidents.latest_open(LOOKED_AT)
    opened = visible(latest, audience, ports.chats.channels)
    windows = await open_windows(audience, ports.company.maintenance, ports.store, ports.clock.now())
    return [*format_incidents(opened), *(f"Maintenance: {window}" for window in windows)]


def format_incidents(opened: Sequence[Incident]) -> list[str]:
    """Return a line on how many incidents are open, and one for each of the first."""
    lines = [f"{counted(len(opened), 'open incident')}:" if opened else NONE_OPEN]
    lines += [f"• {incident.title} ({_format_state(incident)})" for incident in opened[:SHOWN_INCIDENTS]]
    return [*lines, f"• and {len(opened) - SHOWN_INCIDENTS} more"] if len(opened) > SHOWN_INCIDENTS else lines


def _format_state(incident: Incident) -> str:
    since = f"since {incident.started_at:%Y-%m-%d %H:%M} UTC"
    owner = incident.taken_by or format_owner(incident)
    silenced = f"silenced by {incident.silenced.silenced_by}" if incident.silenced is not None else ""
    part = "part of another incident" if incident.absorbed is not None else ""
    return ", ".join(filter(None, (since, owner, silenced, part, "flapping" if incident.flapping else "")))


def format_source(ingestion: Ingestion) -> str:
    """Return how many documents of a source are indexed, and when it was last read."""
    if ingestion.finished_at is None:
        return f"• {ingestion.source}: first import, {counted(ingestion.documents, 'document')} so far"
    failed = ", could not be read since" if ingestion.failure else ""
    left_out = f", {len(ingestion.left_out)} left out" if ingestion.left_out else ""
    read = f"read {ingestion.finished_at:%Y-%m-%d %H:%M} UTC"
    return f"• {ingestion.source}: {counted(ingestion.documents, 'document')}{left_out}, {read}{failed}"
