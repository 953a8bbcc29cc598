"""Called into the middle of somebody else's thread: what was said there before is what the question is about.

It is read in the very place that is answered in, so that its audience has read it already. It is as untrusted as the
question: names, addresses and secrets are taken out, and it is bounded in number and length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import structlog

from core.answering.rewrite import only_calls
from core.model.conversation import Platform, Question, Speaker, Turn, turn_key
from core.model.errors import ChatUnavailable
from core.ports import Store, ThreadReader, Transaction
from handlers.knowledge.redaction import Redact, redacted_beginning

MAX_TURNS = 20  # messages of a thread: the one that began it, and the latest
MAX_CHARACTERS = 1_000  # of one message

log = structlog.get_logger()


async def said_before(question: Question, limit: int, transaction: Transaction) -> tuple[Turn, ...]:
    """Our conversation in its thread, without what an earlier run remembered of this very question."""
    own = [await transaction.conversations.get(turn_key(question.id, each), question.place) for each in Speaker]
    history = await transaction.conversations.history(question.place, limit)
    return tuple(turn for turn in history if turn not in own)


async def in_context(
    question: Question,
    *,
    threads: Mapping[Platform, ThreadReader],
    store: Store,
    redact: Redact,
) -> Question:
    """The question with what was said in its thread, or with what it quotes of it where nobody can read the thread.

    Once Plumbline was asked in the thread, its own conversation goes on, and only what began the thread comes before: the
    first message that is no mere greeting.
    What the question itself quotes is nearest to it. A thread that cannot be read now costs the context and not the answer.
    """
    said = [turn for turn in await _said(question, threads) if turn not in question.history]
    if not said and not question.history:
        return question
    async with store.transaction() as transaction:
        own = await said_before(question, MAX_TURNS, transaction)
    if own:
        began = next((turn for turn in said if not only_calls(turn.text)), own[0])
        said = [began] if began.text != own[0].text else []
    quoted = [turn for turn in question.history if turn not in own]
    clean = await asyncio.to_thread(_clean, [*said, *quoted], redact)
    return replace(question, history=(*clean[: len(said)], *own, *clean[len(said) :]))


async def _said(question: Question, threads: Mapping[Platform, ThreadReader]) -> tuple[Turn, ...]:
    reader = threads.get(question.place.platform)
    if reader is None or question.place.thread is None:
        return ()
    try:
        return await reader.earlier(question.place, question.asked_at, MAX_TURNS)
    except ChatUnavailable as error:
        log.warning("thread cannot be read", question=question.id, reason=str(error))
        return ()


def _clean(turns: Sequence[Turn], redact: Redact) -> list[Turn]:
    """Takes milliseconds for each turn."""
    return [replace(turn, text=redacted_beginning(turn.text, MAX_CHARACTERS, redact)) for turn in turns]
