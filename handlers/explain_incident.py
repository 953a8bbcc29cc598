"""Why did it break: every read-only tool is asked in a fixed plan, and what they say becomes ranked hypotheses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from core.confidence.cause_evidence import VERSION, evaluate_cause
from core.confidence.prediction import PredictionKind
from core.errors import ToolUnavailable
from core.incident import Incident, SimilarIncident
from core.ports import ChangeReader, Clock, LanguageModel, LogReader, MetricReader, Store
from core.rca.dependencies import neighbourhood, service_of
from core.rca.explain import explain
from core.rca.observations import Observations, change_window, signal_window
from core.rca.scene import survey
from core.triage.history import IncidentHistory
from handlers.investigate_with_model import Progress, investigate_with_model
from handlers.record_prediction import record_prediction

DEADLINE = 8.0  # seconds that one question to one tool may take
MAX_SERVICES = 16  # services whose logs and metrics are read
MAX_LOG_LINES = 20_000  # records read of one service
SIMILAR = 3  # similar past incidents shown
MIN_SIMILARITY = 0.15  # below which a past incident resembles this one by chance

T = TypeVar("T")


async def explain_incident(
    incident: Incident,
    *,
    log_readers: Sequence[LogReader],
    metric_readers: Sequence[MetricReader],
    change_readers: Sequence[ChangeReader],
    dependencies: Mapping[str, tuple[str, ...]],
    history: IncidentHistory,
    store: Store,
    clock: Clock,
    model: LanguageModel | None = None,
    progress: Progress | None = None,
) -> Incident:
    """The incident with its explanation: hypotheses best first, or none and what was ruled out.

    With a `model`, it looks for itself after the fixed plan; `progress` is told what it does.

    A tool that fails or does not answer in time is named in the explanation, and the rest goes on.
    """
    now = clock.now()
    service = service_of(incident, dependencies)
    services = neighbourhood(service, dependencies, MAX_SERVICES) if service else []
    window = signal_window(incident, now)
    tools = _Tools()
    logs, series, changes = await asyncio.gather(
        tools.ask(
            [
                (reader.name, reader.lines(service, window, MAX_LOG_LINES))
                for reader in log_readers
                for service in services
            ]
        ),
        tools.ask([(reader.name, reader.series(name, window)) for reader in metric_readers for name in services]),
        tools.ask([(reader.name, reader.changes(change_window(incident, now))) for reader in change_readers]),
    )
    observations = Observations(
        incident=replace(incident, service=service),
        until=window.end,
        services=tuple(services),
        logs=tuple(logs),
        series=tuple(series),
        changes=tuple(changes),
        dependencies=dependencies,
        similar=_similar(incident, history),
        unavailable=tuple(sorted(tools.unavailable)),
        cut=frozenset(name for name, count in Counter(line.service for line in logs).items() if count >= MAX_LOG_LINES),
    )
    explanation, evaluation = await asyncio.to_thread(explain, observations)
    if model is not None:
        scene = await asyncio.to_thread(survey, observations)
        explanation = await investigate_with_model(explanation, observations, scene, model=model, progress=progress)
        if explanation.cause is not None:
            scores = [hypothesis.score for hypothesis in explanation.hypotheses]
            evaluation = evaluate_cause(scores, scene, observations)
    if explanation.cause is None or evaluation is None:
        return replace(incident, explanation=explanation)
    prediction_id, badge = await record_prediction(
        PredictionKind.CAUSE,
        incident.id,
        explanation.cause.cause,
        evaluation,
        engine=explanation.engine,
        estimator_version=VERSION,
        store=store,
        clock=clock,
    )
    return replace(incident, explanation=replace(explanation, badge=badge, prediction_id=prediction_id))


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
