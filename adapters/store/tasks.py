"""Tasks in SQL."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.store.database import insert_if_absent
from adapters.store.tables import tasks
from core.ports import Backlog, Task


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
                "added_at": datetime.now(UTC),  # used by operators only
                "correlation": task.correlation,
            },
        )

    async def is_known(self, key: str) -> bool:
        found = await self._connection.execute(sa.select(tasks.c.number).where(tasks.c.key == key))
        return found.first() is not None

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        found = await self._connection.execute(
            sa.select(tasks.c.number)
            .where(
                tasks.c.ended_at.is_(None),
                tasks.c.claimed.is_(False),
                tasks.c.workflow == workflow,
                tasks.c.subject == subject,
            )
            .limit(1)
            .with_for_update()  # the claim waits until this transaction has committed; SQLite has only one writer
        )
        return found.first() is not None

    async def claim(self, owner: str, limit: int) -> list[Task]:
        oldest = (
            sa.select(tasks)
            .where(tasks.c.ended_at.is_(None), tasks.c.owner.is_(None))
            .order_by(tasks.c.number)
            .limit(limit)
        )
        rows = list(await self._connection.execute(oldest.with_for_update()))
        if rows:
            numbers = [row.number for row in rows]
            claimed = tasks.update().where(tasks.c.number.in_(numbers)).values(claimed=True, owner=owner)
            await self._connection.execute(claimed)
        return [Task(row.key, row.workflow, row.subject, row.payload, row.correlation) for row in rows]

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        owned = tasks.update().where(tasks.c.owner.in_(owners), tasks.c.ended_at.is_(None), tasks.c.key.not_in(kept))
        return (await self._connection.execute(owned.values(owner=None))).rowcount

    async def end(self, keys: Collection[str]) -> None:
        # The end time is used by the retention policy only.
        ended = tasks.update().where(tasks.c.key.in_(keys)).values(owner=None, ended_at=datetime.now(UTC))
        await self._connection.execute(ended)

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        reopened = tasks.update().where(tasks.c.key.in_(keys)).values(owner=owner, ended_at=None)
        await self._connection.execute(reopened)

    async def backlog(self) -> Backlog:
        waits = tasks.c.owner.is_(None)
        counted = sa.select(
            sa.func.count().filter(waits).label("waiting"),
            sa.func.min(tasks.c.added_at).filter(waits).label("oldest"),
            sa.func.count().filter(sa.not_(waits)).label("under_way"),
        )
        row = (await self._connection.execute(counted.where(tasks.c.ended_at.is_(None)))).one()
        return Backlog(row.waiting, row.oldest, row.under_way)
