"""How severe past incidents were, counted by service and label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import exp, log
from typing import Self

from core.model.incident import PastIncident, Severity

SMOOTHING = 2.0  # imagined incidents, as severe as all are, that each service and label begins with
MAX_VALUE = 200  # characters of a label's value that are looked at

Feature = tuple[str, str]  # what it is a value of, and the value


@dataclass(frozen=True, slots=True)
class SeverityCounts:
    """`of_all` by severity, `by_feature` for each service and label."""

    of_all: Counter[Severity]
    by_feature: dict[Feature, Counter[Severity]]

    @classmethod
    def of(cls, incidents: Iterable[PastIncident]) -> Self:
        counts = cls(Counter(), {})
        for incident in incidents:
            counts.add(incident)
        return counts

    def add(self, incident: PastIncident) -> None:
        """Count one more."""
        self.of_all[incident.severity] += 1
        for feature in features(incident.service, incident.labels):
            self.by_feature.setdefault(feature, Counter())[incident.severity] += 1

    def known(self, feature: Feature) -> Counter[Severity]:
        """Of the incidents with a feature, those of each severity."""
        return self.by_feature.get(feature, Counter())

    def shares(self, asked: Iterable[Feature]) -> dict[Severity, float]:
        """The probability of each severity by naive Bayes over the features; they add up to 1. No incident: all alike."""
        total = self.of_all.total()
        prior = {each: (self.of_all[each] + 1) / (total + len(Severity)) for each in Severity}
        logs = {each: log(prior[each]) for each in Severity}
        for feature in asked:
            counts = self.known(feature)
            size = counts.total()
            for each in Severity:
                logs[each] += log((counts[each] + SMOOTHING * prior[each]) / (size + SMOOTHING) / prior[each])
        highest = max(logs.values())
        weights = {each: exp(value - highest) for each, value in logs.items()}
        return {each: weight / sum(weights.values()) for each, weight in weights.items()}


def features(service: str, labels: Mapping[str, str]) -> Iterator[Feature]:
    """The service and the labels; those that name the severity itself would only repeat what the alert claims."""
    if service:
        yield ("service", service)
    for name, value in labels.items():
        folded = name.casefold()
        if not any(word in folded for word in ("severity", "priority", "urgency", "level")):
            yield (folded, value[:MAX_VALUE])
