"""Preparation of everything that would delay the first question or message."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from bot.wiring.chats import Chat
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.model.conversation import Audience
from core.model.errors import PlumblineError
from core.model_calls.choice import Use
from handlers.common.examine_model import ExaminedModel


async def warm_up(retriever: Retriever, redact: Redactor, examined: ExaminedModel | None, *chats: Chat | None) -> None:
    """Load the secret detector, the encoder of the corpus and the SDKs of the chats, and start the model's exam."""
    if examined is not None:
        examined.skill(Use.ANSWERS)  # starts an exam if it is not known yet
    await asyncio.to_thread(redact.findings, "ready", ())
    with suppress(PlumblineError):  # reported to the first person who asks
        await retriever.retrieve("ready", Audience(), 1)
    for chat in chats:
        if chat is not None and chat.warm_up is not None:
            await chat.warm_up()
