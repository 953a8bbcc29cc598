"""The workflow engine: set-up, state, and recovery of workflows whose process died; and the replica that it runs in.

Its SQLite file is written without waiting for the disk. A killed process loses nothing; a power failure may lose the
last steps, which are then repeated, or whole workflows, which are started again from their unfinished tasks.

Inputs and outputs of workflows are JSON, which cannot run code. The engine's own format is pickle, which can, and the engine
reads it wherever a row is marked with it: anybody who can write a row, for example through a backup, could run code.
Importing this module disables that reader.

A replica holds a database lock while it lives. A replica that finds another one's lock free takes over its work: tasks
are claimed again, and workflows are resumed. Workflows of another version are restarted, which every step tolerates.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import sqlite3
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, cast

import sqlalchemy as sa
import structlog
from dbos import DBOS, DBOSClient, DBOSConfig, Serializer, WorkflowHandleAsync, WorkflowStatus
from dbos._serialization import DefaultSerializer
from prometheus_client import Counter
from sqlalchemy.exc import DBAPIError

from adapters.store.database import outages_as
from adapters.store.store import SqlStore
from core.model import errors
from core.model.errors import PlumblineError, StoreUnavailable, Unavailable
from core.ports import Clock

VERSION = "2"  # of the workflows: see "Versions of workflows" in docs/architecture.md
CONNECTIONS = 8  # to PostgreSQL, for the engine only
PART = 500  # workflows deleted at once

log = structlog.get_logger()


class EngineConnection(sqlite3.Connection):
    """A connection to the engine's own SQLite file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA journal_mode=WAL")
        self.execute("PRAGMA synchronous=NORMAL")  # commits do not wait for the disk; lost steps are repeated
        self.execute("PRAGMA secure_delete=ON")  # deleted data is overwritten
        if sqlite3.sqlite_version_info < (3, 42):  # the engine uses sub-second times, which older versions lack
            self.create_function(
                "unixepoch",
                -1,
                lambda *wanted: time.time() if {"subsec", "subsecond"} & {*wanted} else int(time.time()),
            )


def configure(database_url: str, replica: str) -> None:
    """Configure the engine for this process, under the unique name `replica`."""
    config: DBOSConfig = {
        "name": "plumbline",
        "system_database_url": database_url,
        "application_version": VERSION,
        "executor_id": replica,
        "log_level": "ERROR",
        "serializer": JsonSerializer(),
    }
    if database_url.startswith("sqlite"):
        config["db_engine_kwargs"] = {"connect_args": {"factory": EngineConnection}}
    else:
        config["sys_db_pool_size"] = CONNECTIONS
    DBOS(config=config)


@contextmanager
def client(database_url: str) -> Generator[DBOSClient]:
    """Open the workflow database for a process that runs no workflows."""
    connected = (
        sa.create_engine(database_url, connect_args={"factory": EngineConnection})
        if database_url.startswith("sqlite")
        else None
    )
    opened = DBOSClient(system_database_url=database_url, system_database_engine=connected, serializer=JsonSerializer())
    try:
        yield opened
    finally:
        opened.destroy()
        if connected is not None:
            connected.dispose()


async def launch(database_url: str, replica: str) -> None:
    """Start the configured engine. Raises StoreUnavailable if its database is; it can then be started again."""
    try:
        with outages_as(StoreUnavailable, file="workflows.sqlite"):
            await asyncio.to_thread(DBOS.launch)
    except StoreUnavailable:
        await stop()
        configure(database_url, replica)
        raise


async def stop() -> None:
    """Stop the engine, and give the event loop a new default executor in place of the engine's."""
    await asyncio.to_thread(DBOS.destroy)  # workflows were waited for, and interrupted
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


class Interrupted(asyncio.CancelledError):
    """The engine could not record progress. The workflow keeps its last recorded state and is resumed later.

    The engine treats every other exception as the workflow's outcome, and records it when it can.
    """


@contextmanager
def interruptions() -> Generator[None]:
    """Raise Interrupted if the engine's database fails within the block."""
    try:
        yield
    except DBAPIError as error:
        log.warning("workflow cannot be written", reason=" ".join(str(error.orig).split()))
        raise Interrupted from error


async def outcome(workflow_id: str, running: Any) -> object:
    """Return the result of a workflow, whichever process finishes it, or raise its error.

    `running` is its local handle. A failure to record progress does not end the workflow, which is then resumed by some
    process.
    """
    try:
        return await running.get_result()
    except Exception as error:
        status = await DBOS.get_workflow_status_async(workflow_id)
        if status is None or status.status not in UNFINISHED:
            raise
        log.warning("workflow was interrupted", key=workflow_id, reason=str(error))
    except asyncio.CancelledError:
        if (current := asyncio.current_task()) is not None and current.cancelling():
            raise
    handle: WorkflowHandleAsync[object] = await DBOS.retrieve_workflow_async(workflow_id)
    return await handle.get_result(polling_interval_sec=INTERVAL)


async def left_by(replicas: list[str]) -> list[WorkflowStatus]:
    """Return the unfinished workflows of dead replicas, except those queued for others of this version."""
    left = await _unfinished(replicas)
    return [each for each in left if not (each.status == "ENQUEUED" and each.app_version == VERSION)]


