"""An operator has a message that the chat did not take tried again: the channel is there now, or the bot may post."""

from __future__ import annotations

from datetime import datetime

from core.model.audit import PLUMBLINE, Act, audit_entry
from core.model.errors import MessageNotFound, Withdrawn
from core.model.messages import IncidentDetails, IncidentMessage
from core.ports import DeadLetter, Store, Task, Transaction
from handlers.incidents.end_quiet_hours import PRESENT_HELD
from handlers.questions.post_message import Poster

REDELIVER = "redeliver"
OF_INCIDENTS = ("incident:", "details:")  # how the intents of what is shown of stored incidents begin


async def redeliver(intent: str, *, store: Store, poster: Poster) -> None:
    """Post it as it was kept; of an incident, have what is known by now shown, if it still is.

    What is not taken again is a dead letter again, and so is what meets a chat that is down or a process that stops: then
    the step is run again, and finds it.
    """
    async with store.transaction() as transaction:
        letter = await transaction.dead_letters.get(intent)
        if letter is None:
            return
        message = letter.message
        if isinstance(message, IncidentMessage | IncidentDetails) and letter.intent.startswith(OF_INCIDENTS):
            await _show_anew(letter, message.incident.id, transaction)
            return
    try:
        # It may have been an edit that was not taken.
        version = f"again:{letter.at.isoformat()}"
        await poster.post_or_edit(intent, letter.place, letter.message, version, again=True)
    except (Withdrawn, MessageNotFound):  # whoever deleted what it belongs to wants it no more
        await _remove(intent, store)
        raise
    await _remove(intent, store)  # not before it stands there: a process that is killed must leave one or the other


async def _show_anew(letter: DeadLetter, incident_id: str, transaction: Transaction) -> None:
    """Its message is posted whenever it changes, unless there is a letter: a task to show it takes the letter's place.

    Of an incident that was deleted meanwhile nothing is known any more, and nobody is to be told of it.
    """
    await transaction.dead_letters.remove(letter.intent)
    if await transaction.incidents.get(incident_id) is not None:
        key = f"show-again:{letter.intent}:{letter.at.isoformat()}"
        await transaction.tasks.add(Task(key, PRESENT_HELD, incident_id, {}))


async def _remove(intent: str, store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.dead_letters.remove(intent)


async def drop_dead_letter(intent: str, at: datetime, *, store: Store) -> bool:
    """Give a dead letter up: an operator wants it posted no more. False if there is none of this intent.

    Whatever says something new under this intent, as an incident that changes does, is posted as usual.
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
    """Have a dead letter tried again, once however often it is asked for; False if there is none of this intent."""
    async with store.transaction() as transaction:
        letter = await transaction.dead_letters.get(intent)
        if letter is not None:
            await transaction.tasks.add(_task(letter))
    return letter is not None


def _task(letter: DeadLetter) -> Task:
    return Task(f"{REDELIVER}:{letter.intent}:{letter.at.isoformat()}", REDELIVER, letter.intent, {})
