"""Ask people which messages of other bots are alerts: of a channel after an invitation, and of one that is unclear.

What they choose is a setting of the channel. The offer is the only message outside a thread.
"""

from __future__ import annotations

from dataclasses import replace

from core.incidents.folding import open_from
from core.incidents.posted_alerts import offer, question
from core.model.alert import AlertDelivery, AlertEnd, AlertStatus, Choice, EndReason, PostedKind
from core.model.conversation import PUBLIC, Place
from core.model.incident import IncidentState, Stage
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, IncidentMessage, Notice, NoticeKind
from core.rca.observations import QUESTION
from handlers.common.ports import Ports
from handlers.common.stored_incident import find_incident
from handlers.incidents.adopt_alerts import ASK, adoption_of, take_posted
from handlers.incidents.investigate_incident import explain, triage

OFFER = "offer_adoption"  # the workflow
RECENT = 100  # messages that are read after an invitation

CHOSEN = "{person} chose: {choice}. “settings” lists it, “adopt reset” undoes it."
CHOICES = {
    ButtonAction.ADOPT: "I answer these alerts in their threads",
    ButtonAction.ADOPT_NOTHING: "I leave these alone",
    ButtonAction.IS_ALERT: "messages like this are alerts",
    ButtonAction.IS_NO_ALERT: "messages like this are no alerts",
}


async def ask_about_posted(shape: str, place: Place, ports: Ports) -> None:
    """Ask in the thread of a message whether it is an alert, once for its sender and shape."""
    posted = await ports.adoption.channels[place.platform].first(place)
    if posted is not None:
        notice = question(posted, ports.adoption.recognise(posted))
        await ports.poster.post_once(f"{ASK}:{place.channel}:{shape}", place, notice)


async def offer_adoption(key: str, place: Place, ports: Ports) -> bool:
    """Tell what would be adopted in the channel, once for this key, with an example.

    Returns False if none of its messages is an alert, or people chose before.
    """
    async with ports.store.transaction() as transaction:
        chosen = await adoption_of(place, ports.adoption, transaction)
    if chosen.is_on is not None or place.platform not in ports.adoption.channels:
        return False
    count, latest = await ports.adoption.channels[place.platform].recent(replace(place, thread=None), RECENT)
    recognised = [(each, ports.adoption.recognise(each)) for each in latest]
    notice = offer(count, recognised)
    if notice is None:
        return False
    reference = await ports.poster.post_once(f"{OFFER}:{place.platform}:{key}", place, notice)
    firing = next((it.delivery for _, it in recognised if it.kind is PostedKind.ALERT and it.delivery.fires), None)
    if firing is None:
        return True
    audience = await ports.chats.audience_at(place)
    incident = open_from(firing, f"{OFFER}:{key}", reference.thread)
    for investigate in (triage, explain):
        incident = await investigate(incident, audience, ports)
    example = IncidentMessage(replace(incident, stage=Stage.DONE, source=QUESTION))
    await ports.poster.post_once(f"{OFFER}-example:{place.platform}:{key}", reference.thread, example)
    return True


async def choose_adoption(feedback: Feedback, ports: Ports) -> None:
    """Remember a choice about the channel or a shape, and say so where it was asked."""
    place, verdict = replace(feedback.place, thread=None), feedback.verdict
    if PUBLIC not in feedback.audience.readers or place.platform not in ports.adoption.channels:
        return  # people from outside may not choose, and nothing is adopted where nothing is read
    is_yes = verdict in (ButtonAction.ADOPT, ButtonAction.IS_ALERT)
    posted = choice = None
    if verdict in (ButtonAction.IS_ALERT, ButtonAction.IS_NO_ALERT):
        posted = await ports.adoption.channels[place.platform].first(feedback.place)
        if posted is None:
            return  # the message is gone
        recognised = ports.adoption.recognise(posted)
        choice = Choice(recognised.shape, f"{posted.sender_name or posted.sender}, “{recognised.title}”", is_yes)
    async with ports.store.transaction() as transaction:
        settings = await transaction.channel_settings.get(place)
        adoption = settings.adoption.choosing(choice) if choice else replace(settings.adoption, is_on=is_yes)
        await transaction.channel_settings.save(place, replace(settings, adoption=adoption))
    text = CHOSEN.format(person=feedback.person.name or "Somebody", choice=CHOICES[verdict])
    await ports.poster.post_once(f"adoption:{feedback.id}", feedback.place, Notice(text, NoticeKind.THANKS))
    if verdict is ButtonAction.IS_ALERT and posted is not None:
        await take_posted(posted, adoption=ports.adoption, accept=ports.adoption.accept, store=ports.store)
    elif verdict is ButtonAction.IS_NO_ALERT:
        await _end(feedback, ports)


async def _end(feedback: Feedback, ports: Ports) -> None:
    """End the incident that a person says is none."""
    incident = await find_incident(feedback.subject, ports.store)
    if incident is None or incident.state is not IncidentState.OPEN:
        return
    end = AlertEnd(EndReason.CANCELED, "not an alert")
    alerts = tuple(replace(each, status=AlertStatus.RESOLVED, end=end, as_of=None) for each in incident.alerts)
    ended = (f"{incident.source}:{feedback.id}", incident.source, incident.group_key, alerts, ports.clock.now())
    await ports.adoption.accept(AlertDelivery(*ended, one_event=True))
