"""`plumbline postmortem`: print the draft of an incident's postmortem as Markdown."""

from __future__ import annotations

import sys

from bot.commands.dead_letters import open_store
from bot.config.settings import Settings
from core.incidents.postmortem import as_markdown, draft_postmortem
from core.model.errors import PlumblineError

NO_SUCH = "There is no incident {id}: its message and the local page name its id."


async def run_postmortem(settings: Settings, incident_id: str) -> int:
    """Print the draft to standard output. Raises PlumblineError for an unknown incident."""
    async with open_store(settings) as store, store.transaction() as transaction:
        incident = await transaction.incidents.get(incident_id)
    if incident is None:
        raise PlumblineError(NO_SUCH.format(id=incident_id))
    sys.stdout.write(as_markdown(draft_postmortem(incident)))
    return 0
