"""Every read-only tool is asked about the neighbourhood of an incident, all at once and in a fixed plan."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from core.errors import ToolUnavailable
from core.incident import Incident, SimilarIncident
from core.ports import ChangeReader, Clock, CodeReader, Embedder, LogReader, MetricReader, Toolbox
from core.rca.dependencies import neighbourhood, service_of
from core.rca.observations import Observations, change_window, signal_window
from core.triage.history import IncidentHistory

DEADLINE = 8.0  # seconds that one question to one tool may take
MAX_SERVICES = 16  # services whose logs and metrics are read
MAX_LOG_LINES = 20_000  # records read of one service
SIMILAR = 3  # similar past incidents shown
MIN_SIMILARITY = 0.15  # below which a past incident resembles this one by chance

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Readers:
    """The systems that may be read, and how services depend on each other. `code` and `toolboxes` only a language model asks."""

    logs: Sequence[LogReader]
    metrics: Sequence[MetricReader]
    changes: Sequence[ChangeReader]
    dependencies: Mapping[str, tuple[str, ...]]
    code: Sequence[CodeReader] = ()
    toolboxes: Sequence[Toolbox] = ()
    embedder: Embedder | None = None


async def observe_incident(
    incident: Incident, readers: Readers, *, history: IncidentHistory, clock: Clock
) -> Observations:
    """What the tools say. One that fails or does not answer in time is named, and the rest goes on."""
    now = clock.now()
    service = service_of(incident, readers.dependencies)
    services = neighbourhood(service, readers.dependencies, MAX_SERVICES) if service else []
    window = signal_window(incident, now)
    tools = _Tools()
    logs, series, changes = await asyncio.gather(
        tools.ask([(each.name, each.lines(name, window, MAX_LOG_LINES)) for each in readers.logs for name in services]),
        tools.ask([(each.name, each.series(name, window)) for each in readers.metrics for name in services]),
        tools.ask([(each.name, each.changes(change_window(incident, now))) for each in readers.changes]),
    )
    return Observations(
        incident=replace(incident, service=service),
        until=window.end,
        services=tuple(services),
        logs=tuple(logs),
        series=tuple(series),
        changes=tuple(changes),
        dependencies=readers.dependencies,
        similar=_similar(incident, history),
        unavailable=tuple(sorted(tools.unavailable)),
        cut=frozenset(name for name, count in Counter(line.service for line in logs).items() if count >= MAX_LOG_LINES),
    )


@dataclass(slots=True)
class _Tools:
    """Asks tools all at once, and remembers which could not be read."""

    unavailable: set[str] = field(default_factory=set[str])

    async def ask(self, questions: Sequence[tuple[str, Awaitable[list[T]]]]) -> list[T]:
        answers = await asyncio.gather(*(self._answer(name, question) for name, question in questions))
        return [item for answer in answers for item in answer]

    async def _answer(self, name: str, question: Awaitable[list[T]]) -> list[T]:
        try:
            async with asyncio.timeout(DEADLINE):
                return await question
        except ToolUnavailable as error:
            self.unavailable.add(f"{name}: {error}")
        except TimeoutError:
            self.unavailable.add(f"{name}: no answer within {DEADLINE:.0f} s.")
        return []


def _similar(incident: Incident, history: IncidentHistory) -> tuple[SimilarIncident, ...]:
    text = f"{incident.description}\n{incident.service}"
    return tuple(
        SimilarIncident(
            id=found.incident.id,
            title=found.incident.title,
            owner=found.incident.owner,
            root_cause=found.incident.root_cause,
            fix=found.incident.fix,
            similarity=found.similarity,
            url=found.incident.url,
        )
        for found in history.similar(text, SIMILAR, without=frozenset({incident.id}))
        if found.similarity >= MIN_SIMILARITY
    )
