"""The real bot in a process of its own that can be made to die at a given moment, as by a power cut."""

from __future__ import annotations

import asyncio
import importlib
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dbos._dbos import _get_or_create_dbos_registry

from adapters.slack.messenger import SlackMessenger
from adapters.teams.messenger import TeamsMessenger
from bot import server
from bot.config.settings import load_settings
from bot.config.workspace import load_workspace
from bot.telemetry import configure_logging
from bot.wiring.application import open_core
from bot.work.inbox import Dispatcher
from bot.work.schedules import INGEST
from bot.work.workflows import Handler, Turn, Workflows
from core.ports import Task
from tests.fakes.clock import no_schedules

INCIDENT_STEPS = ("present", "triage", "present", "explain", "conclude", "present", "details")
TIMEOUT = 300.0  # seconds, also on a busy machine, until a bot must have said something

# Forked from a process that has imported everything already: a start takes a fraction of a second.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    [
        "tests.scenario.mortal_bot",
        "adapters.qdrant_edge",
        "adapters.slack.inbound",
        "adapters.teams.inbound",
        "adapters.teams.messenger",
        "adapters.readers.reader",
        "aiosqlite",
    ]
)


class Moment(StrEnum):
    """When a bot dies."""

    NEVER = "never"
    AFTER_START = "a workflow is started, and has done nothing yet"
    BEFORE_STEP = "the steps before this one are done, and it is about to begin"
    SAID = "the chat has taken what this step had to post or to edit, and nobody has noted it"
    AFTER_STEP = "this step is done, and not checkpointed"
    ASLEEP = "not by itself: it acknowledges events and starts no workflow, until it is killed"


@dataclass(frozen=True, slots=True)
class Death:
    """`step` counts from 1 within the workflow; it is 0 where the moment has nothing to do with a step."""

    moment: Moment
    step: int = 0


class MortalBot:
    """One life of a bot. `steps` are the workflow steps that it has finished, by name."""

    def __init__(
        self,
        environment: Mapping[str, str],
        log: Path,
        death: Death | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> None:
        """`constants` replace what modules call `module.NAME`: a minute of patience, for one, is long for a test."""
        self.steps: list[str] = []
        self._log = log
        self._reports, reporting = _processes.Pipe(duplex=False)
        self._process = _processes.Process(
            target=_live, args=(dict(environment), log, death or Death(Moment.NEVER), dict(constants or {}), reporting)
        )
        self._process.start()
        reporting.close()

    async def address(self) -> str:
        """Where it listens, once it does."""
        report = await self._report()
        assert report is not None, f"The bot did not start:\n{self._log.read_text()}"
        return report

    async def finishes(self, step: str) -> None:
        """Wait until it has finished a step of this name."""
        while step not in self.steps:
            report = await self._report()
            assert report is not None, f"The bot died after {self.steps}:\n{self._log.read_text()}"
            self.steps.append(report)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def kill(self) -> None:
        self._process.kill()

    async def dies(self) -> None:
        """Wait for its violent end."""
        while (report := await self._report()) is not None:
            self.steps.append(report)
        await asyncio.to_thread(self._process.join, TIMEOUT)
        assert self._process.exitcode == -signal.SIGKILL, f"It did not die of this:\n{self._log.read_text()}"

    async def stop(self) -> None:
        """Let it finish what is under way, and end."""
        self._process.terminate()
        await asyncio.to_thread(self._process.join, TIMEOUT)
        assert self._process.exitcode == 0, f"It ended with {self._process.exitcode}:\n{self._log.read_text()}"

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._reports.close()

    async def _report(self) -> str | None:
        """What it says next, None if it is dead."""
        return await asyncio.to_thread(self._receive)

    def _receive(self) -> str | None:
        assert self._reports.poll(TIMEOUT), f"The bot is silent:\n{self._log.read_text()}"
        try:
            return self._reports.recv()
        except EOFError:
            return None


# --- in the bot's process --------------------------------------------------------------------------------------------


def _live(environment: dict[str, str], log: Path, death: Death, constants: dict[str, Any], reports: Connection) -> None:
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment)
    configure_logging("console")
    _prepare(death, reports)
    for name, value in constants.items():
        module, _, constant = name.rpartition(".")
        setattr(importlib.import_module(module), constant, value)
    asyncio.run(_serve(reports.send))


async def _serve(on_ready: Callable[[str], None]) -> None:
    settings = load_settings()
    async with open_core(settings, load_workspace(settings.config)) as core:
        await server.serve(core, on_ready)


def _prepare(death: Death, reports: Connection) -> None:
    """Put the killer where the bot will pass it."""
    run, start = Workflows._run, Dispatcher._start
    server.keep_schedules = no_schedules
    current_step: ContextVar[int] = ContextVar("current_step")
    calls = Counter[str]()

    def pass_by(moment: Moment, step: int = 0) -> None:
        if death == Death(moment, step):
            os.kill(os.getpid(), signal.SIGKILL)

    async def mortal_run(
        self: Workflows, name: str, handler: Handler, arguments: tuple[Any, ...], turn: Turn | None = None
    ) -> None:
        if name in ("ingest", "fit_triage"):
            return await run(self, name, handler, arguments, turn)
        positions = [number for number, each in enumerate(INCIDENT_STEPS, 1) if each == name] or [1]
        step = positions[min(calls[name], len(positions) - 1)]  # the first and the second time in this life
        calls[name] += 1
        current_step.set(step)
        pass_by(Moment.BEFORE_STEP, step)
        await run(self, name, handler, arguments, turn)
        pass_by(Moment.AFTER_STEP, step)
        return reports.send(name)

    async def mortal_start(self: Dispatcher, task: Task) -> None:
        if task.workflow != INGEST and death.moment is Moment.ASLEEP:
            await asyncio.Event().wait()
        await start(self, task)
        if task.workflow != INGEST:
            pass_by(Moment.AFTER_START)

    def mortal(say: Callable[..., Awaitable[Any]]) -> Any:
        async def said(*arguments: Any) -> Any:
            result = await say(*arguments)
            pass_by(Moment.SAID, current_step.get())
            return result

        return said

    # The engine looks once a second for what it should resume.
    _get_or_create_dbos_registry().get_internal_queue()._polling_interval_sec = 0.05
    Workflows._run = mortal_run
    Dispatcher._start = mortal_start
    for messenger in (SlackMessenger, TeamsMessenger):
        messenger.post = mortal(messenger.post)
        messenger.edit = mortal(messenger.edit)
