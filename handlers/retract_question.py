"""Somebody deleted a question: whatever is being done for it stops, and its answer goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from core.conversation import Place
from core.errors import Withdrawn
from handlers.post_message import Poster
from handlers.show_waiting import answer_intent


class AnswersUnderWay:
    """The answers that this process works on; one that another process works on is withheld when it is to be posted."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}

    async def run(self, question_id: str, work: Awaitable[None]) -> None:
        """Wait for the work. Raises Withdrawn if the question is deleted meanwhile."""
        task = self._tasks[question_id] = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task])
        finally:
            if self._tasks.get(question_id) is task:  # and not that of a second run of the same step
                del self._tasks[question_id]
            task.cancel()  # no effect on a task that is done
        if task.cancelled():
            raise Withdrawn(f"{question_id} was deleted.")
        task.result()

    def stop(self, question_id: str) -> None:
        """Cancel the work for a question; unknown ones are ignored."""
        if question_id in self._tasks:
            self._tasks[question_id].cancel()


async def retract_question(question_id: str, place: Place, *, under_way: AnswersUnderWay, poster: Poster) -> None:
    """Stop the answer to a deleted question and take it away. A message that was no question has none: nothing happens."""
    under_way.stop(question_id)
    await poster.withdraw(answer_intent(question_id), place)
