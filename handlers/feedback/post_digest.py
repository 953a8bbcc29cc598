"""Post the digest of a period in a channel, of what everybody there may read, and of nothing else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from core.incidents.handover import MissingPage, Week, format_digest, missing_pages
from core.incidents.readable import visible
from core.knowledge.redactor import redacted
from core.model.audit import Act, AuditEntry
from core.model.badge import Outcome, Prediction, PredictionKind
from core.model.conversation import Audience, Place, Speaker, channel_audience, channel_reader, turn_key
from core.model.incident import Incident
from core.ports import Transaction
from handlers.common.ports import Ports
from handlers.incidents.post_handover import linked_notice
from handlers.questions.answer_question import ABSTAINED

LOOKED_AT = 2_000  # latest incidents and predictions searched
PAGE = 1_000  # entries of the audit log read at once
MAX_QUESTIONS = 500  # unanswered ones that are grouped
Claims = Sequence[tuple[Prediction, Outcome | None]]


async def post_digest(intent: str, place: Place, since: datetime, ports: Ports) -> None:
    """Post the digest of the time since `since`, once for each intent."""
    audience, now = await ports.chats.audience_at(place), ports.clock.now()
    answered = await _questions_since(since, audience, ports)
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
        owners, causes, answers = [
            [each for each in await transaction.predictions.recent(kind, LOOKED_AT) if each[0].made_at >= since]
            for kind in (PredictionKind.OWNER, PredictionKind.CAUSE, PredictionKind.ANSWER)
        ]
        unanswered = [
            question
            for entry, there in answered
            if entry.detail == ABSTAINED and (question := await _question(entry, there, transaction))
        ]
    began = [each for each in recent if each.opened_at >= since]
    incidents = visible(began, audience, await ports.chats.channels_of(began))
    ids, questions = {each.id for each in incidents}, {entry.subject for entry, _ in answered}
    subjects = {PredictionKind.OWNER: ids, PredictionKind.CAUSE: ids, PredictionKind.ANSWER: questions}
    claims = {PredictionKind.OWNER: owners, PredictionKind.CAUSE: causes, PredictionKind.ANSWER: answers}
    week = Week(
        now - since,
        incidents,
        _times(incidents, owners),
        _times(incidents, causes),
        {
            kind: [label.correct for claim, label in claims[kind] if label and claim.subject in subjects[kind]]
            for kind in claims
        },
        await _missing(unanswered[-MAX_QUESTIONS:], ports),
    )
    await ports.poster.post_once(intent, place, await linked_notice(format_digest(week), (), place, audience, ports))


def _times(incidents: Sequence[Incident], claims: Claims) -> list[timedelta]:
    """Return the time from the start of each incident to its first claim."""
    first = {claim.subject: claim.made_at for claim, _ in claims}  # the newest come first
    return [first[each.id] - each.opened_at for each in incidents if each.id in first]


async def _questions_since(since: datetime, audience: Audience, ports: Ports) -> list[tuple[AuditEntry, Place]]:
    """Return the questions that were answered, or not, in channels that the audience may read now, with these channels."""
    places = [place for channel in ports.chats.channels for place in channel.places]
    channels = await ports.chats.channels_named(map(channel_reader, places))
    open_channels = [
        (place, _at(place)) for place in places if audience.may_read(channel_audience(place, channels).disclosed_to)
    ]
    result: list[tuple[AuditEntry, Place]] = []
    number = 0
    while True:
        async with ports.store.transaction() as transaction:
            entries = await transaction.audit.since(since, number, PAGE)
        for entry in (each.entry for each in entries if each.entry.act is Act.ANSWERED):
            for channel, pattern in open_channels:
                if there := pattern.fullmatch(entry.place):
                    result.append((entry, replace(channel, workspace=there["workspace"] or "")))
        if len(entries) < PAGE:
            return result
        number = entries[-1].number


def _at(channel: Place) -> re.Pattern[str]:
    """Return the pattern of a place in a channel as the audit log writes it."""
    return re.compile(rf"{channel.platform}:(?:(?P<workspace>[^:]+):)?{re.escape(channel.channel)}(?::.*)?", re.DOTALL)


async def _question(entry: AuditEntry, channel: Place, transaction: Transaction) -> str:
    """Return the text of a question; empty if it was deleted."""
    turn = await transaction.conversations.get(turn_key(entry.subject, Speaker.PERSON), channel)
    return " ".join(turn.text.split()) if turn is not None else ""


async def _missing(questions: Sequence[str], ports: Ports) -> list[MissingPage]:
    clean = [await asyncio.to_thread(redacted, each, ports.redact) for each in dict.fromkeys(questions)]
    pages = missing_pages(clean)
    contacts = [ports.knowledge.help_desk.contacts(page.questions[0])[:1] for page in pages]
    return [
        replace(page, owner=contact[0].team_name if contact else "")
        for page, contact in zip(pages, contacts, strict=True)
    ]
