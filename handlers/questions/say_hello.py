"""A greeting, where the bot was just added or somebody says hello: what it is for, and where to find more."""

from __future__ import annotations

from core.model.conversation import Question
from core.model.messages import Notice
from handlers.questions.post_message import Poster

HELLO = (
    "Hello, I am Plumbline. Ask me about CI/CD and operations: every sentence of an answer is cited. "
    "Say “help” to see what else I do. I speak when I am asked, and when an incident is for this place."
)


async def say_hello(question: Question, *, poster: Poster) -> None:
    await poster.post_once(f"hello:{question.id}", question.place, Notice(HELLO))
