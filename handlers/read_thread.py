"""Called into the middle of somebody else's thread: what was said there before is what the question is about.

It is read in the very place that is answered in, so that its audience has read it already. It is as untrusted as the
question: names, addresses and secrets are taken out, and it is bounded in number and length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog

from core.conversation import Platform, Question, Turn
from core.errors import ChatUnavailable
from core.knowledge.document import Document
from core.ports import Store, ThreadReader

MAX_TURNS = 20  # messages of a thread: the one that began it, and the latest
MAX_CHARACTERS = 1_000  # of one message

log = structlog.get_logger()


async def in_context(
    question: Question,
    *,
    threads: Mapping[Platform, ThreadReader],
    store: Store,
    redact: Callable[[Document], Document],
) -> Question:
    """The question with what was said in its thread, or with what it quotes of it where nobody can read the thread.

    Once Plumbline was asked in the thread, its own conversation goes on, and only what began the thread comes before.
    A thread that cannot be read now costs the context and not the answer.
    """
    said = await _said(question, threads) or question.history
    if not said:
        return question
    async with store.transaction() as transaction:
        own = await transaction.conversations.history(question.place, MAX_TURNS)
    if own:
        said = said[:1] if said[0].text != own[0].text else ()
    context = await asyncio.to_thread(_clean, said, redact)
    return replace(question, history=(*context, *own))


async def _said(question: Question, threads: Mapping[Platform, ThreadReader]) -> tuple[Turn, ...]:
    reader = threads.get(question.place.platform)
    if reader is None or question.place.thread is None:
        return ()
    try:
        return await reader.earlier(question.place, question.asked_at, MAX_TURNS)
    except ChatUnavailable as error:
        log.warning("thread cannot be read", question=question.id, reason=str(error))
        return ()


def _clean(turns: Sequence[Turn], redact: Callable[[Document], Document]) -> list[Turn]:
    """Takes milliseconds for each turn."""
    return [Turn(turn.speaker, redact(Document("", "", "", "", turn.text[:MAX_CHARACTERS])).text) for turn in turns]
