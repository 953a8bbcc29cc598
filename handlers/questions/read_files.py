"""Read the text files of a question, such as the snippet that Slack makes of a long paste."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from core.incidents.command import CommandName
from core.knowledge.redactor import redacted
from core.model.conversation import Question, cut_message
from core.model.errors import ChatUnavailable
from core.model.messages import Notice
from handlers.common.ports import Ports

UNREAD = "I could not read {name}: {reason}."

log = structlog.get_logger()


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
