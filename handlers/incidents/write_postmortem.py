"""Announce the postmortem draft of a resolved incident in its thread. The draft is on the local page."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from core.incidents.postmortem import draft_postmortem, worth_a_postmortem
from core.model.incident import Stage
from core.model.messages import Notice
from core.ports import Store
from handlers.incidents.stored_incident import stored_incident
from handlers.questions.post_message import Poster


async def write_postmortem(incident_id: str, *, store: Store, poster: Poster, public_url: str = "") -> None:
    """Post a link to the draft, once. Does nothing unless the incident is resolved and was investigated.

    `public_url` is the address of the local page; without it, the message contains only the path.
    """
    async with store.transaction() as transaction:
        incident = await stored_incident(incident_id, transaction)
    if incident.message is None or incident.stage is not Stage.DONE or not worth_a_postmortem(incident):
        return
    draft = draft_postmortem(incident)
    address = f"{public_url.rstrip('/')}/incidents/{quote(incident.id, safe='')}/postmortem"
    thread = replace(incident.message.place, thread=incident.message.message_id)
    text = f"A draft of the postmortem, with {len(draft.sources)} pieces of evidence, is on the local page: {address}"
    await poster.post_once(f"postmortem:{incident.id}", thread, Notice(text))
