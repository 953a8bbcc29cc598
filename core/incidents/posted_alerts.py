"""Alerts that other bots post in a channel: the incident that they belong to, and what people are told about them.

An alert that arrives twice, as a webhook and in a channel or from two bots, is one incident, in the thread of the bot's
message. What a webhook says counts for more than what was read in a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from core.incidents.folding import fold
from core.model.alert import Adoption, AlertDelivery, Posted, PostedKind, Recognised
from core.model.incident import Incident, IncidentState
from core.model.messages import ButtonAction, Notice
from core.model.text import WORD, counted, name_key

CHAT = "chat:"  # the beginning of the source of what a bot posted
AWAITED = timedelta(seconds=20)  # for which a webhook's message waits for that of the bot in an adopted channel
VOLATILE = frozenset({"severity", "priority", "level", "status", "state", "value"})
MIN_NAME = 6  # characters of a name that is alerts_of within another

CHANNEL = "channel"  # the subject of the buttons about all senders

READ = "I read the last {count}.\n• Alerts: {alerts}{others}\n{ask}"
ASK = (
    "May I answer alerts in their own threads, with owner, cause and next step? One answer is in the thread, as an "
    "example. I keep nothing of other messages, and after this one I write only in threads."
)
UNSURE = "Is this an alert? I can’t tell. Your choice holds for all messages of {sender} like this one; “adopt reset” undoes it."
SAME = "This belongs to an incident that I already follow{where}.{again}"


def is_of_bot(incident: Incident) -> bool:
    return incident.source.startswith(CHAT)


def is_same(incident: Incident, other: Incident) -> bool:
    """Return whether two open incidents of different senders tell of one alert, which a bot posted in the channel of both.

    Their names are equal, and no label of both, nor their services, say otherwise.
    """
    is_posted = is_of_bot(incident) or is_of_bot(other)
    if not is_posted or incident.source == other.source or other.state is not IncidentState.OPEN:
        return False
    is_here = not _channels(incident).isdisjoint(_channels(other))
    is_named = bool(_urls(incident) & _urls(other)) or any(
        _names_the_same(one, another) for one in _names(incident) for another in _names(other)
    )
    return is_here and is_named and _fits(incident, other)


def twin_of(incident: Incident, others: Iterable[Incident]) -> Incident | None:
    """Return the latest open incident that tells of the same alert; None if there is none."""
    return max((each for each in others if is_same(incident, each)), key=lambda each: each.opened_at, default=None)


def joined(twin: Incident, delivery: AlertDelivery, opened: Incident) -> Incident:
    """Return an incident with what its other sender tells. `opened` is what the delivery alone would open.

    A webhook takes over the incident of a bot's message; the thread of a bot's message becomes that of a webhook's
    incident without a message.
    """
    if is_of_bot(twin) and not is_of_bot(opened):
        taken = replace(
            twin,
            source=opened.source,
            group_key=opened.group_key,
            title=opened.title,
            service=opened.service or twin.service,
            labels=twin.labels | opened.labels,
            alerts=(),
            also_firing=(),
            alert_count=0,
            unseen_count=0,
        )
        return fold(taken, delivery)
    placement = twin.placement
    if delivery.at is None or placement.message is not None or placement.place.thread is not None:
        return twin
    others = tuple(each for each in placement.also_in if each.channel != delivery.at.channel)
    return replace(
        twin, placement=replace(placement, place=delivery.at, also_in=others), updated_at=delivery.received_at
    )


def _names_the_same(one: str, other: str) -> bool:
    """Return whether two names are equal, or one contains the other, as a title does that goes on with labels."""
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= MIN_NAME and f" {shorter} " in f" {longer} ")


def _channels(incident: Incident) -> set[tuple[str, str]]:
    return {(place.platform, place.channel) for place in incident.placement.places}


def _names(incident: Incident) -> set[str]:
    names = {incident.title, *(text for alert in incident.alerts for text in (alert.name, alert.summary))} - {""}
    return {" ".join(WORD.findall(text.lower().replace("_", " "))) for text in names}


def _urls(incident: Incident) -> set[str]:
    return {alert.url for alert in incident.alerts if alert.url and any(map(str.isdigit, alert.url))}


def _fits(incident: Incident, other: Incident) -> bool:
    if incident.service and other.service and name_key(incident.service) != name_key(other.service):
        return False
    return any(
        all(one.get(name, value) == value for name, value in theirs.items() if name not in VOLATILE)
        for one in _labels(incident)
        for theirs in _labels(other)
    )


def _labels(incident: Incident) -> list[Mapping[str, str]]:
    return [alert.labels for alert in incident.alerts] or [incident.labels]


def awaits_bot(incident: Incident) -> bool:
    """Return whether a webhook's incident in an adopted channel waits for the message of the bot there."""
    return not (incident.placement.message or incident.placement.place.thread or is_of_bot(incident))


