"""One of the processes that share a database: it says that it lives, and takes over from those that died.

A replica keeps a lock in the database as long as it lives. Whoever finds the lock of another one free goes on with its
work: its tasks are claimed anew, its workflows are resumed where they were. A workflow that was begun by another version
of the workflows is begun anew, which every step bears.
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
INTERVAL = 1.0  # seconds between two looks; less than PATIENCE in adapters/store/locks.py
NOT_LOOKED = "has not looked at the database yet"

TAKEN_OVER = Counter("plumbline_workflows_taken_over_total", "Workflows that went on after their process died")
RESUMED = Counter("plumbline_workflows_resumed_total", "Workflows that went on after the engine could not write")

log = structlog.get_logger()


def new_replica() -> str:
    """A name that no process ever had, and that tells people which it is."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


class Replica:
    """This process among the others."""

    def __init__(self, name: str, store: SqlStore, clock: Clock, running: Callable[[], frozenset[str]]) -> None:
        """`running` are the ids of the workflows that are in a step in this process."""
        self.trouble = NOT_LOOKED  # why the database cannot be worked with; empty if it can
        self._name = name
        self._store = store
        self._clock = clock
        self._running = running
        self._settled: dict[str, datetime] = {}  # dead replicas of which nothing is left → when they were seen last
        self._stuck: frozenset[str] = frozenset()
        self._looked = asyncio.Event()

    async def looked(self) -> None:
        """Returns once it looked at the database, whatever it saw."""
        await self._looked.wait()

    async def join(self) -> None:
        """Say that it lives: before anything is claimed in its name. Raises StoreUnavailable."""
        await self._store.locks.keep(self._name)
        async with self._store.transaction() as transaction:
            await transaction.replicas.seen(self._name, self._clock.now())

    async def serve(self) -> None:
        """Look after the others until cancelled."""
        while True:
            try:
                await self.look()
                self._say("")
            except Unavailable as error:
                self._say(str(error))
            except Exception:  # the engine's own database has no type of error of its own
                log.exception("replica cannot look after workflows")
                self._say("The workflow engine's database cannot be read or written; the log says why.")
            await asyncio.sleep(INTERVAL)

    async def look(self) -> None:
        """Once around: this replica lives, who else does not, and what does not go on?"""
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
        """Go on with the work of dead replicas; whether there was none left."""
        async with self._store.lock("take over"):
            left = await engine.left_by(dead)
            await engine.resume([each.workflow_id for each in left if each.app_version == engine.VERSION])
            others = [each.workflow_id for each in left if each.app_version != engine.VERSION]
            # In this order a kill in between loses nothing, and nobody waits for a workflow that is deleted.
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
        """Not at once: a replica that only lost its session for a moment still claims tasks in its name."""
        long_ago = self._clock.now() - LONG_DEAD
        async with self._store.transaction() as transaction:
            for name, seen_at in (await transaction.replicas.all()).items():
                if name in self._settled and seen_at < long_ago:
                    await transaction.replicas.remove(name)

    async def _resume_stuck(self) -> None:
        """Workflows that the engine holds to be under way here, and are not: it could not write how they went on."""
        stuck = frozenset(await engine.under_way(self._name)) - self._running()
        still = stuck & self._stuck  # one may just be about to begin, or to end
        self._stuck = stuck - still
        if still:
            await engine.resume(sorted(still))
            RESUMED.inc(len(still))
            log.warning("workflows were resumed", workflows=len(still))

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.error("database is in trouble", reason=trouble)
        elif self.trouble not in ("", NOT_LOOKED) and not trouble:
            log.info("database is fine")
        self.trouble = trouble
        self._looked.set()
