"""The workflow engine: set-up, state, and recovery of workflows whose process died.

Its SQLite file is written without waiting for the disk. A killed process loses nothing; a power failure may lose the
last steps, which are then repeated, or whole workflows, which are started again from their unfinished tasks.

Inputs and outputs of workflows are JSON, which cannot run code. The engine's own format is pickle, which can, and the engine
reads it wherever a row is marked with it: anybody who can write a row, for example through a backup, could run code.
Importing this module disables that reader; data of earlier versions is detected without being read.
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
from core.model.errors import ConfigurationError, PlumblineError, Unavailable

VERSION = "2"  # of the workflows: see "Versions of workflows" in docs/architecture.md
CONNECTIONS = 8  # to PostgreSQL, for the engine only
POLLING_INTERVAL = 1.0  # seconds between checks of a workflow in another process
PART = 500  # workflows deleted at once

DRAIN = (
    "Drain them: start that version again, wait until plumbline_tasks_under_way in /metrics is 0, stop it, then start this "
    "one. If it can no longer run, set PLUMBLINE_BEGIN_ANEW=1 for one start. That work then starts from the beginning."
)

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
    connected = None
    if database_url.startswith("sqlite"):
        connected = sa.create_engine(database_url, connect_args={"factory": EngineConnection})
    opened = DBOSClient(system_database_url=database_url, system_database_engine=connected, serializer=JsonSerializer())
    try:
        yield opened
    finally:
        opened.destroy()
        if connected is not None:
            connected.dispose()


async def launch(database_url: str, replica: str, *, begin_anew: bool = False) -> None:
    """Start the configured engine, retrying for SERVER_START_TIMEOUT at most if the database server drops the connection.

    Raises ConfigurationError if an earlier version left unfinished workflows that cannot be read safely, unless they
    may be restarted (`begin_anew`).
    """
    deadline = time.monotonic() + (0 if database_url.startswith("sqlite") else SERVER_START_TIMEOUT)
    while True:
        try:
            if not begin_anew:
                await asyncio.to_thread(refuse_pickled, database_url, DRAIN)
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
        if not await _is_unfinished(workflow_id):
            raise
        log.warning("workflow was interrupted", key=workflow_id, reason=str(error))
    except asyncio.CancelledError:
        if (current := asyncio.current_task()) is not None and current.cancelling():
            raise
    handle: WorkflowHandleAsync[object] = await DBOS.retrieve_workflow_async(workflow_id)
    return await handle.get_result(polling_interval_sec=POLLING_INTERVAL)


async def _is_unfinished(workflow_id: str) -> bool:
    status = await DBOS.get_workflow_status_async(workflow_id)
    return status is not None and status.status in UNFINISHED


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
SCHEMA = "dbos"  # of PostgreSQL

_PICKLE = "py_pickle"  # the engine's name of the format
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


def refuse_pickled(database_url: str, way_out: str) -> None:
    """Raise ConfigurationError if an unfinished workflow was written as pickle, without reading it.

    `way_out` is appended to the message for the operator.
    """
    if count := _pickled(database_url):
        raise ConfigurationError(
            f"{count} unfinished workflows were written by an earlier version of Plumbline as pickle, a format that can "
            f"run code and is never read. {way_out}"
        )


def _pickled(database_url: str) -> int:
    """Return the number of unfinished workflows with pickled data."""
    url = sa.make_url(database_url)
    is_server = url.get_backend_name() == "postgresql"
    schema = SCHEMA if is_server else None
    workflow = sa.table(
        "workflow_status", sa.column("workflow_uuid"), sa.column("status"), sa.column("serialization"), schema=schema
    )
    step = sa.table("operation_outputs", sa.column("workflow_uuid"), sa.column("serialization"), schema=schema)
    steps = sa.select(step.c.workflow_uuid).where(step.c.serialization == _PICKLE)
    unfinished = sa.select(sa.func.count()).where(
        workflow.c.status.in_(UNFINISHED),
        (workflow.c.serialization == _PICKLE) | workflow.c.workflow_uuid.in_(steps),
    )
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg") if is_server else url)
    try:
        with engine.connect() as connection:
            if not sa.inspect(connection).has_table(workflow.name, schema=schema):
                return 0
            return connection.execute(unfinished).scalar_one()
    finally:
        engine.dispose()


def _never_read(cls: DefaultSerializer, serialized_data: str) -> Any:  # noqa: ARG001 -- as the engine names them
    raise PlumblineError("A workflow was written as pickle, which can run code and is never read.")


def _never_written(self: DefaultSerializer, data: Any) -> str:  # noqa: ARG001 -- the same
    raise PlumblineError("Plumbline never writes a workflow as pickle.")


DefaultSerializer.deserialize = _never_read
DefaultSerializer.serialize = _never_written
