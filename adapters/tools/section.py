"""The sections of `tools` in plumbline.yaml, and what tools share: files under a folder, and reading of several parts."""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Annotated, Generic, TypeVar

from pydantic import Field
from yarl import URL

from adapters.http import Http, Token, gaps_in, unread
from adapters.section import Host, Section
from core.model.errors import ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import (
    ANSWER_BY,
    AlertMonitor,
    Change,
    ChangeReader,
    CheckedTool,
    CodeReader,
    DependencyReader,
    LogReader,
    MetricReader,
    Partial,
    Toolbox,
    gap_of,
)
from core.rca.observations import UNREAD

Named = Annotated[dict[str, Annotated[str, Field(min_length=1)]], Field(min_length=1)]  # service → its name in the tool


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that investigations may read."""

    logs: tuple[LogReader, ...] = ()
    metrics: tuple[MetricReader, ...] = ()
    changes: tuple[ChangeReader, ...] = ()
    code: tuple[CodeReader, ...] = ()
    toolboxes: tuple[Toolbox, ...] = ()
    monitors: tuple[AlertMonitor, ...] = ()
    graphs: tuple[DependencyReader, ...] = ()

    @property
    def checked(self) -> list[CheckedTool]:
        """Return the distinct tools whose access can be checked."""
        every = (*self.logs, *self.metrics, *self.changes, *self.code, *self.toolboxes, *self.monitors, *self.graphs)
        return [tool for tool in {id(each): each for each in every}.values() if isinstance(tool, CheckedTool)]


class ToolSection(Section):
    """A system that an investigation may read."""

    name: str

    def open(self, host: Host) -> Tools:
        """Return the tools that read the system. Raises ConfigurationError for a missing secret or certificate."""
        raise NotImplementedError


def open_tools(sections: Iterable[ToolSection], host: Host) -> Tools:
    """Open the tools of all sections. Raises ConfigurationError, as they do."""
    opened = [section.open(host) for section in sections]
    kinds = [each.name for each in fields(Tools)]
    return Tools(*(tuple(each for tools in opened for each in getattr(tools, kind)) for kind in kinds))


def open_http(name: str, url: str, variable: str | None, host: Host, *, tls: ssl.SSLContext | bool = True) -> Http:
    """Open a server with the bearer token in an environment variable, if there is one.

    Errors, which chats show, name the server by its address without a name and password.
    """
    token = Token(f"Bearer {host.settings.secret(variable, name)}" if variable else "")
    return Http(system_at(name, url), url, host.session, token, tls=tls)


def system_at(name: str, url: str) -> str:
    """Return how errors call the system at an address."""
    return f"{name} at {URL(url).with_user(None)}"


MAX_KEPT = 16 * 1024 * 1024  # bytes of files on disk whose content is cached per tool
UNSETTLED = 2_000_000_000  # nanoseconds after a modification in which another one could have the same time stamp

T = TypeVar("T")


class ParsedFiles(Generic[T]):
    """The files with some suffixes under a folder, each with the result of `read`.

    A file is read once per change. `read` may raise OSError or ToolUnavailable.
    """

    def __init__(self, root: Path, suffixes: tuple[str, ...], read: Callable[[Path], T]) -> None:
        self._root = root
        self._suffixes = suffixes
        self._read = read
        self._contents: OrderedDict[Path, tuple[tuple[int, int], T]] = OrderedDict()
        self._lock = Lock()

    def paths(self) -> list[Path]:
        """Return the files sorted by path. Raises ToolUnavailable if the root cannot be listed."""
        if not self._root.is_dir():
            raise ToolUnavailable(
                f"The folder {self._root} does not exist: correct the path of this tool in plumbline.yaml."
            )
        files = (Path(folder, name) for folder, _, names in os.walk(self._root) for name in names)
        return sorted(path for path in files if path.name.endswith(self._suffixes) and path.is_file())

    def of_service(self, folder: str, service: str) -> list[Path]:
        """Return the files `<root>/**/<folder>/<service><suffix>`.

        The service's name is compared and never becomes part of a path, so an alert cannot point outside the root.
        """
        names = {f"{service}{suffix}" for suffix in self._suffixes}
        return [path for path in self.paths() if path.name in names and path.parent.name == folder]

    def content(self, path: Path) -> T:
        """Return the content of a file. Raises OSError if it cannot be read."""
        with self._lock:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            cached = self._contents.pop(path, None)
            content = cached[1] if cached is not None and cached[0] == stamp else self._read(path)
            if status.st_size <= MAX_KEPT and _is_settled(status.st_mtime_ns):
                self._contents[path] = (stamp, content)
                while sum(size for (_, size), _ in self._contents.values()) > MAX_KEPT:
                    self._contents.popitem(last=False)
            return content

    def is_growing(self, path: Path) -> bool:
        """Return whether a file was just written, so that caching its content is useless."""
        return not _is_settled(path.stat().st_mtime_ns)


def _is_settled(changed: int) -> bool:
    return changed < time.time_ns() - UNSETTLED


class FilesTool(ToolSection):
    """A tool that reads the files in a folder of this machine."""

    path: Path


MAX_LINE = 8_192  # characters or bytes per record of a log
MAX_TITLE = 500  # characters
MAX_DETAIL = 20_000  # characters of a text or of a diff
MAX_FILES = 200  # per change
MAX_COMMITS = 100  # or services, per change
MAX_NAMED = 10  # items or gaps that are named
GRACE = 0.2  # seconds before a reader's deadline in which it joins the parts that were read

Part = tuple[str, Awaitable[list[T]]]  # with its name


def clipped(change: Change) -> Change:
    """Return a change with no more of each field than one needs to judge it."""
    return replace(
        change,
        author=change.author[:MAX_TITLE],
        title=change.title[:MAX_TITLE],
        detail=change.detail[:MAX_DETAIL],
        files=change.files[:MAX_FILES],
        services=change.services[:MAX_COMMITS],
        commits=change.commits[:MAX_COMMITS],
        diff=change.diff[:MAX_DETAIL],
    )


def refuse_gaps(gaps: Sequence[Gap]) -> None:
    """Raise ToolUnavailable with the first gaps, if there are any."""
    if gaps:
        more = f"; and {len(gaps) - MAX_NAMED} more" if len(gaps) > MAX_NAMED else ""
        raise ToolUnavailable(f"{'; '.join(gap.text for gap in gaps[:MAX_NAMED])}{more}.")


def chosen(items: Sequence[T], most: int, part: str, name: Callable[[T], str]) -> Partial[T]:
    """Return the first items, which are to be the most relevant ones, with a gap that counts and names the others."""
    others = items[most:]
    named = ", ".join(map(name, others[:MAX_NAMED])) + ("…" if len(others) > MAX_NAMED else "")
    left_out = [Gap(part, GapReason.LEFT_OUT, f"{len(others)} of {len(items)}: {named}")] if others else []
    return Partial(items[:most], (*gaps_in(items), *left_out))


async def kept(tool: str, parts: Sequence[Part[T]]) -> Partial[T]:
    """Return the items of all parts that could be read, with gaps for the others. Raises if no part could be read.

    `tool` is the reader's name; empty within one of its parts.
    """
    items: Partial[T] = Partial()
    errors: list[ToolUnavailable] = []
    outcomes = await answers([(name, _collected(part)) for name, part in parts])
    for (name, _), outcome in zip(parts, outcomes, strict=True):
        if isinstance(outcome, ToolUnavailable):
            errors.append(outcome)
            items.gaps += (gap_of(_part(tool, name), outcome),)
        else:
            items += outcome
            items.gaps += tuple(replace(gap, tool=_part(tool, gap.tool or name)) for gap in outcome.gaps)
    if errors and len(errors) == len(parts):
        raise errors[0]
    return items


async def _collected(part: Awaitable[list[T]]) -> Partial[T]:
    """Return the items of a part with the gaps of every list that was read for it."""
    with unread() as gaps:
        items = await part
    return Partial(items, dict.fromkeys((*gaps_in(items), *gaps)))


async def whole_text(output: Awaitable[str]) -> str:
    """Return a tool's output with a line for each gap of the lists that were read for it."""
    with unread() as gaps:
        text = await output
    return with_gaps(text, gaps)


