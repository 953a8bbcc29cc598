"""The commands `plumbline llm up` and `plumbline llm check`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from adapters.model_files import fetch_model_file, find_model_file
from bot.commands.llama_launch import HUB, Hardware, Launch, hardware, server_command
from bot.commands.llm_check import Ability, check_model
from bot.config.settings import Settings
from bot.observability.model_metrics import TokenTally
from bot.wiring.models import EXAM_FILE, KeptExam, llama_server
from core.model.errors import ConfigurationError
from handlers.questions.examine_model import keep_not

Start = Callable[[list[str]], None]


def exec_command(command: list[str]) -> None:
    """Replace this process with the server, which then owns the terminal and receives every signal."""
    os.execv(command[0], command)  # noqa: S606 -- no shell is wanted, and the program was found on the PATH


async def run_up(
    settings: Settings, model: str, host: str, port: int, out: Console, *, hub: str = HUB, start: Start = exec_command
) -> int:
    """Download the model if it is no file, and replace this process with a server for it."""
    path = Path(model) if await asyncio.to_thread(Path(model).is_file) else await _fetched(settings, model, hub, out)
    found = await hardware()
    launch = Launch(path, (await asyncio.to_thread(path.stat)).st_size, host, port)
    command = server_command(launch, found)
    out.print(Text(f"{path} on {_described(found)}."))
    out.print(Text(f"Plumbline finds it with PLUMBLINE_LLM_URL=http://{host}:{port}"))
    out.print(Text(" ".join(command), style="dim"))
    start(command)
    return 0


async def _fetched(settings: Settings, name: str, hub: str, out: Console) -> Path:
    async with aiohttp.ClientSession() as session:
        file = await find_model_file(session, name, hub)
        with _download_bar(file.path, out) as on_progress:
            return await fetch_model_file(session, file, settings.data_dir / "models", hub, on_progress)


@contextmanager
def _download_bar(name: str, out: Console) -> Generator[Callable[[int, int], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=out, transient=True, disable=not out.is_terminal
    ) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _described(found: Hardware) -> str:
    memory = f"{found.gpu_memory / (1 << 30):.0f} GiB of free GPU memory" if found.gpu_memory else "no NVIDIA GPU"
    return f"{found.cores} cores and {memory}"


async def run_check(settings: Settings, url: str, out: Console) -> int:
    """Print the abilities of the servers, and keep the outcome of the exam of those in PLUMBLINE_LLM_URL for `serve`.

    Returns exit code 1 if a needed ability is missing.
    """
    configured = not url
    if url:
        settings = settings.model_copy(update={"llm_url": url})
    if not settings.llm_urls:
        raise ConfigurationError("No language model is set: give --url, or set PLUMBLINE_LLM_URL.")
    missing = False
    async with aiohttp.ClientSession() as session:
        for address in settings.llm_urls:
            model = llama_server(address, settings, session, TokenTally())
            keep = KeptExam(settings.data_dir / EXAM_FILE, model).save if configured else keep_not
            abilities = [ability async for ability in check_model(model, keep)]
            out.print(_table(f"{model.name} at {address}", abilities))
            missing = missing or any(ability.needed and not ability.works for ability in abilities)
    return 1 if missing else 0


def _table(title: str, abilities: list[Ability]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("ability", "", "needed", "found"):
        table.add_column(column)
    for ability in abilities:
        mark, style = ("✓", "green") if ability.works else ("✗", "red") if ability.needed else ("!", "yellow")
        table.add_row(ability.name, Text(mark, style), "yes" if ability.needed else "no", Text(ability.found))
    return table
