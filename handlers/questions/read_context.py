"""The context of a question: its text files, such as the snippet that Slack makes of a long paste, and its thread.

Only the thread in which the answer is posted is read, so its audience has read it already. Its text is as untrusted as
the question: it is redacted, and limited in number and length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from core.answering.rewrite import is_follow_up, only_calls
from core.incidents.command import CommandName
from core.knowledge.redactor import Redact, redacted, redacted_beginning
from core.model.conversation import Platform, Question, Speaker, Turn, cut_message, turn_key
from core.model.errors import ChatUnavailable
from core.model.messages import Notice
from core.ports import Store, ThreadReader, Transaction
from handlers.common.ports import Ports

MAX_TURNS = 20  # the first message of a thread and the latest ones
MAX_CHARACTERS = 1_000  # per message
FOLLOWED_WITHIN = timedelta(minutes=10)  # of an answer in the channel, beside its thread

log = structlog.get_logger()


async def earlier_turns(question: Question, limit: int, transaction: Transaction) -> tuple[Turn, ...]:
    """Return the bot's own conversation in the thread, without what an earlier run stored of this question."""
    own = [await transaction.conversations.get(turn_key(question.id, each), question.place) for each in Speaker]
    history = await transaction.conversations.history(question.place, limit)
    return tuple(turn for turn in history if turn not in own)


async def remember(question: Question, reply: str, at: datetime, transaction: Transaction) -> None:
    """Store the question and the bot's reply in the conversation, in place of an earlier version of both."""
    for speaker, text, when in ((Speaker.PERSON, question.text, question.asked_at), (Speaker.PLUMBLINE, reply, at)):
        await transaction.conversations.forget(turn_key(question.id, speaker))
        await transaction.conversations.add(turn_key(question.id, speaker), question.place, Turn(speaker, text), when)


async def forget_conversation(question_id: str, store: Store) -> None:
    """Delete a question and its answer from the stored conversation."""
    async with store.transaction() as transaction:
        for speaker in Speaker:
            await transaction.conversations.forget(turn_key(question_id, speaker))


async def in_context(question: Question, ports: Ports) -> Question:
    """Return the question with its thread as history, or with what it quotes if the thread cannot be read.

    Once the bot was asked in the thread, its own conversation is used, preceded only by the first message of the thread
    that is more than a greeting. What the question itself quotes comes last. A thread that cannot be read now is left
    out, and the question is still answered; a follow-up (“and in staging?”) is then marked as lacking its thread. A
    follow-up that begins a thread follows what was said last in the channel.
    """
    earlier = await _earlier(question, ports.chats.threads)
    thread = [turn for turn in earlier or () if turn not in question.history]
    async with ports.store.transaction() as transaction:
        own = await earlier_turns(question, MAX_TURNS, transaction)
        if not (thread or own or question.history) and is_follow_up(question.text):
            if earlier is None:
                return replace(question, lacks_thread=True)
            since = question.asked_at - FOLLOWED_WITHIN
            return replace(question, history=await transaction.conversations.latest(question.place, since, MAX_TURNS))
    if not thread and not question.history:
        return question
    if own:
        began = next((turn for turn in thread if not only_calls(turn.text)), own[0])
        thread = [began] if began.text != own[0].text else []
    quoted = [turn for turn in question.history if turn not in own]
    clean = await asyncio.to_thread(_clean, [*thread, *quoted], ports.redact)
    return replace(question, history=(*clean[: len(thread)], *own, *clean[len(thread) :]))


async def _earlier(question: Question, threads: Mapping[Platform, ThreadReader]) -> tuple[Turn, ...] | None:
    """Return the messages of the thread before the question; None if they cannot be read now."""
    reader = threads.get(question.place.platform)
    if reader is None or question.place.thread is None:
        return ()
    try:
        return await reader.earlier(question.place, question.asked_at, MAX_TURNS)
    except ChatUnavailable as error:
        log.warning("thread cannot be read", question=question.id, reason=str(error))
        return None


def _clean(turns: Sequence[Turn], redact: Redact) -> list[Turn]:
    """Return the turns redacted. Takes milliseconds per turn."""
    return [replace(turn, text=redacted_beginning(turn.text, MAX_CHARACTERS, redact)) for turn in turns]


UNREAD = "I could not read {name}: {reason}."


async def with_files(question: Question, ports: Ports) -> Question:
    """Return the question with the redacted text of its files below what was typed, as if it had been pasted.

    A file that cannot be read is named in a notice. A file is never a command.
    """
    reader = ports.chats.files.get(question.place.platform)
    if reader is None or not question.files:
        return question
    texts: list[str] = []
    for number, file in enumerate(question.files):
        try:
            texts.append(await reader.text(file))
        except ChatUnavailable as error:
            log.warning("file of a question cannot be read", question=question.id, reason=str(error))
            notice = Notice(UNREAD.format(name=file.name, reason=error))
            await ports.poster.post_once(f"unread:{question.id}:{number}", question.place, notice)
    if not texts:
        return question
    read = await asyncio.to_thread(redacted, "\n".join(texts), ports.redact)
    return replace(question, text=cut_message(f"{question.text or CommandName.ASK}\n{read}"))