def addressed(posted: Posted, recognised: Recognised, incident: Incident | None, key: str) -> AlertDelivery:
    """Return the delivery of a message for the group `key` of its channel, or for the `incident` of its thread.

    A message is one alert, whatever its group counts. A reply tells of the state alone.
    """
    (alert,), thread = recognised.delivery.alerts, replace(posted.place, thread=posted.root)
    group = incident.group_key if incident is not None else key
    if incident is not None and incident.alerts:
        first = incident.alerts[0]
        if posted.place.thread is not None:
            state = {name: getattr(alert, name) for name in ("status", "ends_at", "end", "acknowledged", "as_of")}
            alert = replace(first, **state)
        alert = replace(alert, fingerprint=first.fingerprint)
    else:
        alert = replace(alert, fingerprint=group)
    return replace(recognised.delivery, group_key=group, alerts=(alert,), at=thread)


def offer(count: int, recognised: Sequence[tuple[Posted, Recognised]]) -> Notice | None:
    """Return what the first message in a channel says about its latest `count` messages; None if none was an alert."""
    alerts_of = Counter(_sender(posted) for posted, each in recognised if each.kind is PostedKind.ALERT)
    if not alerts_of:
        return None
    others = Counter(_sender(posted) for posted, each in recognised if each.kind is not PostedKind.ALERT)
    named = ", ".join(f"{sender} {number}" for sender, number in alerts_of.most_common())
    left = f"\n• Left alone: {counted(others.total(), 'message')} of {', '.join(others)}" if others else ""
    return Notice(
        READ.format(count=counted(count, "message"), alerts=named, others=left, ask=ASK),
        choices=((ButtonAction.ADOPT, CHANNEL), (ButtonAction.ADOPT_NOTHING, CHANNEL)),
    )


def question(posted: Posted, recognised: Recognised) -> Notice:
    """Return the question of whether a message, and others of its sender and shape, is an alert."""
    return Notice(
        UNSURE.format(sender=_sender(posted)),
        choices=tuple((each, recognised.shape) for each in (ButtonAction.IS_ALERT, ButtonAction.IS_NO_ALERT)),
    )


def same_notice(url: str, count: int) -> Notice:
    """Return the line in the thread of the first of `count` messages that tell of an incident in another thread."""
    again = f" It was posted {counted(count - 1, 'more time')} since." if count > 1 else ""
    return Notice(SAME.format(where="" if url else " in another thread", again=again), links=(url,) if url else ())


def format_adoption(adoption: Adoption) -> list[str]:
    """Return the choices of a channel as lines of text."""
    if adoption.is_on is None and not adoption.choices:
        return []
    state = "I answer them in their threads" if adoption.is_on else "I leave them alone"
    chosen = [f"• {choice.name}: {'alerts' if choice.is_alert else 'no alerts'}" for choice in adoption.choices]
    return [f"• Alerts of other bots: {state}. Say “adopt on”, “adopt off”, or “adopt reset”.", *chosen]


def _sender(posted: Posted) -> str:
    return posted.sender_name or posted.sender
