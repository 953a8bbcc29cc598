"""Ports of stored state: incidents, predictions, conversations and settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.model.audit import Act, AuditEntry, NumberedEntry
from core.model.badge import Calibrator, Estimator, Outcome, Prediction, PredictionKind, RecordedFailure, Verdict
from core.model.conversation import Place, Turn
from core.model.document import CuratedAnswer
from core.model.incident import Incident
from core.model.silences import ChannelSettings, Silence
from core.ports.knowledge import SourceCursor


class IncidentStore(Protocol):
    """Stores incidents. At most one is open per source and group key."""

    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        """Return those of the keys that belong to recorded deliveries."""
        ...

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        """Record alert deliveries by key, with their time of arrival. Known keys are left unchanged."""
        ...

    async def get(self, incident_id: str) -> Incident | None: ...

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        """Return the open incident of an alert group; if there is none, the one opened last."""
        ...

    async def in_thread(self, place: Place) -> Incident | None:
        """Return the latest incident with this thread (see `Placement.thread`); None outside a thread."""
        ...

    async def recent(self, limit: int) -> list[Incident]:
        """Return the latest incidents, newest first."""
        ...

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        """Return open incidents that began at `since` or later and may be related to this one, oldest first.

        They are of one of these services, share an alert that either was opened with, or come from another source about
        the same service.
        """
        ...

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        """Return open incidents, oldest first, starting after `after`."""
        ...

    async def latest_open(self, limit: int, source: str = "") -> list[Incident]:
        """Return the latest open incidents of the sources with this beginning, newest first."""
        ...

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        """Return the incidents merged directly into this one, oldest first."""
        ...

    async def noted(self, limit: int) -> list[Incident]:
        """Return the latest incidents with a resolution note, newest first."""
        ...

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        """Return the latest incidents that are resolved or have a resolution note, newest first.

        With `since`, only those that were saved at that time or later, by the clock of the saving process.
        """
        ...

    async def save(self, incident: Incident) -> None:
        """Insert at revision 1, otherwise replace the preceding revision.

        Raises Conflict if another writer was first.
        """
        ...


class SilenceStore(Protocol):
    """Stores maintenance windows declared in a chat."""

    async def save(self, silence: Silence) -> None:
        """Insert or replace a window."""
        ...

    async def not_over(self, at: datetime) -> list[Silence]:
        """Return the windows that end after `at`, sorted by end."""
        ...


class PredictionStore(Protocol):
    """Stores predictions, their outcomes, and the calibrators fitted from them."""

    async def add(self, prediction: Prediction) -> bool:
        """Store a prediction. Returns False, and changes nothing, if its id is known."""
        ...

    async def get(self, prediction_id: str) -> Prediction | None: ...

    async def label(self, outcome: Outcome) -> None:
        """Store a label. A later label by the same person on the same prediction replaces the earlier one.

        An older one is ignored, because events may arrive out of order.
        """
        ...

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        """Remove the label of this person, if there is one."""
        ...

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        """Record that a person added (or took back) a reaction to a stored prediction.

        Returns False, and changes nothing, if a later event of that reaction is known.
        """
        ...

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        """Return the times of this person's current reactions, by whether they approve."""
        ...

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        """Return the subjects of predictions of a kind with a label from `since` or later, in order."""
        ...

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        """Return the labels of a prediction, one per person, oldest first."""
        ...

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        """Return every labelled prediction of an estimator with its latest label, oldest prediction first."""
        ...

    async def estimators(self) -> list[Estimator]:
        """Return all estimators with predictions, in order."""
        ...

    async def verdicts(self, estimator: Estimator, limit: int) -> list[Verdict]:
        """Return those of the latest `limit` predictions of an estimator that were ever judged, oldest first.

        The latest label of each counts. Takes as long for a million predictions as for a thousand.
        """
        ...

    async def recent(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        """Return the latest predictions of a kind, newest first, each with its latest label, if any."""
        ...

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        """Return the current calibrator; None if there is none."""
        ...

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        """Make a calibrator the current one. Earlier ones are kept for the badges made with them."""
        ...

    async def calibrator_version(self, version: str) -> Calibrator | None:
        """Return a current or earlier calibrator by its version."""
        ...


class ConversationStore(Protocol):
    """Stores the conversations in threads that the bot took part in."""

    async def put(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        """Store a turn, in place of an earlier one with the same key."""
        ...

    async def forget(self, key: str) -> None:
        """Delete a turn, if it exists."""
        ...

    async def get(self, key: str, place: Place) -> Turn | None:
        """Return the turn with this key; None if there is none in the channel of `place`."""
        ...

    async def history(self, place: Place, limit: int, besides: Collection[str] = ()) -> tuple[Turn, ...]:
        """Return the last turns of the thread at `place` without those of the keys `besides`, oldest first.

        Empty outside a thread.
        """
        ...

    async def latest(self, place: Place, since: datetime, limit: int) -> tuple[Turn, ...]:
        """Return the last turns of the thread of the channel in which something was said last, and not before `since`;
        oldest first.
        """
        ...


@dataclass(frozen=True, slots=True)
class Ingestion:
    """The freshness of a source: when it was last read completely, and how many of its documents are indexed.

    `failure` says why later attempts failed; if it was never read, `finished_at` is the time of the attempt, and None
    while the first reading goes on, also in a process that was killed. `left_out` names documents that could not be
    indexed, with the reasons.
    """

    source: str
    finished_at: datetime | None
    documents: int
    failure: str = ""
    left_out: tuple[str, ...] = ()


class IngestionStore(Protocol):
    """Stores the freshness of each knowledge source."""

    async def record(self, ingestion: Ingestion) -> None: ...

    async def all(self) -> list[Ingestion]:
        """Return the last ingestion of every source, by name; of a changing source also the first, as far as it got."""
        ...

    async def forget(self, source: str) -> None:
        """Delete the record and the cursor of a source, if they exist."""
        ...


class CursorStore(Protocol):
    """Stores the cursor of each changing source."""

    async def load(self, source: str) -> SourceCursor | None:
        """Return the cursor to continue at; None for a source that was never read."""
        ...

    async def save(self, source: str, cursor: SourceCursor) -> None:
        """Replace the cursor of a source."""
        ...


class CuratedStore(Protocol):
    """Stores corrected answers, both proposed and confirmed."""

    async def get(self, answer_id: str) -> CuratedAnswer | None: ...

    async def save(self, answer: CuratedAnswer) -> None:
        """Insert or replace an answer."""
        ...

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        """Return the confirmed answers that expire after `at`, by id."""
        ...


class BuildFailureStore(Protocol):
    """Stores failed builds that were shown to people, and the lines that people confirmed."""

    async def get(self, failure_id: str) -> RecordedFailure | None: ...

    async def save(self, failure: RecordedFailure) -> None:
        """Insert or replace a failure."""
        ...

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        """Return the latest confirmed failures of a project, newest first."""
        ...

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        """Return the latest failure that was asked about in the thread at `place`; None outside a thread."""
        ...

    async def forget_older(self, project: str, keep: int) -> None:
        """Keep the latest `keep` confirmed and the latest `keep` unconfirmed failures of a project."""
        ...


class AuditStore(Protocol):
    """Stores the audit log. Entries are added, and deleted when old; they are never changed."""

    async def add(self, entry: AuditEntry) -> None:
        """Add an entry. One with a known key is left unchanged."""
        ...

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        """Return the latest entries (of this act), newest first; with `before`, those with a lower number."""
        ...

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        """Return the first `limit` entries from `at` on with a number above `after`, in ascending order."""
        ...


class ChannelSettingsStore(Protocol):
    """Stores channel settings. Only the platform and the channel of a place matter."""

    async def get(self, place: Place) -> ChannelSettings:
        """Return the latest settings of the channel; the defaults if there are none."""
        ...

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        """Insert or replace the settings."""
        ...

    async def adopting(self) -> list[Place]:
        """Return the channels in which people chose that alerts of other bots are adopted."""
        ...


@dataclass(frozen=True, slots=True)
class HeldIncident:
    """An incident that is not posted in a place, and since when.

    `storm` names the summary that lists it, because too many arrived at once; empty if quiet hours or its judgement hold
    it.
    """

    incident_id: str
    place: Place
    held_at: datetime
    storm: str = ""


class HeldIncidentStore(Protocol):
    """Stores incidents that are not posted for now. Only the channel of a place matters."""

    async def hold(self, incident_id: str, place: Place, at: datetime, storm: str = "") -> None:
        """Hold an incident for a place, even if it was reported there before. No change if it is already held."""
        ...

    async def places(self, incident_id: str) -> frozenset[Place]:
        """Return the places that an incident is held for, whether it was reported there or not."""
        ...

    async def waiting(self) -> list[HeldIncident]:
        """Return what a morning's summary is still to report, by channel and incident. Not what a storm's summary lists."""
        ...

    async def listing(self, incident_id: str, place: Place) -> HeldIncident | None:
        """Return the incident as a storm's summary in the place lists it; None if none does."""
        ...

    async def latest(self, incident_id: str, place: Place) -> HeldIncident | None:
        """Return the incident as a storm's summary in the place lists it, else what was listed there last; None for none."""
        ...

    async def listed(self, storm: str) -> list[HeldIncident]:
        """Return what a storm's summary lists: what is open before what is over, the worst first, then the oldest."""
        ...

    async def storms(self, since: datetime) -> dict[str, Place]:
        """Return the storms whose summaries list an incident held at `since` or later, with their places, oldest first."""
        ...

    async def mark_reported(self, incident_id: str, place: Place) -> None:
        """Record that the place's summary reported the incident. It is still not posted there."""
        ...

    async def release(self, incident_id: str, place: Place) -> None:
        """Stop holding the incident. It is posted there as usual."""
        ...
