"""Adopt the alerts that other bots post in a channel.

Nothing of a message is stored unless it is adopted. A reply or an edit counts only if its sender began the thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from pydantic import TypeAdapter

from core.incidents.folding import reopens
from core.incidents.posted_alerts import AWAITED, addressed, awaits_bot, same_notice
from core.model.alert import NO_ADOPTION, Adoption, AlertDelivery, Posted, PostedKind, Recognised
from core.model.conversation import Place
from core.model.errors import ChatBusy
from core.model.incident import Incident, IncidentState, Stage
from core.ports import Store, Task, Transaction
from handlers.common.ports import AdoptionPorts, Ports
from handlers.common.stored_incident import stored_incident
from handlers.incidents.open_incident import ask_to_update

BETWEEN = AWAITED / 4  # two looks at a channel, while a webhook's incident waits for the same message of a bot
ASK, LINK = "ask_about_posted", "link_posted"  # workflows
PLACE = TypeAdapter(Place)

Accept = Callable[[AlertDelivery], Awaitable[Incident | None]]


async def take_posted(posted: Posted, *, adoption: AdoptionPorts, accept: Accept, store: Store) -> None:
    """Open or update the incident of a message, or ask about it once; ignore it if it is not to be adopted."""
    channel, thread = replace(posted.place, thread=None), replace(posted.place, thread=posted.root)
    async with store.transaction() as transaction:
        chosen = await adoption_of(channel, adoption, transaction)
        if not chosen.reads:
            return
        recognised = adoption.recognise(posted)
        begun = await _begun_by_sender(posted, thread, recognised, transaction)
        kind = chosen.kind_of(posted.sender, recognised)
        if posted.place.thread is not None and begun is None:
            return
        if begun is None and kind is not PostedKind.ALERT:
            if kind is PostedKind.UNSURE and not posted.revision:
                payload = {"place": PLACE.dump_python(thread, mode="json")}
                await transaction.tasks.add(
                    Task(f"{ASK}:{posted.place.channel}:{recognised.shape}", ASK, recognised.shape, payload)
                )
            return
        key = await _group_of(posted, recognised, transaction)
    incident = await accept(addressed(posted, recognised, begun, key))
    if incident is not None and begun is None and recognised.delivery.fires and not posted.revision:
        await _link(posted, thread, incident, store)


async def adoption_of(place: Place, adoption: AdoptionPorts, transaction: Transaction) -> Adoption:
    """Return the choices of a place's channel: those of people, over those of plumbline.yaml."""
    chosen = (await transaction.channel_settings.get(place)).adoption
    return chosen.over(adoption.configured.get(Place(place.platform, place.channel), NO_ADOPTION))


async def _begun_by_sender(
    posted: Posted, thread: Place, recognised: Recognised, transaction: Transaction
) -> Incident | None:
    """Return the incident of the thread that a reply or an edit of its first message belongs to."""
    if posted.place.thread is None and not posted.revision:
        return None
    incident = await transaction.incidents.in_thread(thread)
    return incident if incident is not None and incident.source == recognised.delivery.source else None


async def _group_of(posted: Posted, recognised: Recognised, transaction: Transaction) -> str:
    """Return the first of the keys of a message whose incident is open, or may be reopened; else the most specific."""
    keys = [f"{posted.place.channel} {key}" for key in recognised.keys]
    for key in keys:
        latest = await transaction.incidents.latest_for(recognised.delivery.source, key)
        if latest is not None and (latest.state is IncidentState.OPEN or reopens(latest, recognised.delivery)):
            return key
    return keys[0]


async def _link(posted: Posted, thread: Place, incident: Incident, store: Store) -> None:
    """Ask for a link in the message's thread, if its incident is in another one and does not flap.

    There is one for an incident, in the thread of its first further message, and it counts the others.
    """
    if incident.placement.place == thread or incident.flapping:
        return
    intent, payload = f"{LINK}:{incident.id}", {"place": PLACE.dump_python(thread, mode="json")}
    async with store.transaction() as transaction:
        await ask_to_update(intent, thread, Task(intent, LINK, incident.id, payload), transaction, posted.at)


async def link_posted(incident_id: str, place: Place, ports: Ports) -> None:
    """Say in the thread of a message that its incident is in another one, or count a further message there."""
    intent = f"{LINK}:{incident_id}"
    async with ports.store.transaction() as transaction:
        incident, count = (
            await stored_incident(incident_id, transaction),
            await transaction.posts.pending_updates(intent),
        )
    message = incident.placement.message
    if message is None and incident.stage is not Stage.DONE:
        raise ChatBusy(f"Incident {incident_id} has no message yet.", 1.0)
    if incident.placement.thread != place:
        url = await ports.poster.link(message) if message and message.place.channel == place.channel else ""
        await ports.poster.post_or_edit(intent, place, same_notice(url, count), str(count))
    async with ports.store.transaction() as transaction:
        if not await transaction.posts.mark_current(intent, count):
            raise ChatBusy(f"Incident {incident_id} was posted again.", 1.0)


async def may_be_posted_too(incident: Incident, ports: Ports, transaction: Transaction) -> bool:
    """Return whether a bot may post the same as a webhook's incident, in a channel whose alerts are adopted."""
    return awaits_bot(incident) and (await adoption_of(incident.placement.place, ports.adoption, transaction)).reads


async def seconds_to_wait(incident: Incident, ports: Ports) -> float:
    """Look for a message of a bot that is the same as a webhook's incident. Returns the seconds until the next look; 0.0 if
    that was the last one, however long the bot was off.
    """
    place, now, end = incident.placement.place, ports.clock.now(), incident.opened_at + AWAITED
    with suppress(TimeoutError):  # a channel that cannot be read in time keeps no alert back
        if (reader := ports.adoption.channels.get(place.platform)) is not None and await asyncio.wait_for(
            reader.look(place, end if now >= end else now - BETWEEN / 2), BETWEEN.total_seconds()
        ):
            return 1.0  # in which what the look brought is taken
    return max(0.0, min(end - now, BETWEEN).total_seconds())
