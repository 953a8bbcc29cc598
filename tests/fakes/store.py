"""The store in memory: one transaction at a time, undone when it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from core.audit import Act, AuditEntry, NumberedEntry
from core.channel_settings import ChannelSettings
from core.confidence.calibrator import Calibrator
from core.confidence.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.conversation import MessageReference, Place, Turn
from core.curated import CuratedAnswer
from core.errors import Conflict, StoreUnavailable
from core.incident import Incident, IncidentState
from core.messages import Message
from core.ports import Backlog, DeadLetter, HeldIncident, Ingestion, Post, SourceCursor, Task
from core.rca.recorded_failure import RecordedFailure
from core.silences import Silence

LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class InMemoryTasks:
    added: dict[str, Task] = field(default_factory=dict)
    claimed: set[str] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    added_at: dict[str, datetime] = field(default_factory=dict)

    async def add(self, task: Task) -> bool:
        is_new = task.key not in self.added
        self.added.setdefault(task.key, task)
        self.added_at.setdefault(task.key, datetime.now(UTC))
        return is_new

    async def backlog(self) -> Backlog:
        waiting = [key for key in self.added if key not in self.ended | self.owners.keys()]
        oldest = min((self.added_at[key] for key in waiting), default=None)
        return Backlog(len(waiting), oldest, len(self.owners.keys() - self.ended))

    async def is_known(self, key: str) -> bool:
        return key in self.added

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        waiting = [task for key, task in self.added.items() if key not in self.claimed]
        return any((task.workflow, task.subject) == (workflow, subject) for task in waiting)

    async def claim(self, owner: str, limit: int) -> list[Task]:
        oldest = [task for key, task in self.added.items() if key not in self.ended | self.owners.keys()][:limit]
        self.claimed |= {task.key for task in oldest}
        self.owners |= {task.key: owner for task in oldest}
        return oldest

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        released = [key for key, owner in self.owners.items() if owner in owners and key not in kept]
        for key in released:
            del self.owners[key]
        return len(released)

    async def end(self, keys: Collection[str]) -> None:
        self.ended |= set(keys)
        self.owners = {key: owner for key, owner in self.owners.items() if key not in keys}

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        self.ended -= set(keys)
        self.owners |= dict.fromkeys(keys, owner)


@dataclass(slots=True)
class InMemoryReplicas:
    by_id: dict[str, datetime] = field(default_factory=dict)

    async def seen(self, replica: str, at: datetime) -> None:
        self.by_id[replica] = at

    async def all(self) -> dict[str, datetime]:
        return dict(self.by_id)

    async def remove(self, replica: str) -> None:
        self.by_id.pop(replica, None)


@dataclass(slots=True)
class InMemoryIncidents:
    deliveries: set[str] = field(default_factory=set)
    by_id: dict[str, Incident] = field(default_factory=dict)
    opened_with: dict[str, frozenset[str]] = field(default_factory=dict)  # the fingerprints of each one's first alerts
    saved_at: dict[str, datetime] = field(default_factory=dict)

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

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        mine = self.opened_with[incident.id]
        return [
            each
            for each in await self.open(len(self.by_id))
            if each.id != incident.id
            and each.opened_at >= since
            and (
                each.service in services
                or not mine.isdisjoint(self.opened_with[each.id])
                or bool(each.service and each.service == incident.service and each.source != incident.source)
            )
        ][:limit]

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        oldest = sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id))
        later = [each for each in oldest if after is None or (each.opened_at, each.id) > (after.opened_at, after.id)]
        return [each for each in later if each.state is IncidentState.OPEN][:limit]

    async def latest_open(self, limit: int) -> list[Incident]:
        return [each for each in await self.recent(len(self.by_id)) if each.state is IncidentState.OPEN][:limit]

    async def led_by(self, incident_id: str, limit: int) -> list[Incident]:
        oldest = sorted(self.by_id.values(), key=lambda each: (each.opened_at, each.id))
        return [each for each in oldest if each.absorbed and each.absorbed.leader == incident_id][:limit]

    async def noted(self, limit: int) -> list[Incident]:
        return [each for each in await self.recent(len(self.by_id)) if each.resolution is not None][:limit]

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        latest = await self.recent(len(self.by_id))
        ended = [each for each in latest if each.resolution is not None or each.state is IncidentState.RESOLVED]
        return [each for each in ended if since is None or self.saved_at.get(each.id, LONG_AGO) >= since][:limit]

    async def save(self, incident: Incident) -> None:
        known = self.by_id.get(incident.id)
        rival = await self.latest_for(incident.source, incident.group_key)
        if (known.revision if known else 0) != incident.revision - 1:
            raise Conflict(f"Incident {incident.id}: revision {incident.revision} does not follow.")
        is_rivalled = rival is not None and rival.id != incident.id and rival.state is IncidentState.OPEN
        if incident.state is IncidentState.OPEN and is_rivalled:
            raise Conflict(f"Incident {incident.id}: another one is open.")
        self.opened_with.setdefault(incident.id, frozenset(alert.fingerprint for alert in incident.alerts))
        self.by_id[incident.id] = incident
        self.saved_at[incident.id] = datetime.now(UTC)


@dataclass(slots=True)
class InMemoryPosts:
    by_intent: dict[str, Post] = field(default_factory=dict)
    asked: dict[str, datetime] = field(default_factory=dict)
    wished: dict[str, int] = field(default_factory=dict)

    async def outdate(self, intent: str, place: Place, at: datetime, patience: timedelta) -> bool:
        await self.intend(intent, place)
        self.wished[intent] = self.wished.get(intent, 0) + 1
        since = self.asked.get(intent)
        if since is not None and since > at - patience:
            return False
        self.asked[intent] = at
        return True

    async def wishes(self, intent: str) -> int:
        return self.wished.get(intent, 0)

    async def mend(self, intent: str, wishes: int) -> bool:
        if self.wished.get(intent, 0) != wishes:
            return False
        self.asked.pop(intent, None)
        return True

    async def intend(self, intent: str, place: Place) -> Post:
        return self.by_intent.setdefault(intent, Post(intent, place))

    async def attempted(self, intent: str) -> None:
        self._change(intent, attempted=True)

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        self._change(intent, reference=reference, content_hash=content_hash, claim=claim)
        return not self.by_intent[intent].withdrawn

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None:
        self._change(intent, content_hash=content_hash, claim=claim)

    async def at(self, reference: MessageReference) -> Post | None:
        return next((post for post in self.by_intent.values() if _is_at(post, reference)), None)

    async def forget(self, intent: str) -> None:
        self._change(intent, attempted=False, reference=None, content_hash="", claim="")

    async def withdraw(self, intent: str, place: Place) -> Post:
        await self.intend(intent, place)
        self._change(intent, withdrawn=True)
        return self.by_intent[intent]

    def _change(self, intent: str, **values: object) -> None:
        self.by_intent[intent] = replace(self.by_intent[intent], **values)


def _is_at(post: Post, reference: MessageReference) -> bool:
    """Whether it is this message, whatever thread that is known to stand in."""
    known = post.reference
    return known is not None and (
        replace(known.place, thread=None, workspace=""),
        known.message_id,
    ) == (replace(reference.place, thread=None, workspace=""), reference.message_id)


@dataclass(slots=True)
class InMemoryDeadLetters:
    by_intent: dict[str, DeadLetter] = field(default_factory=dict)

    async def add(self, intent: str, place: Place, message: Message, reason: str) -> None:
        self.by_intent[intent] = DeadLetter(intent, place, message, reason, datetime.now(UTC))

    async def get(self, intent: str) -> DeadLetter | None:
        return self.by_intent.get(intent)

    async def latest(self, limit: int) -> list[DeadLetter]:
        in_order = sorted(self.by_intent.values(), key=lambda letter: letter.intent)
        return sorted(in_order, key=lambda letter: letter.at, reverse=True)[:limit]

    async def count(self) -> int:
        return len(self.by_intent)

    async def remove(self, intent: str) -> None:
        self.by_intent.pop(intent, None)


@dataclass(slots=True)
class InMemorySilences:
    by_id: dict[str, Silence] = field(default_factory=dict)

    async def save(self, silence: Silence) -> None:
        self.by_id[silence.id] = silence

    async def not_over(self, at: datetime) -> list[Silence]:
        lasting = [silence for silence in self.by_id.values() if silence.ends_at > at]
        return sorted(lasting, key=lambda silence: (silence.ends_at, silence.id))


@dataclass(slots=True)
class InMemoryPredictions:
    by_id: dict[str, Prediction] = field(default_factory=dict)
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    reacted: dict[tuple[str, str, bool], tuple[datetime, bool]] = field(default_factory=dict)  # when; is it taken back
    adopted: list[tuple[Estimator, Calibrator]] = field(default_factory=list)

    async def add(self, prediction: Prediction) -> None:
        self.by_id.setdefault(prediction.id, prediction)

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

    async def forget(self, key: str) -> None:
        self.turns.pop(key, None)

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
class InMemoryBuildFailures:
    by_id: dict[str, RecordedFailure] = field(default_factory=dict)

    async def get(self, failure_id: str) -> RecordedFailure | None:
        return self.by_id.get(failure_id)

    async def save(self, failure: RecordedFailure) -> None:
        self.by_id[failure.id] = failure

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        return [each for each in self._newest() if each.project == project and each.confirmed_by][:limit]

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        told = (each for each in self._newest() if each.place and place.thread)
        return next((each for each in told if _same_thread(each.place, place)), None)

    async def forget_older(self, project: str, keep: int) -> None:
        for confirmed in (True, False):
            known = [
                each for each in self._newest() if each.project == project and bool(each.confirmed_by) is confirmed
            ]
            for old in known[keep:]:
                del self.by_id[old.id]

    def _newest(self) -> list[RecordedFailure]:
        in_order = sorted(self.by_id.values(), key=lambda each: each.id)
        return sorted(in_order, key=lambda each: each.found_at, reverse=True)


def _same_thread(one: Place | None, other: Place) -> bool:
    return one is not None and (one.platform, one.channel, one.thread) == (other.platform, other.channel, other.thread)


@dataclass(slots=True)
class InMemoryAudit:
    entries: list[NumberedEntry] = field(default_factory=list)
    count: int = 0  # of all that were ever added

    async def add(self, entry: AuditEntry) -> None:
        if all(known.entry.key != entry.key for known in self.entries):
            self.count += 1
            self.entries.append(NumberedEntry(self.count, entry))

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        shown = [
            each
            for each in reversed(self.entries)
            if (before is None or each.number < before) and (act is None or each.entry.act is act)
        ]
        return shown[:limit]

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        return [each for each in self.entries if each.entry.at >= at and each.number > after][:limit]

    async def forget_before(self, at: datetime) -> int:
        kept = [each for each in self.entries if each.entry.at >= at]
        forgotten, self.entries = len(self.entries) - len(kept), kept
        return forgotten


@dataclass(slots=True)
class InMemoryChannelSettings:
    by_channel: dict[tuple[str, str], ChannelSettings] = field(default_factory=dict)

    async def get(self, place: Place) -> ChannelSettings:
        return self.by_channel.get((place.platform, place.channel), ChannelSettings())

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        self.by_channel[place.platform, place.channel] = settings


@dataclass(slots=True)
class InMemoryHeldIncidents:
    """By channel and incident: what is held, and whether it was told."""

    held: dict[tuple[str, str, str], tuple[HeldIncident, bool]] = field(default_factory=dict)

    async def hold(self, incident_id: str, place: Place, at: datetime) -> None:
        key = (place.platform, place.channel, incident_id)
        if key not in self.held or self.held[key][1]:
            self.held[key] = HeldIncident(incident_id, place, at), False

    async def places(self, incident_id: str) -> frozenset[Place]:
        return frozenset(each.place for each, _ in self.held.values() if each.incident_id == incident_id)

    async def waiting(self) -> list[HeldIncident]:
        return [each for _, (each, told) in sorted(self.held.items(), key=_first) if not told]

    async def tell(self, incident_id: str, place: Place) -> None:
        key = (place.platform, place.channel, incident_id)
        if key in self.held:
            self.held[key] = self.held[key][0], True

    async def release(self, incident_id: str, place: Place) -> None:
        self.held.pop((place.platform, place.channel, incident_id), None)


def _first(entry: tuple[tuple[str, str, str], object]) -> tuple[str, str, str]:
    return entry[0]


@dataclass(slots=True)
class InMemoryStore:
    """Implements `core.ports.Store`; what was committed can be looked at directly.

    The next `conflicts` transactions that end well are undone and raise Conflict, as for a writer who lost a race;
    the next `outages` raise StoreUnavailable before they begin.
    """

    tasks: InMemoryTasks = field(default_factory=InMemoryTasks)
    incidents: InMemoryIncidents = field(default_factory=InMemoryIncidents)
    posts: InMemoryPosts = field(default_factory=InMemoryPosts)
    dead_letters: InMemoryDeadLetters = field(default_factory=InMemoryDeadLetters)
    silences: InMemorySilences = field(default_factory=InMemorySilences)
    predictions: InMemoryPredictions = field(default_factory=InMemoryPredictions)
    conversations: InMemoryConversations = field(default_factory=InMemoryConversations)
    ingestions: InMemoryIngestions = field(default_factory=InMemoryIngestions)
    cursors: InMemoryCursors = field(default_factory=InMemoryCursors)
    curated: InMemoryCurated = field(default_factory=InMemoryCurated)
    build_failures: InMemoryBuildFailures = field(default_factory=InMemoryBuildFailures)
    channel_settings: InMemoryChannelSettings = field(default_factory=InMemoryChannelSettings)
    held_incidents: InMemoryHeldIncidents = field(default_factory=InMemoryHeldIncidents)
    audit: InMemoryAudit = field(default_factory=InMemoryAudit)
    replicas: InMemoryReplicas = field(default_factory=InMemoryReplicas)
    conflicts: int = 0
    outages: int = 0
    _writer: asyncio.Lock = field(default_factory=asyncio.Lock)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

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


STORES = (
    "tasks",
    "replicas",
    "incidents",
    "posts",
    "dead_letters",
    "silences",
    "predictions",
    "conversations",
    "ingestions",
    "cursors",
    "curated",
    "build_failures",
    "channel_settings",
    "held_incidents",
    "audit",
)


def _snapshot(store: object) -> object:
    """A copy with its own containers; what they hold is frozen."""
    fields = {name: copy(getattr(store, name)) for name in store.__dataclass_fields__}  # pyright: ignore[reportAttributeAccessIssue]
    return type(store)(**fields)
