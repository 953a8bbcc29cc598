"""`python -m tests.benchmarks walk`: the moves between files of a reader who follows the code as it runs.

The reader begins in `update_chats`, which posts a new alert in Slack, or in `prepare_answer`, which answers a question. Each
call leads to the file of the function that is called, its end back to the file of the caller; every call counts, in every
file of the product, also in tasks and threads that the calls begin. What a module does when it is imported does not count.

- *stays* are the files in the order in which the reader comes to them, a file again after each other one.
- *rooms* are the different files.
- *returns* are the stays in a file where the reader was before: stays without rooms.

The company is that of the scenarios, and the process answers its first question: nothing is cached yet.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Column, Table

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from bot.web.webhook_sources import webhook_parser
from bot.wiring.application import Core, ingest, new_incident_id, redactor
from bot.wiring.ports import all_ports
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.errors import PlumblineError
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import update_chats
from handlers.questions.answer_question import prepare_answer
from tests.adversarial import PACKAGES, ROOT
from tests.benchmarks.slack_memory import remembering_slack
from tests.fakes.clock import FakeClock
from tests.scenario.company import open_company
from tests.scenario.webhooks import alert, delivery

PRODUCT = tuple(f"{ROOT}/{package}/" for package in PACKAGES)
QUESTION = "How do I roll back a canary?"
CHANNEL = Place(Platform.SLACK, "C0PAGES")
SUSPENDED = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR  # flags of what goes on after it returned
MOST_VISITED = 8  # files that are listed


@dataclass(slots=True, eq=False)
class Visit:
    """A call of a function in a file, with the calls that it makes, in the order of their beginning."""

    file: str
    calls: list[Visit] = field(default_factory=list["Visit"])


class Walk:
    """The first call of a function, from which everything that it calls is known.

    The visit under way is a variable of the context, which tasks and threads take over from what begins them.
    """

    def __init__(self, first: CodeType, files: tuple[str, ...] = PRODUCT) -> None:
        self.begin: Visit | None = None
        self._first = first
        self._files = files
        self._now = ContextVar[Visit | None]("now", default=None)
        self._frames: dict[FrameType, tuple[Visit | None, Visit | None]] = {}

    def notice(self, frame: FrameType, event: str, _: object) -> None:
        """Follow a call or a return, as `sys.setprofile` tells of it: also of what is suspended, and goes on."""
        if event == "call" and frame.f_code.co_filename.startswith(self._files):
            before = self._now.get()
            visit = self._frames[frame][0] if frame in self._frames else self._visit(frame.f_code, before)
            self._frames[frame] = visit, before
            self._now.set(visit)
        elif event == "return" and frame in self._frames:
            self._now.set(self._frames[frame][1])
            if not frame.f_code.co_flags & SUSPENDED:
                del self._frames[frame]

    def _visit(self, code: CodeType, before: Visit | None) -> Visit | None:
        if code.co_name == "<module>":
            return None
        visit = Visit(code.co_filename)
        if before is not None:
            before.calls.append(visit)
        elif code is self._first and self.begin is None:
            self.begin = visit
        else:
            return None
        return visit


@contextmanager
def profiled(notice: Callable[[FrameType, str, object], object]) -> Iterator[None]:
    """Tell `notice` of all calls and returns of this thread, and of the work that it gives to others."""
    submit = ThreadPoolExecutor.submit

    def profiled_submit(self: ThreadPoolExecutor, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        context = copy_context()

        def run() -> Any:
            sys.setprofile(notice)
            try:
                return context.run(work, *arguments, **options)
            finally:
                sys.setprofile(None)

        return submit(self, run)

    with patch.object(ThreadPoolExecutor, "submit", profiled_submit):
        sys.setprofile(notice)
        try:
            yield
        finally:
            sys.setprofile(None)


def stays(begin: Visit) -> list[str]:
    """Return the files in the order in which the reader comes to them."""
    return [file for file, _ in groupby(_files(begin))]


def _files(visit: Visit) -> Iterator[str]:
    yield visit.file
    for call in visit.calls:
        yield from _files(call)
        yield visit.file


async def run() -> dict[str, Any]:
    """Return the figures of a question and of an alert."""
    question, alerted = Walk(prepare_answer.__code__), Walk(update_chats.__code__)
    with TemporaryDirectory(prefix="plumbline-walk-") as folder:
        async with remembering_slack() as (slack_url, slack), open_company(Path(folder)) as opened:
            await ingest(opened)
            core = replace(opened, clock=FakeClock(opened.clock.now()))
            with profiled(question.notice):
                await _answer(core)
            ports = all_ports(core, {Platform.SLACK: SlackMessenger(slack_client("xoxb-1", slack_url, core.session))})
            incident_id = await _opened(core)
            with profiled(alerted.notice):
                await update_chats(incident_id, ports)
            if not slack.messages:
                raise PlumblineError("The alert was not posted.")
    return {"measure": "walk", "question": _figures(question), "alert": _figures(alerted)}


async def _answer(core: Core) -> None:
    asker = Person(Platform.SLACK, "U0ADA")
    answer = await prepare_answer(
        Question("walk:1", QUESTION, asker, CHANNEL, Audience(), core.clock.now()), all_ports(core)
    )
    if answer.abstained:
        raise PlumblineError("The question was not answered.")


async def _opened(core: Core) -> str:
    """Return the id of the incident of an alert that has just arrived."""
    parse = webhook_parser(core.workspace.webhooks, "alertmanager")
    received = parse(json.dumps(delivery("walk", alert())).encode(), core.clock.now())
    incident = received and await open_incident(
        received,
        store=core.store,
        places_for=lambda _: (CHANNEL,),
        new_id=new_incident_id,
        redact=redactor(core),
        spelling=core.workspace.spelling,
    )
    if incident is None:
        raise PlumblineError("The alert opened no incident.")
    return incident.id


def _figures(walk: Walk) -> dict[str, Any]:
    if walk.begin is None:
        raise PlumblineError("The function where the walk begins was not called.")
    files = Counter(Path(file).relative_to(ROOT).as_posix() for file in stays(walk.begin))
    total = files.total()
    return {"stays": total, "rooms": len(files), "returns": total - len(files), "files": dict(files.most_common())}


def limited(figures: Mapping[str, Any]) -> dict[str, int]:
    """Return the figures that have a budget."""
    return {
        f"walk.{name}.{unit}": figures[name][unit]
        for name in ("alert", "question")
        for unit in ("stays", "rooms", "returns")
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    numbers = [Column(unit, justify="right") for unit in ("stays", "rooms", "returns")]
    table = Table("walk", *numbers, "most stays")
    for name in ("alert", "question"):
        row = figures[name]
        most = [f"{count:>4} {file}" for file, count in [*row["files"].items()][:MOST_VISITED]]
        table.add_row(name, *(f"{row[unit]:,}" for unit in ("stays", "rooms", "returns")), "\n".join(most))
    console.print(table)
