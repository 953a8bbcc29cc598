"""The workflow engine: how it keeps its state, and what becomes of workflows whose process died.

Its SQLite file is written without waiting for the disk. A killed process loses nothing by that; a power cut may lose the
last steps, which are then done again, or whole workflows, whose tasks have not ended and start them again.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import sqlalchemy as sa
import structlog
from dbos import DBOS, DBOSClient, DBOSConfig, WorkflowHandleAsync, WorkflowStatus
from sqlalchemy.exc import DBAPIError

from adapters.store.database import DAMAGE, PATIENCE, PAUSE, is_damaged
from bot.work.workflow_state import UNFINISHED, JsonSerializer, refuse_pickled
from core.model.errors import PlumblineError

VERSION = "2"  # of the workflows: see "Versions of workflows" in CONTRIBUTING.md
CONNECTIONS = 8  # to PostgreSQL, of the engine alone
POLLING_INTERVAL = 1.0  # seconds between looks at a workflow that another process runs
PART = 500  # workflows deleted at once

DRAIN = (
    "Drain them: start that version again, wait until plumbline_tasks_under_way in /metrics is 0, stop it, then start this "
    "one. Where it can no longer run, set PLUMBLINE_BEGIN_ANEW=1 for one start: the work is then begun anew."
)

log = structlog.get_logger()


class EngineConnection(sqlite3.Connection):
    """A connection to the engine's own SQLite file."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.execute("PRAGMA journal_mode=WAL")
        self.execute("PRAGMA synchronous=NORMAL")  # a commit waits for no disk; what is lost is done again
        self.execute("PRAGMA secure_delete=ON")  # what is forgotten is overwritten
        if sqlite3.sqlite_version_info < (3, 42):  # the engine asks for the sub-second clock, which is newer
            self.create_function("unixepoch", -1, _unix_time)


def _unix_time(*modifiers: str) -> float:
    return time.time() if "subsec" in modifiers or "subsecond" in modifiers else int(time.time())


def configure(database_url: str, replica: str) -> None:
    """Set the engine up for this process, which is called `replica` and nobody ever was before."""
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
    """Open the database of the workflows for a process that runs none."""
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
    """Start the engine that was set up; again if its server drops the connection meanwhile, for PATIENCE at most.

    Raises ConfigurationError where an earlier version left unfinished workflows that cannot be read safely, unless they
    may be begun anew, as `bot.work.replica` does with those of another version.
    """
    deadline = time.monotonic() + (0 if database_url.startswith("sqlite") else PATIENCE)
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
    """Also gives the loop an executor of its own again: the engine puts its own there, and takes it along."""
    await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=5)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


class Interrupted(asyncio.CancelledError):
    """The engine could not write what was done: the workflow stays as it was written last, and is resumed later.

    The engine takes every other exception for the workflow's own outcome, and writes it as soon as it can again.
    """


@contextmanager
def interruptions() -> Generator[None]:
    """Around what the engine does in a workflow. Raises Interrupted where its database fails."""
    try:
        yield
    except DBAPIError as error:
        log.warning("workflow cannot be written", reason=" ".join(str(error.orig).split()))
        raise Interrupted from error


async def outcome(workflow_id: str, running: Any) -> object:
    """The result of a workflow, whichever process runs it to its end. Raises what it raised.

    `running` is its handle here. What the engine could not write does not end it: somebody resumes the workflow.
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
    """Return the unfinished workflows of dead replicas, except those queued for others of its version."""
    left = await _unfinished(replicas)
    return [each for each in left if not (each.status == "ENQUEUED" and each.app_version == VERSION)]


async def under_way(replica: str) -> list[str]:
    """The ids of the workflows that this replica runs, or began to run."""
    return [each.workflow_id for each in await _unfinished([replica]) if each.status == "PENDING"]


async def resume(workflow_ids: list[str]) -> None:
    """Let any replica of this version go on with them where they were."""
    if workflow_ids:
        await DBOS.resume_workflows_async(workflow_ids)


async def forget(workflow_ids: list[str]) -> None:
    """Delete workflows and their steps."""
    if workflow_ids:
        await DBOS.delete_workflows_async(workflow_ids)


async def forget_before(at: datetime) -> int:
    """Delete the workflows that ended before this time; how many that were."""
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
