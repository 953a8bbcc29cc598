"""A pressed button, as it is stored: a task of its own and an entry in the audit log.

A press of “Stop” is stored under a key of its own, like every press. So whoever accepts it, the replica for which a language
model works finds it, and ends that work within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import TypeAdapter

from core.model.audit import Act, AuditEntry, audit_entry
from core.model.errors import StoreUnavailable
from core.model.feedback import Feedback
from core.model.messages import ButtonAction
from core.ports import Store, Task

FEEDBACK = "record_feedback"
FEEDBACK_EVENT = TypeAdapter(Feedback)


def pressed(feedback: Feedback) -> tuple[Task, AuditEntry]:
    """Return what is stored of a press. One of “Stop” has the key for which the working replica looks."""
    key = stop_key(feedback.subject) if feedback.verdict is ButtonAction.STOP else feedback.id
    entry = audit_entry(
        f"pressed:{feedback.id}",
        feedback.at,
        Act.PRESSED,
        feedback.person,
        feedback.subject,
        place=feedback.place,
        detail=feedback.verdict,
    )
    return Task(key, FEEDBACK, feedback.subject, FEEDBACK_EVENT.dump_python(feedback, mode="json")), entry


LOOK = 0.5  # seconds between two looks for a press

T = TypeVar("T")


def stop_key(stop_id: str) -> str:
    """Return the key of the task that stops a model's work."""
    return f"stop:{stop_id}"


async def unless_stopped(work: Coroutine[Any, Any, T], stop_id: str, store: Store) -> T | None:
    """Return the result of the work; None if somebody stopped it, which cancels the work. Raises what the work raises."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(_stopped(stop_id, store))
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait([working, stopping])


async def _stopped(stop_id: str, store: Store) -> None:
    """Wait until somebody has pressed “Stop”."""
    while True:
        await asyncio.sleep(LOOK)
        with suppress(StoreUnavailable):  # an outage is no press
            async with store.transaction() as transaction:
                if await transaction.tasks.is_known(stop_key(stop_id)):
                    return
