"""What a first question or a first message would otherwise have to wait for is done once the bot is ready."""

from __future__ import annotations

from contextlib import suppress

from bot.chats import Chat
from core.conversation import Audience
from core.errors import PlumblineError
from core.knowledge.retriever import Retriever


async def warm_up(retriever: Retriever, *chats: Chat | None) -> None:
    """Read what was learned of the corpus, and load what the chats post with."""
    with suppress(PlumblineError):  # whoever asks a question is told
        await retriever.retrieve("ready", Audience(), 1)
    for chat in chats:
        if chat is not None and chat.warm_up is not None:
            await chat.warm_up()
