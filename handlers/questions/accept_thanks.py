"""Reply to thanks, which are not searched for."""

from __future__ import annotations

from core.model.conversation import Question
from core.model.messages import Notice, NoticeKind
from handlers.questions.post_message import Poster

WELCOME = "You are welcome."


async def accept_thanks(question: Question, *, poster: Poster) -> None:
    await poster.post_once(f"thanks:{question.id}", question.place, Notice(WELCOME, NoticeKind.THANKS))
