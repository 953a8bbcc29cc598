"""Introduce the bot, when it is added or greeted."""

from __future__ import annotations

from core.model.conversation import Question
from core.model.messages import Notice
from handlers.questions.post_message import Poster

HELLO = (
    "Hello, I’m Plumbline. Ask me about CI/CD and operations; I cite every sentence of an answer. "
    "Say “help” to see what else I can do. I post only when asked, or when an incident belongs to this channel."
)


async def say_hello(question: Question, *, poster: Poster) -> None:
    await poster.post_once(f"hello:{question.id}", question.place, Notice(HELLO))
