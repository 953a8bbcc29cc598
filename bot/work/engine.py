"""The workflow engine: set-up, state, and recovery of workflows whose process died.

Its SQLite file is written without waiting for the disk. A killed process loses nothing; a power failure may lose the
last steps, which are then repeated, or whole workflows, which are started again from their unfinished tasks.

Inputs and outputs of workflows are JSON, which cannot run code. The engine's own format is pickle, which can, and the engine
reads it wherever a row is marked with it: anybody who can write a row, for example through a backup, could run code.
Importing this module disables that reader.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any, cast

import sqlalchemy as sa
import structlog
from dbos import DBOS, DBOSClient, DBOSConfig, Serializer, WorkflowHandleAsync, WorkflowStatus
from dbos._serialization import DefaultSerializer
from sqlalchemy.exc import DBAPIError

from adapters.store.database import DAMAGE, PAUSE, SERVER_START_TIMEOUT, is_damaged
from core.model import errors
from core.model.errors import PlumblineError, Unavailable

VERSION = "1"  # of the workflows: see "Versions of workflows" in docs/architecture.md
CONNECTIONS = 8  # to PostgreSQL, for the engine only
POLLING_INTERVAL = 1.0  # seconds between checks of a workflow in another process
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
            self.create_function("unixepoch", -1, _unix_time)


def _unix_time(*modifiers: str) -> float:
    return time.time() if "subsec" in modifiers or "subsecond" in modifiers else int(time.time())


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
    """Start the configured engine, retrying for SERVER_START_TIMEOUT at most if the database server drops the connection."""
    deadline = time.monotonic() + (0 if database_url.startswith("sqlite") else SERVER_START_TIMEOUT)
    while True:
        try:
            return await asyncio.to_thread(DBOS.launch)
        except DBAPIError as error:
            if is_damaged(error):
                raise PlumblineError(DAMAGE.format(file="workflows.sqlite", reason=error.orig)) from error
            if time.monotonic() >= deadline:
                raise
            log.warning("workflow engine cannot start yet", reason=" ".join(str(error.orig).split()))
        await stop()
        await asyncio.sleep(PAUSE)
        configure(database_url, replica)


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
    return await handle.get_result(polling_interval_sec=POLLING_INTERVAL)


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
