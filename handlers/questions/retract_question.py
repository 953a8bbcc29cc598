"""Stop answering a deleted question, and remove its answer."""

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
    """Answers that this process is working on. An answer in another process is withheld when it is to be posted."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._stopped = WeakSet[asyncio.Task[Any]]()

    async def run(self, question_id: str, work: Coroutine[Any, Any, None]) -> None:
        """Run the work to its end. Raises Withdrawn if the question is deleted or edited meanwhile."""
        task = self._tasks[question_id] = asyncio.ensure_future(work)
        try:
            await asyncio.wait([task])
        finally:
            if self._tasks.get(question_id) is task:  # not that of a second run of the same step
                del self._tasks[question_id]
            task.cancel()  # no effect on a finished task
        if task.cancelled():
            raise Withdrawn(f"{question_id} was deleted or changed.")
        task.result()

    async def stop(self, question_id: str) -> None:
        """Cancel the work for a question, and wait until it has ended. Unknown ids are ignored."""
        if (task := self._tasks.get(question_id)) is not None:
            if task not in self._stopped:  # a second cancellation would interrupt its clean-up
                self._stopped.add(task)
                task.cancel()
            await asyncio.wait([task])


async def forget_conversation(question_id: str, store: Store) -> None:
    """Delete a question and its answer from the stored conversation."""
    async with store.transaction() as transaction:
        for speaker in Speaker:
            await transaction.conversations.forget(turn_key(question_id, speaker))


async def retract_question(
    question_id: str, place: Place, *, under_way: AnswersUnderWay, store: Store, poster: Poster
) -> None:
    """Stop and remove the answer to a deleted question, and delete the stored conversation.

    Does nothing for a message that was no question.
    """
    await under_way.stop(question_id)
    await poster.withdraw(answer_intent(question_id), place)
    await forget_conversation(question_id, store)
