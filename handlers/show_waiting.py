"""While a person waits for an answer that takes long, the chat says what is going on; then it becomes the answer.

Where the platform has a sign for that (a status, a typing person) it is shown; elsewhere the answer's message says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from core.conversation import Question
from core.errors import Unavailable
from core.messages import Notice, NoticeKind
from handlers.post_message import Poster

PATIENCE = 2.0  # seconds after which people wonder whether they were heard
INTERVAL = 5.0  # seconds between two looks at the queue

THINKING = "Reading what I found …"
WAITING = "Waiting for the language model: {position} in the queue …"

_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def answer_intent(question_id: str) -> str:
    """What names the message that is first a sign of waiting and then the answer."""
    return f"answer:{question_id}"


class Waiting:
    """The signs of waiting for one answer."""

    def __init__(self, question: Question, position: Callable[[], int], poster: Poster) -> None:
        self._done = asyncio.Event()
        self._telling = asyncio.create_task(_tell(question, position, poster, self._done))

    async def end(self) -> None:
        """Show no more of them: there is something better to show.

        A post that has begun is finished, so that the answer replaces it and does not come twice.
        """
        self._done.set()
        await asyncio.shield(self._telling)  # whoever gives up waiting for it does not break it off


@asynccontextmanager
async def shown_waiting(question: Question, position: Callable[[], int], *, poster: Poster) -> AsyncGenerator[Waiting]:
    """Show how far it is until the block ends, in the message of `answer_intent`; nothing if that is soon.

    `position` is the question's place in the queue for the model, from 1; 0 while it is being worked on.
    """
    waiting = Waiting(question, position, poster)
    try:
        yield waiting
    finally:
        await waiting.end()


async def _tell(question: Question, position: Callable[[], int], poster: Poster, done: asyncio.Event) -> None:
    pause = PATIENCE
    while not await _happens(done, pause):
        pause = INTERVAL
        place = position()
        text = WAITING.format(position=_ordinal(place)) if place else THINKING
        try:
            if not await poster.signal(question.place, text):
                await poster.post_or_edit(
                    answer_intent(question.id), question.place, Notice(text, NoticeKind.PROGRESS), text
                )
        except Unavailable:
            return  # a sign of waiting is not worth a second try


def _ordinal(number: int) -> str:
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else _ENDINGS.get(number % 10, 'th')}"


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
