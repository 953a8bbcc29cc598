"""A store that knows nothing but predictions: enough for the handlers that make them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from types import SimpleNamespace
from typing import cast

from core.model.badge import Calibrator, Estimator, Prediction, Verdict
from core.model.incident import Incident
from core.ports import Transaction


class FakePredictionStore:
    """Every prediction that was made, by id; the first one with an id stays."""

    def __init__(self) -> None:
        self.predictions: dict[str, Prediction] = {}
        self.incidents: list[Incident] = []  # that are open
        self.calibrators: dict[Estimator, Calibrator] = {}
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks[name]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        yield cast("Transaction", SimpleNamespace(predictions=self, incidents=self))

    async def add(self, prediction: Prediction) -> None:
        self.predictions.setdefault(prediction.id, prediction)

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        return [each for each in self.incidents if each.service in services][:limit]

    async def latest_open(self, limit: int) -> list[Incident]:
        return self.incidents[:limit]

    async def get(self, prediction_id: str) -> Prediction | None:
        return self.predictions.get(prediction_id)

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        return self.calibrators.get(estimator)

    async def verdicts(self, estimator: Estimator, limit: int) -> list[Verdict]:
        return [(None, True) for _ in range(7)]
