"""What the readers of all definitions return, over servers that answer as recorded or as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from adapters.readers.builds import Builds
from adapters.readers.definition import shipped
from adapters.readers.pages import Schedules
from adapters.readers.reader import Reader
from core.model.errors import ToolUnavailable
from core.ports import FailedBuild, Partial, PartialGraph
from tests.fakes.recorded_reader import HOUR, LIMIT, Server, reading, recording

KINDS = sorted(shipped())
EVERY = [(kind, part) for kind in KINDS for part in recording(kind).exchanges]


async def read_part(reader: Reader, part: str, service: str = "till") -> Any:
    match part:
        case "logs":
            return await reader.lines(service, HOUR, LIMIT)
        case "metrics":
            return await reader.series(service, HOUR)
        case "changes" | "commits" | "deployments":
            others = {"changes", "commits", "deployments"} - {part}
            definition = reader.definition.model_copy(update=dict.fromkeys(others))
            return await replace(reader, definition=definition).changes(HOUR)
        case "builds":
            build = await builds_of(reader).last_failure(service, HOUR.end)
            return Partial([build] if build else [])
        case "calls" | "spans":
            return await reader.dependencies(HOUR)
        case _:
            return await schedules(reader, part).people("tills", HOUR.start)


def builds_of(reader: Reader) -> Builds:
    return Builds(reader.name, reader.pages, reader.definition, reader.services)


def schedules(reader: Reader, part: str) -> Schedules:
    return Schedules(reader.name, reader.pages, reader.definition, {part: {"tills": ("P/1",)}})


async def outcome(reader: Reader, part: str) -> tuple[Any, str]:
    """What is found, or why nothing is."""
    try:
        return await read_part(reader, part), ""
    except ToolUnavailable as error:
        return Partial(), str(error)


def as_recorded(part: str, read: Any) -> list[str]:
    """What was understood, as a recording writes it."""
    match part:
        case "logs":
            return [f"{line.at:%H:%M:%S} {line.level} {line.text}" for line in read]
        case "metrics":
            return [
                " ".join([each.metric, *(f"{at:%H:%M:%S}={value:g}" for at, value in points(each))]) for each in read
            ]
        case "builds":
            return [f"{each.at:%H:%M:%S} {each.run} of {each.project}, {each.step}: {last_line(each)}" for each in read]
        case "changes" | "commits" | "deployments":
            return [
                f"{each.at:%H:%M:%S} {each.kind} {each.id} of {each.service} by {each.author}: {each.title}"
                + (f" ({', '.join(each.commits or [each.revision])})" if each.revision else "")
                for each in read
            ]
        case "calls" | "spans":
            return [f"{caller}: {', '.join(callees)}" for caller, callees in read.items()]
        case _:
            return list(read)


def last_line(build: FailedBuild) -> str:
    return build.log.rstrip().rpartition("\n")[2]


def points(series: Any) -> Sequence[tuple[Any, float]]:
    return list(zip(series.times, series.values, strict=True))


def gaps(read: Any) -> list[str]:
    assert isinstance(read, Partial | PartialGraph)
    return [gap.text for gap in read.gaps]


@asynccontextmanager
async def answering(kind: str, says: Any, **limits: Any) -> AsyncIterator[tuple[Reader, Server]]:
    server = Server(says=says)
    async with reading(recording(kind), server, **limits) as reader:
        yield reader, server
