"""Predictions, their labels and calibrators in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from core.model.badge import Calibrator, Estimator, Outcome, Prediction, PredictionKind, Verdict


@dataclass(slots=True)
class InMemoryPredictions:
    by_id: dict[str, Prediction] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    reacted: dict[tuple[str, str, bool], tuple[datetime, bool]] = field(default_factory=dict)  # when; is it taken back
    adopted: list[tuple[Estimator, Calibrator]] = field(default_factory=list)

    async def add(self, prediction: Prediction) -> bool:
        return self.by_id.setdefault(prediction.id, prediction) is prediction

    async def get(self, prediction_id: str) -> Prediction | None:
        return self.by_id.get(prediction_id)

    async def label(self, outcome: Outcome) -> None:
        known = self.outcomes.get((outcome.prediction_id, outcome.labelled_by))
        if known is None or known.labelled_at <= outcome.labelled_at:
            self.outcomes[outcome.prediction_id, outcome.labelled_by] = outcome

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        self.outcomes.pop((prediction_id, labelled_by), None)

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        known = self.reacted.get((prediction_id, by, approves))
        if known is not None and known[0] > at:
            return False
        self.reacted[prediction_id, by, approves] = at, taken_back
        return True

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        return {
            approves: at
            for (about, who, approves), (at, taken_back) in self.reacted.items()
            if (about, who) == (prediction_id, by) and not taken_back
        }

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        judged = [self.by_id[each.prediction_id] for each in self.outcomes.values() if each.labelled_at >= since]
        return sorted({prediction.subject for prediction in judged if prediction.kind is kind})

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        found = [outcome for (about, _), outcome in self.outcomes.items() if about == prediction_id]
        return sorted(found, key=lambda outcome: outcome.labelled_at)

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        pairs = [(prediction, self._latest(prediction.id)) for prediction in self._made(estimator)]
        return [(prediction, outcome) for prediction, outcome in pairs if outcome is not None]

    async def estimators(self) -> list[Estimator]:
        return sorted({prediction.estimator for prediction in self.by_id.values()})

    async def verdicts(self, estimator: Estimator, limit: int) -> list[Verdict]:
        labelled = await self.labelled(estimator)
        return [(made.probability, outcome.correct) for made, outcome in labelled][-limit:]

    async def recent(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        made = [prediction for prediction in self.by_id.values() if prediction.kind is kind]
        newest = sorted(made, key=lambda prediction: prediction.made_at, reverse=True)[:limit]
        return [(prediction, self._latest(prediction.id)) for prediction in newest]

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        fitted = [calibrator for by, calibrator in self.adopted if by == estimator]
        return fitted[-1] if fitted else None

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        self.adopted.append((estimator, calibrator))

    async def calibrator_version(self, version: str) -> Calibrator | None:
        fitted = [calibrator for _, calibrator in self.adopted if calibrator.version == version]
        return fitted[-1] if fitted else None

    def _made(self, estimator: Estimator) -> list[Prediction]:
        made = [each for each in self.by_id.values() if each.estimator == estimator]
        return sorted(made, key=lambda prediction: (prediction.made_at, prediction.id))

    def _latest(self, prediction_id: str) -> Outcome | None:
        labels = [outcome for outcome in self.outcomes.values() if outcome.prediction_id == prediction_id]
        return max(labels, key=lambda outcome: outcome.labelled_at, default=None)