def with_gaps(text: str, gaps: Iterable[Gap]) -> str:
    """Return a tool's output with a line for each gap in it."""
    return "\n".join([text, *(f"{UNREAD}{gap.text.removeprefix(': ')}" for gap in dict.fromkeys(gaps))])


async def detailed(tool: str, items: Sequence[tuple[str, T, Awaitable[T]]]) -> Partial[T]:
    """Return items with their details, in order, or without them, and with a gap, where those could not be read."""
    complete: Partial[T] = Partial()
    outcomes = await answers([(name, details) for name, _, details in items])
    for (name, item, _), outcome in zip(items, outcomes, strict=True):
        if isinstance(outcome, ToolUnavailable):
            complete.append(item)
            complete.gaps += (gap_of(_part(tool, name), outcome),)
        else:
            complete.append(outcome)
    return complete


def _part(tool: str, name: str) -> str:
    return f"{tool}: {name}" if tool and not name.startswith(f"{tool}: ") else name


async def answers(parts: Sequence[tuple[str, Awaitable[T]]]) -> list[T | ToolUnavailable]:
    """Return the answer of each part or its error, in order. Parts that miss the reader's deadline are given up."""
    until = ANSWER_BY.get() - GRACE
    before = ANSWER_BY.set(until)  # so that the parts of a part are joined earlier
    tasks = [asyncio.ensure_future(part) for _, part in parts]
    ANSWER_BY.reset(before)
    left = until - asyncio.get_running_loop().time()
    try:
        if tasks:
            await asyncio.wait(tasks, timeout=None if math.isinf(left) else max(0.0, left))
        return [_outcome(name, task) for (name, _), task in zip(parts, tasks, strict=True)]
    finally:
        for task in tasks:
            task.cancel()


def _outcome(name: str, task: asyncio.Future[T]) -> T | ToolUnavailable:
    try:
        if not task.done():
            raise TimeoutError("no answer in time")
        return task.result()
    except ToolUnavailable as error:
        return error
    except OSError as error:
        unavailable = ToolUnavailable(f"{name} cannot be read: {error.strerror or error}.")
        unavailable.__cause__ = error
        return unavailable
