"""The `maintenance` command: declare, end or list windows in which a service's incidents are not posted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from core.incidents.command import MaintenanceWish, read_maintenance
from core.model.conversation import PUBLIC, Audience, Question, current_readers
from core.model.messages import Notice
from core.model.naming import name_key, spellings
from core.model.silences import Matcher, Silence
from handlers.common.ports import Ports

OUTSIDERS = "People from outside the workspace can read this channel. You can set maintenance only in the workspace’s own channels."
UNKNOWN = "I don’t know a service called {service}. Known services: {known}."
NONE_OPEN = "{service} has no open maintenance window."
NO_WINDOWS = "No maintenance window is open."
CLOCK_SKEW = timedelta(minutes=1)  # by which a chat's clock may differ from ours
MAX_KNOWN = 20  # services listed after an unknown name


async def declare_maintenance(question: Question, ports: Ports) -> None:
    """Declare, end or list maintenance windows. Only for members of the workspace, and for known services."""
    wish = read_maintenance(question.text) or MaintenanceWish()
    wish = replace(wish, service=spellings(ports.company.services).get(name_key(wish.service), wish.service))
    if PUBLIC not in question.audience.readers:
        text = OUTSIDERS
    elif not wish.service:
        text = await _listed(question.audience, ports)
    elif wish.service not in ports.company.services:
        services, more = sorted(ports.company.services), len(ports.company.services) - MAX_KNOWN
        named = ", ".join(services[:MAX_KNOWN]) + (f" and {more} more" if more > 0 else "")
        text = UNKNOWN.format(service=wish.service, known=named or "none")
    elif wish.length is None:
        text = await _ended(wish.service, question, ports)
    else:
        text = await _declared(wish, wish.length, question, ports)
    await ports.poster.post_once(f"maintenance:{question.id}", question.place, Notice(text))


async def _declared(wish: MaintenanceWish, length: timedelta, question: Question, ports: Ports) -> str:
    begins = min(question.asked_at, ports.clock.now())  # the step may run late or twice

    window = Silence(
        id=question.id,
        matchers=(Matcher("service", frozenset({wish.service})),),
        starts_at=begins,
        ends_at=begins + length,
        reason=wish.reason,
        author=question.asker.name_or_id,
        readers=question.audience.disclosed_to,
    )
    async with ports.store.transaction() as transaction:
        await transaction.silences.save(window)
    return f"I post nothing about {wish.service} until {_until(window)}. To end it: maintenance end {wish.service}"


async def _ended(service: str, question: Question, ports: Ports) -> str:
    matcher, now = Matcher("service", frozenset({service})), ports.clock.now()
    since = min(question.asked_at, now) - CLOCK_SKEW  # so that a repeated step finds the windows that it ended
    async with ports.store.transaction() as transaction:
        of_service = [each for each in await transaction.silences.not_over(since) if each.matchers == (matcher,)]
    windows = await _readable(of_service, question.audience, ports)
    async with ports.store.transaction() as transaction:
        for window in windows:
            await transaction.silences.save(replace(window, ends_at=min(window.ends_at, now)))
    if not windows:
        return NONE_OPEN.format(service=service)
    return f"Maintenance of {service} is over. Alerts that are still firing are posted within a minute."


async def _listed(audience: Audience, ports: Ports) -> str:
    return "\n".join([f"• {line}" for line in await open_windows(audience, ports)]) or NO_WINDOWS


async def open_windows(audience: Audience, ports: Ports) -> Sequence[str]:
    """Return one line for each open maintenance window that this audience may read."""
    now = ports.clock.now()
    async with ports.store.transaction() as transaction:
        declared = await transaction.silences.not_over(now)
    windows = [each for each in (*ports.company.maintenance.at(now), *declared) if each.starts_at <= now < each.ends_at]
    return [_format_window(window) for window in await _readable(windows, audience, ports)]


async def _readable(windows: Sequence[Silence], audience: Audience, ports: Ports) -> list[Silence]:
    channels = await ports.chats.channels_named(reader for window in windows for reader in window.readers)
    return [window for window in windows if audience.may_read(current_readers(window.readers, channels))]


def _format_window(window: Silence) -> str:
    by = f", declared by {window.author}" if window.author else ""
    reason = f": {window.reason}" if window.reason else ""
    return f"{window.description}, until {_until(window)}{by}{reason}"


def _until(window: Silence) -> str:
    return f"{window.ends_at:%Y-%m-%d %H:%M} UTC"
