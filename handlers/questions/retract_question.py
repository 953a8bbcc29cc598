"""Somebody deleted a question: whatever is being done for it stops, and its answer goes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any
from weakref import WeakSet

from core.model.conversation import Place, Speaker, turn_key
from core.model.errors import Withdrawn
from core.ports import Store
from handlers.questions.post_message import Poster
from handlers.questions.show_waiting import answer_intent


class AnswersUnderWay:
    """The answers that this process works on; one that another process works on is withheld when it is to be posted."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped = WeakSet[asyncio.Task[Any]]()

    async def run(self, question_id: str, work: Coroutine[Any, Any, None]) -> None:
        """Wait for the work. Raises Withdrawn if the question is deleted meanwhile, or asked in other words."""
        task = self._tasks[question_id] = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task])
        finally:
            if self._tasks.get(question_id) is task:  # and not that of a second run of the same step
                del self._tasks[question_id]
            task.cancel()  # no effect on a task that is done
        if task.cancelled():
            raise Withdrawn(f"{question_id} was deleted or changed.")
        task.result()

    async def stop(self, question_id: str) -> None:
        """Cancel the work for a question, and wait until it has ended; unknown ones are ignored."""
        if (task := self._tasks.get(question_id)) is not None:
            if task not in self._stopped:  # twice would break off what it waits for at its end
                self._stopped.add(task)
                task.cancel()
            await asyncio.wait([task])


async def forget_conversation(question_id: str, store: Store) -> None:
    """Forget a question and its answer: the one was deleted or says something else now, the other is gone."""
    async with store.transaction() as transaction:
        for speaker in Speaker:
            await transaction.conversations.forget(turn_key(question_id, speaker))


async def retract_question(
    question_id: str, place: Place, *, under_way: AnswersUnderWay, store: Store, poster: Poster
) -> None:
    """Stop the answer to a deleted question, take it away, and forget what was said.

    A message that was no question has none: nothing happens.
    """
    await under_way.stop(question_id)
    await poster.withdraw(answer_intent(question_id), place)
    await forget_conversation(question_id, store)
