"""Metrics for GET /metrics that are read on request: from the database (queue, dead letters, sources, calibration), and of
the language model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.model_queue import ModelStatus
from core.confidence.measures import measure_drift
from core.model.errors import StoreUnavailable
from core.model.language_model import ModelReply
from core.model.prediction import Drift, Estimator
from core.ports import Backlog, Clock, Ingestion, Store

CALIBRATION_EVERY = timedelta(minutes=15)  # expensive to compute, and slow to change
DATABASE_TIMEOUT = 5.0  # seconds for the database to answer

Samples = Iterable[tuple[Sequence[str], float]]  # the values of the labels, and the metric's value


@contextmanager
def registered(collector: Collector, registry: CollectorRegistry = REGISTRY) -> Generator[None]:
    """Register a collector until the block ends."""
    registry.register(collector)
    try:
        yield
    finally:
        registry.unregister(collector)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=float(value))


def _gauges(name: str, text: str, labels: Sequence[str], samples: Samples) -> Metric:
    family = GaugeMetricFamily(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, float(value))
    return family


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures read at one time."""

    at: datetime
    backlog: Backlog
    dead_letters: int
    ingestions: Sequence[Ingestion]


class StoreCollector(Collector):
    """A collector of the latest figures. While the database is unavailable, only that is reported."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._drifts: dict[Estimator, Drift] = {}
        self._calibrated_at: datetime | None = None

    async def refresh(self) -> None:
        """Read the figures. Figures that the database does not return in time are not shown."""
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT):
                async with self._store.transaction() as transaction:
                    self._snapshot = Snapshot(
                        self._clock.now(),
                        await transaction.tasks.backlog(),
                        await transaction.dead_letters.count(),
                        await transaction.ingestions.all(),
                    )
                await self._read_calibration()
        except (StoreUnavailable, TimeoutError):
            self._snapshot = None

    async def _read_calibration(self) -> None:
        now = self._clock.now()
        if self._calibrated_at is not None and now - self._calibrated_at < CALIBRATION_EVERY:
            return
        self._calibrated_at = now
        async with self._store.transaction() as transaction:
            judged = {
                estimator: [
                    (prediction.probability, outcome.correct)
                    for prediction, outcome in await transaction.predictions.labelled(estimator)
                    if prediction.probability is not None
                ]
                for estimator in await transaction.predictions.estimators()
            }
        for estimator, outcomes in judged.items():
            shown, correct = [each[0] for each in outcomes], [each[1] for each in outcomes]
            drift = await asyncio.to_thread(measure_drift, shown, correct)
            if drift is not None:
                self._drifts[estimator] = drift

    def collect(self) -> Iterable[Metric]:
        yield _gauge("plumbline_database_up", "1 if the last query of the database succeeded", bool(self._snapshot))
        if self._snapshot is not None:
            yield from _queue(self._snapshot)
            yield from _sources(self._snapshot)
        labels = ("kind", "engine", "version")
        for name, text, of in (
            ("error", "Expected calibration error of the latest judged badges", attrgetter("error")),
            ("error_limit", "The largest such error that chance explains", attrgetter("limit")),
            ("outcomes", "Judged badges that were measured", attrgetter("outcomes")),
        ):
            samples = (((each.kind, each.engine, each.version), of(drift)) for each, drift in self._drifts.items())
            yield _gauges(f"plumbline_calibration_{name}", text, labels, samples)


def _queue(snapshot: Snapshot) -> Iterable[Metric]:
    backlog = snapshot.backlog
    age = (snapshot.at - backlog.oldest).total_seconds() if backlog.oldest else 0.0
    yield _gauge("plumbline_tasks_waiting", "Accepted events whose work has not begun", backlog.waiting)
    yield _gauge("plumbline_tasks_oldest_seconds", "Age of the oldest waiting event", max(age, 0.0))
    yield _gauge("plumbline_tasks_under_way", "Accepted events whose work is in progress", backlog.under_way)
    yield _gauge("plumbline_dead_letters", "Messages that a chat refused until a person acts", snapshot.dead_letters)


def _is_failing(ingestion: Ingestion) -> bool:
    return bool(ingestion.failure)


def _sources(snapshot: Snapshot) -> Iterable[Metric]:
    def age(ingestion: Ingestion) -> float:
        """Return seconds; 0 during the first import."""
        return max((snapshot.at - (ingestion.finished_at or snapshot.at)).total_seconds(), 0.0)

    for name, text, of in (
        ("age_seconds", "Time since a source was last read completely", age),
        ("failing", "1 if the last attempt to read a source failed", _is_failing),
        ("documents", "Documents indexed from a source", attrgetter("documents")),
    ):
        samples = (((each.source,), of(each)) for each in snapshot.ingestions)
        yield _gauges(f"plumbline_source_{name}", text, ["source"], samples)


@dataclass(slots=True)
class TokenTally:
    """Token counts since start: prompt tokens, those served from a cache, and reply tokens."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def add(self, reply: ModelReply) -> None:
        self.prompt += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.generated += reply.generated_tokens


class ModelCollector(Collector):
    """Collector of the model's queue, slots, state and tokens."""

    def __init__(self, status: Callable[[], ModelStatus], tally: TokenTally) -> None:
        self._status = status
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        status, tally = self._status(), self._tally
        waiting = (((urgency.name.lower(),), count) for urgency, count in status.waiting.items())
        yield _gauges("plumbline_model_waiting", "Requests waiting for the model", ["urgency"], waiting)
        for name, text, value in (
            ("slots_busy", "Requests the server works on", status.busy),
            ("slots", "Requests the server can work on at once", status.slots),
            ("up", "1 if the server is used, 0 while it is left alone after failures", status.up),
        ):
            yield _gauges(f"plumbline_model_{name}", text, ["server"], [((status.address,), value)])
        requests = CounterMetricFamily(
            "plumbline_model_requests", "Requests to the server by outcome", labels=["server", "outcome"]
        )
        for outcome, count in status.outcomes.items():
            requests.add_metric([status.address, outcome.value], count)
        yield requests
        for name, text, tokens in (
            ("prompt_tokens", "Tokens of prompts", tally.prompt),
            ("cached_prompt_tokens", "Tokens of prompts that came from a cache", tally.cached),
            ("generated_tokens", "Tokens of replies", tally.generated),
        ):
            yield CounterMetricFamily(f"plumbline_model_{name}", text, value=tokens)
        share = tally.cached / tally.prompt if tally.prompt else 0.0
        yield _gauge("plumbline_model_cached_prompt_share", "Share of prompt tokens served from a cache", share)
