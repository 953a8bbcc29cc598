"""The store in memory: one transaction at a time, undone when it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.confidence.calibrator import Calibrator
from core.confidence.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.conversation import MessageReference, Place, Turn
from core.curated import CuratedAnswer
from core.errors import Conflict, StoreUnavailable
from core.incident import Incident, IncidentState
from core.ports import Ingestion, Post, SourceCursor, Task


@dataclass(slots=True)
class InMemoryTasks:
    added: dict[str, Task] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)

    async def add(self, task: Task) -> bool:
        is_new = task.key not in self.added
        self.added.setdefault(task.key, task)
        return is_new

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        waiting = [task for key, task in self.added.items() if key not in self.claimed]
        return any((task.workflow, task.subject) == (workflow, subject) for task in waiting)

    async def claim(self, limit: int) -> list[Task]:
        oldest = [task for key, task in self.added.items() if key not in self.started][:limit]
        self.claimed |= {task.key for task in oldest}
        return oldest

    async def mark_started(self, key: str) -> None:
        self.started.add(key)


@dataclass(slots=True)
class InMemoryIncidents:
    deliveries: set[str] = field(default_factory=set)
    by_id: dict[str, Incident] = field(default_factory=dict)

    async def add_delivery(self, key: str, received_at: datetime) -> bool:
        is_new = key not in self.deliveries
        self.deliveries.add(key)
        return is_new

    async def get(self, incident_id: str) -> Incident | None:
        return self.by_id.get(incident_id)

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        of_group = [each for each in self.by_id.values() if (each.source, each.group_key) == (source, group_key)]
        return max(of_group, key=lambda each: (each.state is IncidentState.OPEN, each.opened_at, each.id), default=None)

    async def in_thread(self, place: Place) -> Incident | None:
        for incident in self.by_id.values():
            root = incident.message
            if root and (root.place.platform, root.place.channel, root.message_id) == (
                place.platform,
                place.channel,
                place.thread,
            ):
                return incident
        return None

    async def recent(self, limit: int) -> list[Incident]:
        return sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id), reverse=True)[:limit]

    async def noted(self, limit: int) -> list[Incident]:
        return [each for each in await self.recent(len(self.by_id)) if each.resolution is not None][:limit]

    async def save(self, incident: Incident) -> None:
        known = self.by_id.get(incident.id)
        rival = await self.latest_for(incident.source, incident.group_key)
        if (known.revision if known else 0) != incident.revision - 1:
            raise Conflict(f"Incident {incident.id}: revision {incident.revision} does not follow.")
        is_rivalled = rival is not None and rival.id != incident.id and rival.state is IncidentState.OPEN
        if incident.state is IncidentState.OPEN and is_rivalled:
            raise Conflict(f"Incident {incident.id}: another one is open.")
        self.by_id[incident.id] = incident


@dataclass(slots=True)
class InMemoryPosts:
    by_intent: dict[str, Post] = field(default_factory=dict)

    async def intend(self, intent: str, place: Place) -> Post:
        return self.by_intent.setdefault(intent, Post(intent, place))

    async def attempted(self, intent: str) -> None:
        self._change(intent, attempted=True)

    async def posted(self, intent: str, reference: MessageReference, content_hash: str) -> None:
        self._change(intent, reference=reference, content_hash=content_hash)

    async def edited(self, intent: str, content_hash: str) -> None:
        self._change(intent, content_hash=content_hash)

    async def forget(self, intent: str) -> None:
        self._change(intent, attempted=False, reference=None, content_hash="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        self._change(intent, withdrawn=True)
        return self.by_intent[intent]

    def _change(self, intent: str, **values: object) -> None:
        self.by_intent[intent] = replace(self.by_intent[intent], **values)


@dataclass(slots=True)
class InMemoryPredictions:
    by_id: dict[str, Prediction] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    adopted: list[tuple[Estimator, Calibrator]] = field(default_factory=list)

    async def add(self, prediction: Prediction) -> None:
        self.by_id.setdefault(prediction.id, prediction)

    async def get(self, prediction_id: str) -> Prediction | None:
        return self.by_id.get(prediction_id)

    async def label(self, outcome: Outcome) -> None:
        self.outcomes[outcome.prediction_id, outcome.labelled_by] = outcome

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        found = [outcome for (about, _), outcome in self.outcomes.items() if about == prediction_id]
        return sorted(found, key=lambda outcome: outcome.labelled_at)

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        pairs = [(prediction, self._latest(prediction.id)) for prediction in self._made(estimator)]
        return [(prediction, outcome) for prediction, outcome in pairs if outcome is not None]

    async def estimators(self) -> list[Estimator]:
        return sorted({prediction.estimator for prediction in self.by_id.values()})

    async def count_labelled(self, estimator: Estimator) -> int:
        return len(await self.labelled(estimator))

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


@dataclass(slots=True)
class InMemoryConversations:
    turns: dict[str, tuple[Place, Turn]] = field(default_factory=dict)

    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        self.turns.setdefault(key, (place, turn))

    async def get(self, key: str, place: Place) -> Turn | None:
        where, turn = self.turns.get(key, (None, None))
        return turn if where is not None and replace(where, thread=None) == replace(place, thread=None) else None

    async def history(self, place: Place, limit: int) -> tuple[Turn, ...]:
        here = [turn for where, turn in self.turns.values() if where == place and place.thread is not None]
        return tuple(here[-limit:])


@dataclass(slots=True)
class InMemoryIngestions:
    by_source: dict[str, Ingestion] = field(default_factory=dict)

    async def record(self, ingestion: Ingestion) -> None:
        self.by_source[ingestion.source] = ingestion

    async def all(self) -> list[Ingestion]:
        return [self.by_source[source] for source in sorted(self.by_source)]


@dataclass(slots=True)
class InMemoryCursors:
    by_source: dict[str, SourceCursor] = field(default_factory=dict)

    async def load(self, source: str) -> SourceCursor | None:
        return self.by_source.get(source)

    async def save(self, source: str, cursor: SourceCursor) -> None:
        self.by_source[source] = cursor


@dataclass(slots=True)
class InMemoryCurated:
    by_id: dict[str, CuratedAnswer] = field(default_factory=dict)

    async def get(self, answer_id: str) -> CuratedAnswer | None:
        return self.by_id.get(answer_id)

    async def save(self, answer: CuratedAnswer) -> None:
        self.by_id[answer.id] = answer

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        known = sorted(self.by_id.values(), key=lambda answer: answer.id)
        return [answer for answer in known if answer.expires_at is not None and answer.expires_at > at]


@dataclass(slots=True)
class InMemoryStore:
    """Implements `core.ports.Store`; what was committed can be looked at directly.

    The next `conflicts` transactions that end well are undone and raise Conflict, as for a writer who lost a race;
    the next `outages` raise StoreUnavailable before they begin.
    """

    tasks: InMemoryTasks = field(default_factory=InMemoryTasks)
    incidents: InMemoryIncidents = field(default_factory=InMemoryIncidents)
    posts: InMemoryPosts = field(default_factory=InMemoryPosts)
    predictions: InMemoryPredictions = field(default_factory=InMemoryPredictions)
    conversations: InMemoryConversations = field(default_factory=InMemoryConversations)
    ingestions: InMemoryIngestions = field(default_factory=InMemoryIngestions)
    cursors: InMemoryCursors = field(default_factory=InMemoryCursors)
    curated: InMemoryCurated = field(default_factory=InMemoryCurated)
    conflicts: int = 0
    outages: int = 0
    _writer: asyncio.Lock = field(default_factory=asyncio.Lock)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[InMemoryStore]:
        async with self._writer:
            if self.outages:
                self.outages -= 1
                raise StoreUnavailable("The database is down.")
            before = {name: _snapshot(getattr(self, name)) for name in STORES}
            try:
                yield self
                self._race()
            except BaseException:
                for name, state in before.items():
                    setattr(self, name, state)
                raise

    def _race(self) -> None:
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("Somebody else was first.")


STORES = ("tasks", "incidents", "posts", "predictions", "conversations", "ingestions", "cursors", "curated")


def _snapshot(store: object) -> object:
    """A copy with its own containers; what they hold is frozen."""
    fields = {name: copy(getattr(store, name)) for name in store.__dataclass_fields__}  # pyright: ignore[reportAttributeAccessIssue]
    return type(store)(**fields)
