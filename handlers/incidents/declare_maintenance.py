"""The `maintenance` command: declare, end or list windows in which a service's incidents are not posted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from core.incidents.command import MaintenanceWish, read_maintenance
from core.model.conversation import PUBLIC, Audience, Question
from core.model.messages import Notice
from core.model.naming import name_key, spellings
from core.model.silences import Maintenance, Matcher, Silence
from core.ports import Store
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
        text = await _listed(question.audience, ports.company.maintenance, ports.store, ports.clock.now())
    elif wish.service not in ports.company.services:
        services, more = sorted(ports.company.services), len(ports.company.services) - MAX_KNOWN
        named = ", ".join(services[:MAX_KNOWN]) + (f" and {more} more" if more > 0 else "")
        text = UNKNOWN.format(service=wish.service, known=named or "none")
    elif wish.length is None:
        text = await _ended(wish.service, question, ports.store, ports.clock.now())
    else:
        text = await _declared(wish, wish.length, question, ports.store, ports.clock.now())
    await ports.poster.post_once(f"maintenance:{question.id}", question.place, Notice(text))


async def _declared(wish: MaintenanceWish, length: timedelta, question: Question, store: Store, now: datetime) -> str:
    begins = min(question.asked_at, now)  # the step may run late or twice

    window = Silence(
        id=question.id,
        matchers=(Matcher("service", frozenset({wish.service})),),
        starts_at=begins,
        ends_at=begins + length,
        reason=wish.reason,
        author=question.asker.name_or_id,
        readers=question.audience.disclosed_to,
    )
    async with store.transaction() as transaction:
        await transaction.silences.save(window)
    return f"I post nothing about {wish.service} until {_until(window)}. To end it: maintenance end {wish.service}"


async def _ended(service: str, question: Question, store: Store, now: datetime) -> str:
    matcher = Matcher("service", frozenset({service}))
    since = min(question.asked_at, now) - CLOCK_SKEW  # so that a repeated step finds the windows that it ended
    async with store.transaction() as transaction:
        windows = [
            each
            for each in await transaction.silences.not_over(since)
            if each.matchers == (matcher,) and question.audience.may_read(each.readers)
        ]
        for window in windows:
            await transaction.silences.save(replace(window, ends_at=min(window.ends_at, now)))
    if not windows:
        return NONE_OPEN.format(service=service)
    return f"Maintenance of {service} is over. Alerts that are still firing are posted within a minute."


async def _listed(audience: Audience, maintenance: Maintenance, store: Store, now: datetime) -> str:
    windows = await open_windows(audience, maintenance, store, now)
    return "\n".join([f"• {line}" for line in windows]) or NO_WINDOWS


async def open_windows(audience: Audience, maintenance: Maintenance, store: Store, now: datetime) -> Sequence[str]:
    """Return one line for each open maintenance window that this audience may read."""
    async with store.transaction() as transaction:
        declared = await transaction.silences.not_over(now)
    windows = [each for each in (*maintenance.at(now), *declared) if each.starts_at <= now < each.ends_at]
    return [_format_window(window) for window in windows if audience.may_read(window.readers)]


def _format_window(window: Silence) -> str:
    by = f", declared by {window.author}" if window.author else ""
    reason = f": {window.reason}" if window.reason else ""
    return f"{window.description}, until {_until(window)}{by}{reason}"


def _until(window: Silence) -> str:
    return f"{window.ends_at:%Y-%m-%d %H:%M} UTC"
