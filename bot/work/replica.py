"""A replica: one of the processes that share a database. It signals that it is alive, and takes over from dead ones.

A replica holds a database lock while it lives. A replica that finds another one's lock free takes over its work: tasks
are claimed again, and workflows are resumed. Workflows of another version are restarted, which every step tolerates.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from prometheus_client import Counter

from adapters.store.store import SqlStore
from bot.work import engine
from core.model.errors import Unavailable
from core.ports import Clock

LONG_DEAD = timedelta(hours=2)
INTERVAL = 1.0  # seconds between checks; less than NEW_SESSION_TIMEOUT in adapters/store/store.py
NOT_CHECKED = "has not looked at the database yet"

TAKEN_OVER = Counter("plumbline_workflows_taken_over_total", "Workflows that went on after their process died")
RESUMED = Counter("plumbline_workflows_resumed_total", "Workflows that went on after the engine could not write")

log = structlog.get_logger()


def new_replica() -> str:
    """Return a unique name that starts with the host name."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


class Replica:
    """This process among the replicas."""

    def __init__(self, name: str, store: SqlStore, clock: Clock, running: Callable[[], frozenset[str]]) -> None:
        """Create the replica. `running` returns the ids of the workflows in a step in this process."""
        self.trouble = NOT_CHECKED  # the database problem; empty if there is none
        self._name = name
        self._store = store
        self._clock = clock
        self._running = running
        self._settled: dict[str, datetime] = {}  # dead replicas without remaining work → when they were last seen
        self._stuck: frozenset[str] = frozenset()
        self._checked = asyncio.Event()

    async def checked(self) -> None:
        """Wait for the first check of the database, whatever its result."""
        await self._checked.wait()

    async def join(self) -> None:
        """Announce this replica, before anything is claimed in its name. Raises StoreUnavailable."""
        await self._store.locks.keep(self._name)
        async with self._store.transaction() as transaction:
            await transaction.replicas.seen(self._name, self._clock.now())

    async def serve(self) -> None:
        """Watch the other replicas until cancelled."""
        while True:
            try:
                await self.check()
                self._say("")
            except Unavailable as error:
                self._say(str(error))
            except Exception:  # the engine's database errors have no common type
                log.exception("replica cannot look after workflows")
                self._say("The workflow engine's database cannot be read or written. See the log for the reason.")
            await asyncio.sleep(INTERVAL)

    async def check(self) -> None:
        """Announce this replica, take over from dead ones, and resume stuck workflows."""
        await self.join()
        async with self._store.transaction() as transaction:
            others = await transaction.replicas.all()
        others.pop(self._name, None)
        suspects = [name for name, seen_at in others.items() if self._settled.get(name) != seen_at]
        lost = await asyncio.gather(*(self._store.locks.is_lost(name) for name in suspects))
        dead = [name for name, is_lost in zip(suspects, lost, strict=True) if is_lost]
        if dead and await self._take_over(dead):
            self._settled |= {name: others[name] for name in dead}
            await self._forget_long_dead()
        await self._resume_stuck()

    async def _take_over(self, dead: list[str]) -> bool:
        """Take over the work of dead replicas. Returns whether nothing was left."""
        async with self._store.lock("take over"):
            left = await engine.left_by(dead)
            await engine.resume([each.workflow_id for each in left if each.app_version == engine.VERSION])
            others = [each.workflow_id for each in left if each.app_version != engine.VERSION]
            # In this order, a crash in between loses nothing, and nobody waits for a deleted workflow.
            if others:
                async with self._store.transaction() as transaction:
                    await transaction.tasks.reopen(others, dead[0])
                await engine.forget(others)
            async with self._store.transaction() as transaction:
                released = await transaction.tasks.release(dead)
        if left or released:
            TAKEN_OVER.inc(len(left))
            log.info("replicas were replaced", dead=len(dead), workflows=len(left), tasks=released, anew=len(others))
        return not left and not released

    async def _forget_long_dead(self) -> None:
        """Remove long-dead replicas.

        Not at once, because a replica that lost its session briefly still claims tasks.
        """
        long_ago = self._clock.now() - LONG_DEAD
        async with self._store.transaction() as transaction:
            for name, seen_at in (await transaction.replicas.all()).items():
                if name in self._settled and seen_at < long_ago:
                    await transaction.replicas.remove(name)

    async def _resume_stuck(self) -> None:
        """Resume workflows that the engine considers running here but are not, because their progress was not recorded."""
        stuck = frozenset(await engine.under_way(self._name)) - self._running()
        still = stuck & self._stuck  # one may be just starting or ending, so it must be stuck twice
        self._stuck = stuck - still
        if still:
            await engine.resume(sorted(still))
            RESUMED.inc(len(still))
            log.warning("workflows were resumed", workflows=len(still))

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.error("database is in trouble", reason=trouble)
        elif self.trouble not in ("", NOT_CHECKED) and not trouble:
            log.info("database is fine")
        self.trouble = trouble
        self._checked.set()
