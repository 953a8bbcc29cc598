"""Metrics from the database for GET /metrics: queue, dead letters, sources and calibration. Read on request."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from core.confidence.quality import measure_drift
from core.model.errors import StoreUnavailable
from core.model.prediction import Drift, Estimator
from core.ports import Backlog, Clock, Ingestion, Store

CALIBRATION_EVERY = timedelta(minutes=15)  # expensive to compute, and slow to change
DATABASE_TIMEOUT = 5.0  # seconds for the database to answer


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Figures read at one time."""

    at: datetime
    backlog: Backlog
    dead_letters: int
    ingestions: Sequence[Ingestion]


class Figures(Collector):
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
                self._snapshot = await self._read_snapshot()
                await self._read_calibration()
        except (StoreUnavailable, TimeoutError):
            self._snapshot = None

    async def _read_snapshot(self) -> Snapshot:
        async with self._store.transaction() as transaction:
            return Snapshot(
                self._clock.now(),
                await transaction.tasks.backlog(),
                await transaction.dead_letters.count(),
                await transaction.ingestions.all(),
            )

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
        yield _gauge("plumbline_database_up", "1 if the database answered when it was last asked", bool(self._snapshot))
        if self._snapshot is not None:
            yield from _queue(self._snapshot)
            yield from _sources(self._snapshot)
        yield from self._calibration()

    def _calibration(self) -> Iterable[Metric]:
        labels = ["kind", "engine", "version"]
        error = GaugeMetricFamily(
            "plumbline_calibration_error", "Expected calibration error of the latest judged badges", labels=labels
        )
        limit = GaugeMetricFamily(
            "plumbline_calibration_error_limit", "The largest such error that chance explains", labels=labels
        )
        outcomes = GaugeMetricFamily("plumbline_calibration_outcomes", "Judged badges looked at", labels=labels)
        for estimator, drift in self._drifts.items():
            named = [estimator.kind, estimator.engine, estimator.version]
            error.add_metric(named, drift.error)
            limit.add_metric(named, drift.limit)
            outcomes.add_metric(named, drift.outcomes)
        return (error, limit, outcomes)


def _queue(snapshot: Snapshot) -> Iterable[Metric]:
    backlog = snapshot.backlog
    age = (snapshot.at - backlog.oldest).total_seconds() if backlog.oldest else 0.0
    yield _gauge("plumbline_tasks_waiting", "Accepted events whose work has not begun", backlog.waiting)
    yield _gauge("plumbline_tasks_oldest_seconds", "Age of the oldest of them", max(age, 0.0))
    yield _gauge("plumbline_tasks_under_way", "Accepted events whose work has begun and not ended", backlog.under_way)
    yield _gauge(
        "plumbline_dead_letters", "Messages that the chat will not take, until a person looks", snapshot.dead_letters
    )


def _sources(snapshot: Snapshot) -> Iterable[Metric]:
    age = GaugeMetricFamily(
        "plumbline_source_age_seconds", "Time since a source was read to its end", labels=["source"]
    )
    failing = GaugeMetricFamily("plumbline_source_failing", "1 if a source could not be read last", labels=["source"])
    documents = GaugeMetricFamily("plumbline_source_documents", "Documents indexed from a source", labels=["source"])
    for ingestion in snapshot.ingestions:
        if ingestion.finished_at is not None:
            age.add_metric([ingestion.source], max((snapshot.at - ingestion.finished_at).total_seconds(), 0.0))
        failing.add_metric([ingestion.source], float(bool(ingestion.failure)))
        documents.add_metric([ingestion.source], ingestion.documents)
    return (age, failing, documents)


def _gauge(name: str, text: str, value: float) -> Metric:
    gauge = GaugeMetricFamily(name, text)
    gauge.add_metric([], float(value))
    return gauge


@contextmanager
def shown(figures: Figures, registry: CollectorRegistry = REGISTRY) -> Generator[None]:
    """Register the collector until the block ends."""
    registry.register(figures)
    try:
        yield
    finally:
        registry.unregister(figures)
