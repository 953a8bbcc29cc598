"""Mute an alert for a while, from the thread of its incident: nothing of it is posted, and the end is told there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from core.incidents.incident_questions import MaintenanceWish, read_mute
from core.model.conversation import PUBLIC, Question
from core.model.errors import MessageNotFound, Undeliverable
from core.model.messages import Notice
from core.model.silences import ALERT_GROUP, MUTE, Matcher, Silence
from core.ports import Clock, Store
from handlers.common.ports import Ports
from handlers.common.stored_incident import incident_of_thread

TOLD_WITHIN = timedelta(minutes=30)  # after the end of a mute; after a longer outage, it is no news

OUTSIDERS = (
    "People from outside the workspace can read this channel. You can mute alerts only in the workspace’s own channels."
)
NO_INCIDENT = "I can mute an alert only in the thread of its incident."
MUTED = "Muted: I post nothing new about this alert until {until:%Y-%m-%d %H:%M} UTC. To end it: unmute"
NOT_MUTED = "This alert is not muted."
OVER = "The mute of this alert is over. If it still fires, I post about it again."


async def mute_alert(question: Question, ports: Ports) -> None:
    """Mute the alert of the thread's incident, or end its mutes. Only for members of the workspace."""
    wish = read_mute(question.text) or MaintenanceWish()
    now = ports.clock.now()
    times: tuple[datetime, ...] = ()
    begins, intent = min(question.asked_at, now), f"mute:{question.id}"  # the step may run late or twice
    async with ports.store.transaction() as transaction:
        incident = await incident_of_thread(question.place, transaction)
        if PUBLIC not in question.audience.readers:
            text = OUTSIDERS
        elif incident is None:
            text = NO_INCIDENT
        elif wish.length is not None:
            names = {"source": incident.source, ALERT_GROUP: incident.group_key}
            mute = Silence(
                id=question.id,
                matchers=tuple(Matcher(name, frozenset({value})) for name, value in names.items()),
                starts_at=begins,
                ends_at=begins + wish.length,
                by=MUTE,
                reason=wish.reason,
                author=question.asker.name_or_id,
                readers=question.audience.disclosed_to,
                title=incident.title,
                place=question.place,
            )
            await transaction.silences.save(mute)
            text, times = MUTED.format(until=mute.ends_at), (mute.ends_at,)
        else:
            group = Matcher(ALERT_GROUP, frozenset({incident.group_key}))
            mutes = [each for each in await transaction.silences.not_over(begins) if group in each.matchers]
            for each in mutes:
                await transaction.silences.save(replace(each, ends_at=min(each.ends_at, now), place=None))
            text = OVER if mutes else NOT_MUTED
    await ports.poster.post_once(intent, question.place, Notice(text, times=times))


async def tell_ended_mutes(ports: Ports) -> None:
    """Tell in its thread that a mute is over, once."""
    for mute in await ended_mutes(ports.store, ports.clock):
        if mute.place is not None:
            with suppress(Undeliverable, MessageNotFound):
                await ports.poster.post_once(f"unmuted:{mute.id}", mute.place, Notice(OVER))


async def ended_mutes(store: Store, clock: Clock) -> list[Silence]:
    """Return the mutes that ended a short time ago, and whose end is told in a thread."""
    now = clock.now()
    async with store.transaction() as transaction:
        silences = await transaction.silences.not_over(now - TOLD_WITHIN)
    return [each for each in silences if each.place is not None and each.ends_at <= now]
