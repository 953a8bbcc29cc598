"""The sample company, indexed, whose bot is told something in a channel: what it says back, as people read it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from rich.console import Console

from adapters.terminal import render
from bot.commands.demo import SAMPLE_COMPANY
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, ingest, open_core
from bot.wiring.ports import all_ports
from core.model.conversation import Audience, Person, Place, Platform, Question
from handlers.questions.run_command import run_command
from tests.fakes.messenger import RecordingMessenger

WIDE = 10_000  # columns, so that no line is broken
CHANNEL = "ask-plumbline"

_numbers = count(1)


class SampleBot:
    """What a bot of the sample company says in a channel of the local page."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.messenger = RecordingMessenger()
        self._ports = all_ports(core, {Platform.CONSOLE: self.messenger})

    async def told(self, text: str, thread: str | None = None) -> str:
        """Return all that is said to a message, in a thread of its own or in this one."""
        number = next(_numbers)
        place = Place(Platform.CONSOLE, CHANNEL, thread or f"thread-{number}")
        asked = Question(
            f"console:{number}", text, Person(Platform.CONSOLE, "ada"), place, Audience(), self.core.clock.now()
        )
        before = set(self.messenger.standing)
        await run_command(asked, self._ports)
        return "\n".join(
            shown(message) for reference, message in self.messenger.standing.items() if reference not in before
        )


def shown(message: object) -> str:
    """Return a message as it is read."""
    console = Console(width=WIDE, no_color=True)
    with console.capture() as captured:
        console.print(render(message))  # type: ignore[arg-type]
    return captured.get()


@asynccontextmanager
async def sample_bot(folder: Path) -> AsyncIterator[SampleBot]:
    company = folder / "company"
    shutil.copytree(SAMPLE_COMPANY, company, ignore=shutil.ignore_patterns("live", "__pycache__"))
    (company / "live").mkdir()
    settings = Settings.model_validate(
        {"PLUMBLINE_DATA_DIR": folder / "data", "PLUMBLINE_CONFIG": company / "plumbline.yaml"}
    )
    async with open_core(settings, load_workspace(company / "plumbline.yaml")) as core:
        await ingest(core)
        yield SampleBot(core)
