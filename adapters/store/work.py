"""The work of all replicas in SQL: tasks, replicas, posts, dead letters, the audit log, and the rate limits that they share."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, get_args

import sqlalchemy as sa
import structlog
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.chat import LaneChange, LocalRateLimiter
from adapters.store.conversations import channel_key
from adapters.store.database import COUNTED, Records, insert_if_absent, outages_as, record_of, upsert, values_of
from adapters.store.tables import audit, dead_letters, posts, rate_limits, replicas, tasks
from core.model.audit import Act, AuditEntry, NumberedEntry
from core.model.conversation import MessageReference, Place
from core.model.errors import StoreUnavailable
from core.model.messages import Message
from core.model.running import LimiterState, PostingRate, new_limiter_state
from core.ports import Backlog, DeadLetter, Post, Task

_PERSON = sa.func.coalesce(tasks.c.payload["asker", "id"].as_string(), "")
_WAITING = (
    sa.select(tasks)
    .where(tasks.c.ended_at.is_(None), tasks.c.owner.is_(None), _PERSON.not_in(sa.bindparam("busy", expanding=True)))
    .order_by(_PERSON != "", tasks.c.number)
    .limit(sa.bindparam("limit"))
    .with_for_update()
)
_OF_KEYS = tasks.update().where(tasks.c.key.in_(sa.bindparam("keys", expanding=True)))


class SqlTasks(Records):
    async def add(self, task: Task) -> bool:
        added = values_of(task) | {"added_at": datetime.now(UTC)}  # used by operators only
        return await insert_if_absent(self._sql, tasks, added)

    async def is_known(self, key: str) -> bool:
        return await self._first(tasks.c.number, key=key) is not None

    async def claim(self, owner: str, limit: int, busy: Collection[str] = ()) -> list[Task]:
        rows = list(await self._sql.execute(_WAITING, {"busy": list(busy), "limit": limit}))
        if rows:
            await self._sql.execute(_OF_KEYS, {"keys": [row.key for row in rows], "owner": owner})
        return [record_of(Task, row) for row in rows]

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        owned = tasks.update().where(tasks.c.owner.in_(owners), tasks.c.ended_at.is_(None), tasks.c.key.not_in(kept))
        return (await self._sql.execute(owned.values(owner=None), execution_options=COUNTED)).rowcount

    async def end(self, keys: Collection[str]) -> None:
        # The end time is used by the retention policy only.
        await self._sql.execute(_OF_KEYS, {"keys": list(keys), "owner": None, "ended_at": datetime.now(UTC)})

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        await self._sql.execute(_OF_KEYS, {"keys": list(keys), "owner": owner, "ended_at": None})

    async def backlog(self) -> Backlog:
        waits = tasks.c.owner.is_(None)
        counted = sa.select(
            sa.func.count().filter(waits).label("waiting"),
            sa.func.min(tasks.c.added_at).filter(waits).label("oldest"),
            sa.func.count().filter(sa.not_(waits)).label("under_way"),
        )
        return record_of(Backlog, (await self._sql.execute(counted.where(tasks.c.ended_at.is_(None)))).one())


class SqlReplicas(Records):
    async def seen(self, replica: str, at: datetime) -> None:
        await upsert(self._sql, replicas, id=replica, seen_at=at)

    async def all(self) -> dict[str, datetime]:
        return {row.id: row.seen_at for row in await self._sql.execute(sa.select(replicas))}

    async def remove(self, replica: str) -> None:
        await self._delete(replicas, id=replica)


_POSTED = posts.update().where(posts.c.intent == sa.bindparam("key")).returning(posts.c.withdrawn)
_COUNTED = (
    sa.select(sa.func.count())
    .select_from(posts)
    .where(posts.c.channel == sa.bindparam("of_channel"), posts.c.counted_at > sa.bindparam("since"))
)


class SqlPosts(Records):
    async def intend(self, intent: str, place: Place) -> Post:
        while (post := await self.find(intent)) is None:
            if await self._insert(new := Post(intent, place)):
                return new
        return post

    async def find(self, intent: str) -> Post | None:
        return next((record_of(Post, row) for row in await self._rows(posts, intent=intent)), None)

    async def at(self, reference: MessageReference) -> Post | None:
        return next((record_of(Post, row) for row in await self._rows(posts, message=_message_key(reference))), None)

    async def attempt(self, intent: str, place: Place) -> Post | None:
        while (post := await self.find(intent)) is None:
            if await self._insert(Post(intent, place, attempted=True)):
                return None
        if post.reference is None and not post.withdrawn:
            await self._update(intent, attempted=True)
        return post

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        made = {
            "reference": reference,
            "message": _message_key(reference),
            "content_hash": content_hash,
            "claim": claim,
        }
        return not (await self._sql.execute(_POSTED, {"key": intent, **made})).scalar_one()

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None:
        await self._update(intent, content_hash=content_hash, claim=claim)

    async def forget(self, intent: str) -> None:
        await self._update(intent, attempted=False, reference=None, message=None, content_hash="", claim="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        await self._update(intent, withdrawn=True)
        return await self.intend(intent, place)

    async def mark_stale(self, intent: str, place: Place, at: datetime, patience: timedelta) -> int | None:
        # Locked, so that a process that marks it current waits for this transaction; SQLite has only one writer.
        query = sa.select(posts.c.asked_at, posts.c.wishes).where(posts.c.intent == intent).with_for_update()
        while (post := (await self._sql.execute(query)).one_or_none()) is None:
            if await self._insert(Post(intent, place), asked_at=at, wishes=1):
                return 1
        is_asked = post.asked_at is not None and abs(at - post.asked_at) < patience  # a clock may be set back
        await self._update(intent, asked_at=post.asked_at if is_asked else at, wishes=post.wishes + 1)
        return None if is_asked else post.wishes + 1

    async def admit(self, intent: str, place: Place, at: datetime, since: datetime, limit: int) -> bool:
        if await self._first(posts.c.counted_at, intent=intent) is not None:
            return True
        channel = channel_key(place)
        if (await self._sql.scalar(_COUNTED, {"of_channel": channel, "since": since}) or 0) >= limit:
            return False
        while not await self._update(intent, channel=channel, counted_at=at):
            await self.intend(intent, place)
        return True

    async def pending_updates(self, intent: str) -> int:
        return await self._first(posts.c.wishes, intent=intent) or 0

    async def mark_current(self, intent: str, pending_updates: int) -> bool:
        marked = await self._set(posts, {"intent": intent, "wishes": pending_updates}, asked_at=None)
        return marked > 0 or await self.pending_updates(intent) == pending_updates

    async def _insert(self, post: Post, **values: Any) -> bool:
        """Insert a new record. Returns False if another process did."""
        return await insert_if_absent(self._sql, posts, values_of(post) | {"made_at": datetime.now(UTC)} | values)

    async def _update(self, intent: str, **values: Any) -> int:
        return await self._set(posts, {"intent": intent}, **values)


def _message_key(reference: MessageReference) -> str:
    """Return the key of a message, regardless of its thread."""
    return f"{reference.place.platform}:{reference.place.channel}:{reference.message_id}"


class SqlDeadLetters(Records):
    async def add(self, intent: str, place: Place, message: Message, reason: str, *, waits: bool = False) -> None:
        kind, now, earlier = type(message).__name__, datetime.now(UTC), await self.get(intent)
        await upsert(
            self._sql,
            dead_letters,
            intent=intent,
            place=place,
            kind=kind,
            message=_message_type(kind).dump_python(message, mode="json"),
            reason=reason,
            at=now,
            waiting_since=((earlier and earlier.waiting_since) or now) if waits else None,
        )

    async def get(self, intent: str) -> DeadLetter | None:
        return next(iter(await self._letters(sa.select(dead_letters).where(dead_letters.c.intent == intent))), None)

    async def latest(self, limit: int) -> list[DeadLetter]:
        return await self._letters(
            sa.select(dead_letters).order_by(dead_letters.c.at.desc(), dead_letters.c.intent).limit(limit)
        )

    async def waiting(self) -> list[DeadLetter]:
        since = dead_letters.c.waiting_since
        return await self._letters(sa.select(dead_letters).where(since.is_not(None)).order_by(since))

    async def count(self) -> int:
        return await self._sql.scalar(sa.select(sa.func.count()).select_from(dead_letters)) or 0

    async def remove(self, intent: str) -> None:
        await self._delete(dead_letters, intent=intent)

    async def _letters(self, query: sa.Select[Any]) -> list[DeadLetter]:
        return [
            DeadLetter(
                row.intent,
                row.place,
                _message_type(row.kind).validate_python(row.message),
                row.reason,
                row.at,
                row.waiting_since,
            )
            for row in await self._sql.execute(query)
        ]


@cache
def _message_type(kind: str) -> TypeAdapter[Any]:
    """Return the adapter of the kind of messages with this name. Raises KeyError if there is none."""
    return TypeAdapter({each.__name__: each for each in get_args(Message)}[kind])


class SqlAudit(Records):
    """The audit log. A database trigger refuses changes of entries (see `tables.py`)."""

    async def add(self, entry: AuditEntry) -> None:
        await insert_if_absent(self._sql, audit, values_of(entry))

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        query = sa.select(audit).order_by(audit.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(audit.c.number < before)
        if act is not None:
            query = query.where(audit.c.act == act)
        return await self._entries(query)

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        query = sa.select(audit).where(audit.c.at >= at, audit.c.number > after)
        return await self._entries(query.order_by(audit.c.number).limit(limit))

    async def _entries(self, query: sa.Select[Any]) -> list[NumberedEntry]:
        return [
            NumberedEntry(row.number, replace(record_of(AuditEntry, row), act=Act(row.act)))
            for row in await self._sql.execute(query)
        ]


# PostgreSQL's now() is the start of the transaction, before it waited for the row lock.
SERVER_CLOCK: sa.ColumnElement[float] = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double[float]())
DATABASE_TIMEOUT = 5.0  # seconds for the database, before this process limits its own rate

_BODY = TypeAdapter(LimiterState)

log = structlog.get_logger()


class SqlRateLimiter(LocalRateLimiter):
    """Implements `core.ports.RateLimiter` by the clock of the database.

    While the database is unavailable, each process limits its own rate.
    """

    def __init__(self, engine: AsyncEngine, clock: sa.ColumnElement[float] = SERVER_CLOCK) -> None:
        super().__init__()
        self._engine = engine
        self._clock = clock
        self._changing = asyncio.Lock()  # a task that waits for a row uses no further connection

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        return await super().take(lane, _digest(ticket), rate)

    async def _change(self, name: str, rate: PostingRate, change: LaneChange) -> float:
        try:
            return await self._change_for_all(name, rate, change)
        except StoreUnavailable as error:
            log.info("turns are not shared", reason=str(error))
            return await super()._change(name, rate, change)

    async def _change_for_all(self, name: str, rate: PostingRate, change: LaneChange) -> float:
        """Change a lane under a row lock. `change` gets its state and the time after the lock was granted."""
        lane = rate_limits.c.name == (row := _digest(name))
        state = sa.select(rate_limits.c.body).where(lane).with_for_update()
        with outages_as(StoreUnavailable):
            async with asyncio.timeout(DATABASE_TIMEOUT), self._changing, self._engine.begin() as connection:
                while (saved := await connection.scalar(state)) is None:
                    await insert_if_absent(
                        connection, rate_limits, {"name": row, "body": {}, "used_at": datetime.now(UTC)}
                    )
                now = await connection.scalar(sa.select(self._clock)) or 0.0
                current = _BODY.validate_python(saved) if saved else new_limiter_state(rate, now)
                changed, wait = change(current, now)
                values = {"body": _BODY.dump_python(changed, mode="json"), "used_at": datetime.fromtimestamp(now, UTC)}
                await connection.execute(rate_limits.update().where(lane).values(values))
                return wait


def _digest(name: str) -> str:
    """Return a digest, so that no channel or message is stored here by name."""
    return hashlib.blake2b(name.encode(), digest_size=12).hexdigest()