async def under_way(replica: str) -> list[str]:
    """Return the ids of the workflows that this replica has started and not finished."""
    return [each.workflow_id for each in await _unfinished([replica]) if each.status == "PENDING"]


async def resume(workflow_ids: list[str]) -> None:
    """Let any replica of this version resume the workflows."""
    if workflow_ids:
        await DBOS.resume_workflows_async(workflow_ids)


async def forget(workflow_ids: list[str]) -> None:
    """Delete workflows and their steps."""
    await DBOS.delete_workflows_async(workflow_ids)


async def forget_before(at: datetime) -> int:
    """Delete the workflows that ended before a time. Returns their number."""
    count = 0
    while ended := await DBOS.list_workflows_async(
        completed_before=at.isoformat(), limit=PART, load_input=False, load_output=False
    ):
        await forget([each.workflow_id for each in ended])
        count += len(ended)
    return count


async def _unfinished(replicas: list[str]) -> list[WorkflowStatus]:
    return await DBOS.list_workflows_async(
        status=list(UNFINISHED), executor_id=list(replicas), load_input=False, load_output=False
    )


UNFINISHED = ("PENDING", "ENQUEUED", "DELAYED")

_ERRORS = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, PlumblineError)
}


class RecordedError(PlumblineError):
    """An error that a step raised before its process ended, and that is not one of Plumbline's own errors."""


class JsonSerializer(Serializer):
    """Serializes JSON values and exceptions.

    An error of `core.model.errors` is restored as its type; any other exception as a RecordedError that names it.
    """

    def name(self) -> str:
        return "plumbline_json"

    def serialize(self, data: Any) -> str:
        """Return the data as JSON. Raises TypeError or ValueError for anything but a JSON value or an exception."""
        if isinstance(data, dict) and data.keys() == {"args", "kwargs"}:
            return json.dumps(data, allow_nan=False)  # a workflow's arguments, which the engine expects back as a tuple
        if not isinstance(data, BaseException):
            return json.dumps({"value": data}, allow_nan=False)  # ASCII, because databases cannot store every character
        error = {"type": type(data).__name__, "message": str(data), "retry_after": getattr(data, "retry_after", None)}
        return json.dumps({"error": error})

    def deserialize(self, serialized_data: str) -> Any:
        """Return the data. Raises ValueError for text that `serialize` does not write."""
        written: object = json.loads(serialized_data)
        fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
        if fields.keys() == {"value"}:
            return fields["value"]
        if fields.keys() == {"error"}:
            return _error(fields["error"])
        if fields.keys() == {"args", "kwargs"} and isinstance(fields["args"], list):
            return fields | {"args": tuple(cast("list[Any]", fields["args"]))}
        raise ValueError("This is neither a value nor an error of a workflow.")


def _error(written: Any) -> PlumblineError:
    match written:
        case {"type": str(name), "message": str(message), "retry_after": None | int() | float() as retry_after}:
            kind = _ERRORS.get(name)
        case _:
            raise ValueError("This is not an error of a workflow.")
    if kind is None:
        return RecordedError(f"{name}: {message}")
    return kind(message, retry_after) if issubclass(kind, Unavailable) else kind(message)


def _never_read(cls: DefaultSerializer, serialized_data: str) -> Any:  # noqa: ARG001 -- as the engine names them
    raise PlumblineError("A workflow was written as pickle, which can run code and is never read.")


def _never_written(self: DefaultSerializer, data: Any) -> str:  # noqa: ARG001 -- the same
    raise PlumblineError("Plumbline never writes a workflow as pickle.")


DefaultSerializer.deserialize = _never_read
DefaultSerializer.serialize = _never_written


LONG_DEAD = timedelta(hours=2)
INTERVAL = 1.0  # seconds between checks of other processes; less than NEW_SESSION_TIMEOUT in adapters/store/store.py
NOT_CHECKED = "has not looked at the database yet"

TAKEN_OVER = Counter("plumbline_workflows_taken_over_total", "Workflows that went on after their process died")
RESUMED = Counter("plumbline_workflows_resumed_total", "Workflows that went on after the engine could not write")


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
            left = await left_by(dead)
            await resume([each.workflow_id for each in left if each.app_version == VERSION])
            others = [each.workflow_id for each in left if each.app_version != VERSION]
            # In this order, a crash in between loses nothing, and nobody waits for a deleted workflow.
            if others:
                async with self._store.transaction() as transaction:
                    await transaction.tasks.reopen(others, dead[0])
                await forget(others)
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
        stuck = frozenset(await under_way(self._name)) - self._running()
        still = stuck & self._stuck  # one may be just starting or ending, so it must be stuck twice
        self._stuck = stuck - still
        if still:
            await resume(sorted(still))
            RESUMED.inc(len(still))
            log.warning("workflows were resumed", workflows=len(still))

    def _say(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.error("database is in trouble", reason=trouble)
        elif self.trouble not in ("", NOT_CHECKED) and not trouble:
            log.info("database is fine")
        self.trouble = trouble
        self._checked.set()
