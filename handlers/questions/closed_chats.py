"""Post what waits for a chat that takes no messages, once somebody has mended the chat, without a command.

What is refused stays a dead letter until then, so that no work waits for it: an incident is investigated meanwhile, and
then shown as it is.
"""

from __future__ import annotations

import structlog

from core.incidents.handover import closed_chats
from core.model.conversation import Platform
from core.model.errors import MessageNotFound, PlumblineError, Withdrawn
from core.model.messages import IncidentDetails, IncidentMessage
from core.ports import DeadLetter, Store
from handlers.common.ports import Ports
from handlers.common.stored_incident import find_incident
from handlers.incidents.present_incident import present_details, update_chats
from handlers.questions.redeliver import OF_INCIDENTS, ask_to_redeliver, redeliver, remove_letter

log = structlog.get_logger()


async def find_closed_chats(store: Store) -> list[str]:
    """Return a sentence for each chat that takes no messages. Raises StoreUnavailable."""
    async with store.transaction() as transaction:
        return closed_chats(await transaction.dead_letters.waiting())


async def redeliver_waiting(ports: Ports) -> None:
    """Try the longest-waiting message of each channel that refused some, and queue the others once it is taken."""
    async with ports.store.transaction() as transaction:
        waiting = await transaction.dead_letters.waiting()
    by_channel: dict[tuple[Platform, str], list[DeadLetter]] = {}
    for letter in waiting:
        by_channel.setdefault((letter.place.platform, letter.place.channel), []).append(letter)
    for first, *others in by_channel.values():
        try:
            await _tried(first, ports)
        except (Withdrawn, MessageNotFound):
            await remove_letter(first.intent, ports.store)
        except PlumblineError as error:
            log.info("chat still takes no messages", place=first.place.channel, reason=str(error))
            continue
        for letter in others:
            await ask_to_redeliver(letter.intent, store=ports.store)


async def _tried(letter: DeadLetter, ports: Ports) -> None:
    """Post a waiting message, of an incident as it is now. Raises the error with which it is refused again."""
    if isinstance(letter.message, IncidentMessage | IncidentDetails) and letter.intent.startswith(OF_INCIDENTS):
        incident_id = letter.message.incident.id
        if await find_incident(incident_id, ports.store) is not None:
            await update_chats(incident_id, ports, is_step=False)
            await present_details(incident_id, ports)
        return await remove_letter(letter.intent, ports.store)
    return await redeliver(letter.intent, ports)
