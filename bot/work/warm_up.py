"""Preparation of what the first question or message would otherwise wait for."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from bot.wiring.chats import Chat
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.model.conversation import Audience
from core.model.errors import PlumblineError
from handlers.questions.examine_model import ExaminedModel


async def warm_up(retriever: Retriever, redact: Redactor, examined: ExaminedModel | None, *chats: Chat | None) -> None:
    """Load what finds secrets, read what was learned of the corpus, examine the model, and load what the chats post with."""
    if examined is not None:
        _ = examined.skill  # where it is not known yet, an exam begins
    await asyncio.to_thread(redact.findings, "ready", ())
    with suppress(PlumblineError):  # reported to the first person who asks
        await retriever.retrieve("ready", Audience(), 1)
    for chat in chats:
        if chat is not None and chat.warm_up is not None:
            await chat.warm_up()
