"""Retry or drop messages that the chat refused, at an operator's request."""

from __future__ import annotations

from datetime import datetime

from core.model.audit import PLUMBLINE, Act, audit_entry
from core.model.errors import MessageNotFound, Withdrawn
from core.model.messages import IncidentDetails, IncidentMessage
from core.ports import Store, Task
from handlers.common.ports import Ports
from handlers.incidents.hold_incident import PRESENT_HELD

REDELIVER = "redeliver"
OF_INCIDENTS = ("incident:", "details:")  # intent prefixes of messages about stored incidents


async def redeliver(intent: str, ports: Ports) -> None:
    """Post a dead letter as stored; for an incident that still exists, show its current state instead.

    A message that is refused again becomes a dead letter again. If the chat is down or the process stops, the dead
    letter is kept, and the step runs again.
    """
    async with ports.store.transaction() as transaction:
        letter = await transaction.dead_letters.get(intent)
        if letter is None:
            return
        message = letter.message
        if isinstance(message, IncidentMessage | IncidentDetails) and letter.intent.startswith(OF_INCIDENTS):
            await transaction.dead_letters.remove(letter.intent)
            if await transaction.incidents.get(message.incident.id) is not None:  # else it was deleted
                key = f"show-again:{letter.intent}:{letter.at.isoformat()}"
                await transaction.tasks.add(Task(key, PRESENT_HELD, message.incident.id, {}))
            return
    try:
        # the refused request may have been an edit
        version = f"again:{letter.at.isoformat()}"
        await ports.poster.post_or_edit(intent, letter.place, letter.message, version, again=True)
    except (Withdrawn, MessageNotFound):  # the message or thread that it belongs to was deleted
        await remove_letter(intent, ports.store)
        raise


async def remove_letter(intent: str, store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.dead_letters.remove(intent)


async def drop_dead_letter(intent: str, at: datetime, *, store: Store) -> bool:
    """Drop a dead letter without posting it. Returns False if there is none for this intent.

    New content for the intent, such as a changed incident, is posted as usual.
    """
    async with store.transaction() as transaction:
        letter = await transaction.dead_letters.get(intent)
        if letter is not None:
            await transaction.dead_letters.remove(intent)
            key = f"dropped:{intent}:{letter.at.isoformat()}"
            dropped = audit_entry(key, at, Act.DROPPED, PLUMBLINE, intent, place=letter.place)
            await transaction.audit.add(dropped)
    return letter is not None


async def ask_to_redeliver(intent: str, *, store: Store) -> bool:
    """Queue the retry of a dead letter, once for any number of requests.

    Returns False if there is none for this intent.
    """
    async with store.transaction() as transaction:
        letter = await transaction.dead_letters.get(intent)
        if letter is not None:
            key = f"{REDELIVER}:{intent}:{letter.at.isoformat()}"
            await transaction.tasks.add(Task(key, REDELIVER, intent, {}))
    return letter is not None
