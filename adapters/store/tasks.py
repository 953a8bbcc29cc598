"""The task store on SQL."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import tasks
from core.ports import Task


class SqlTasks:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def add(self, task: Task) -> bool:
        return await insert_if_absent(
            self._connection,
            tasks,
            {
                "key": task.key,
                "workflow": task.workflow,
                "subject": task.subject,
                "payload": dict(task.payload),
                "claimed": False,
                "started": False,
            },
        )

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        found = await self._connection.execute(
            sa.select(tasks.c.number)
            .where(
                tasks.c.started.is_(False),
                tasks.c.claimed.is_(False),
                tasks.c.workflow == workflow,
                tasks.c.subject == subject,
            )
            .limit(1)
            .with_for_update()  # the claim waits until this transaction has written; SQLite has one writer anyway
        )
        return found.first() is not None

    async def claim(self, limit: int) -> list[Task]:
        oldest = sa.select(tasks).where(tasks.c.started.is_(False)).order_by(tasks.c.number).limit(limit)
        rows = list(await self._connection.execute(oldest.with_for_update()))
        waiting = [row.number for row in rows if not row.claimed]
        if waiting:
            await self._connection.execute(tasks.update().where(tasks.c.number.in_(waiting)).values(claimed=True))
        return [Task(row.key, row.workflow, row.subject, row.payload) for row in rows]

    async def mark_started(self, key: str) -> None:
        await self._connection.execute(tasks.update().where(tasks.c.key == key).values(started=True))
