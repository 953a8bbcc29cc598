"""Past incidents, searched by their text, and counts of their severities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Self

import numpy as np

from core.knowledge.terms import terms
from core.model.alert import Severity
from core.model.conversation import Audience, Channel, current_readers
from core.model.past_incident import Neighbour, PastIncident
from core.triage.text_similarity import Postings

KEPT_VIEWS = 8  # histories kept for audiences that may not read everything; each takes as much memory as the whole
SMOOTHING = 2.0  # imagined incidents, distributed like all incidents, that each service and label begins with
MAX_VALUE = 200  # characters read of a label

Feature = tuple[str, str]  # a name and its value, of the service or a label


@dataclass(frozen=True, slots=True)
class SeverityCounts:
    """Past incidents of each severity: `of_all`, and `by_feature` for each service and label."""

    of_all: Counter[Severity]
    by_feature: dict[Feature, Counter[Severity]]

    @classmethod
    def of(cls, incidents: Iterable[PastIncident]) -> Self:
        counts = cls(Counter(), {})
        for incident in incidents:
            counts.add(incident)
        return counts

    def add(self, incident: PastIncident) -> None:
        """Count one more incident."""
        self.of_all[incident.severity] += 1
        for feature in features(incident.service, incident.labels):
            self.by_feature.setdefault(feature, Counter())[incident.severity] += 1

    def with_feature(self, feature: Feature) -> Counter[Severity]:
        """Return the number of incidents of each severity with a feature."""
        return self.by_feature.get(feature, Counter())

    def shares(self, given: Iterable[Feature]) -> dict[Severity, float]:
        """Return the probability of each severity by naive Bayes over the features; equal if there are no incidents."""
        total = self.of_all.total()
        prior = {each: (self.of_all[each] + 1) / (total + len(Severity)) for each in Severity}
        logs = {each: log(prior[each]) for each in Severity}
        for feature in given:
            counts = self.with_feature(feature)
            size = counts.total()
            for each in Severity:
                logs[each] += log((counts[each] + SMOOTHING * prior[each]) / (size + SMOOTHING) / prior[each])
        highest = max(logs.values())
        weights = {each: exp(value - highest) for each, value in logs.items()}
        return {each: weight / sum(weights.values()) for each, weight in weights.items()}


def features(service: str, labels: Mapping[str, str]) -> Iterator[Feature]:
    """Yield the service and the labels, except those that state the severity, which only repeat the alert's claim."""
    if service:
        yield ("service", service)
    for name, value in labels.items():
        folded = name.casefold()
        if not any(word in folded for word in ("severity", "priority", "urgency", "level")):
            yield (folded, value[:MAX_VALUE])


class IncidentHistory:
    """Past incidents as TF-IDF vectors (Triangle, Algorithm 1, step 1), kept as one posting list per term.

    Built once: about 1 ms per 10 incidents. A search reads only the posting lists of its own terms.
    """

    def __init__(self, incidents: Sequence[PastIncident]) -> None:
        self.incidents = tuple(incidents)
        self._readers = frozenset(r for each in self.incidents for r in (each.readers, *sum(each.veiled.values(), ())))
        self.reader_names = frozenset(reader for readers in self._readers for reader in readers)
        self._readable: dict[frozenset[frozenset[str]], IncidentHistory] = {}
        self.owners = frozenset(incident.owner for incident in self.incidents)
        self.severities = SeverityCounts.of(self.incidents)
        # By the text known at its opening, because the later cause and fix would blur the similarity.
        texts = (f"{each.title}\n{each.description}\n{each.service}" for each in self.incidents)
        self._postings = Postings.of(Counter(terms(text)) for text in texts)

    def readable_by(self, audience: Audience, channels: Sequence[Channel] = ()) -> IncidentHistory:
        """Return the history without the incidents and fields that this audience may not read; cached by access.

        `channels` are the channels as they are now.
        """
        hidden = frozenset(each for each in self._readers if not audience.may_read(current_readers(each, channels)))
        if not hidden:
            return self
        if hidden not in self._readable:
            kept = [incident.without(hidden) for incident in self.incidents if incident.readers not in hidden]
            self._readable = {hidden: IncidentHistory(kept), **dict(list(self._readable.items())[: KEPT_VIEWS - 1])}
        return self._readable[hidden]

    def similar(self, text: str, limit: int, without: frozenset[str] = frozenset()) -> list[Neighbour]:
        """Return the `limit` incidents most similar to `text`, best first, except those with an id in `without`."""
        scores = self._postings.similarities(Counter(terms(text)))
        wanted = min(limit + len(without), len(scores))
        if not wanted:
            return []
        best = np.argpartition(-scores, wanted - 1)[:wanted]
        ranked: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
        neighbours = [Neighbour(self.incidents[row], float(scores[row])) for row in ranked if scores[row] > 0]
        return [neighbour for neighbour in neighbours if neighbour.incident.id not in without][:limit]
