"""Ports of stored state: incidents, predictions, conversations and settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.confidence.calibrator import Calibrator
from core.model.audit import Act, AuditEntry, NumberedEntry
from core.model.channel_settings import ChannelSettings
from core.model.conversation import Place, Turn
from core.model.curated import CuratedAnswer
from core.model.incident import Incident
from core.model.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.model.silences import Silence
from core.ports.knowledge import SourceCursor
from core.rca.failure_history import RecordedFailure


class IncidentStore(Protocol):
    """Incidents. At most one is open for a source and group key."""

    async def known_deliveries(self, keys: Collection[str]) -> frozenset[str]:
        """Those of the keys of alert deliveries that are remembered."""
        ...

    async def add_deliveries(self, received: Mapping[str, datetime]) -> None:
        """Remember alert deliveries by their keys, and when they came; what is remembered already stays as it is."""
        ...

    async def get(self, incident_id: str) -> Incident | None: ...

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        """The open incident of an alert group; if there is none, the one that was opened last."""
        ...

    async def in_thread(self, place: Place) -> Incident | None:
        """The incident whose message is the root of the thread at `place`."""
        ...

    async def recent(self, limit: int) -> list[Incident]:
        """The latest incidents, newest first."""
        ...

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        """Open incidents that began at `since` or later, oldest first, and may have to do with this stored one.

        They are of one of these services, hold an alert that either was opened with, or come from another source about
        the same service.
        """
        ...

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        """Open incidents, oldest first; those that come after that one."""
        ...

    async def latest_open(self, limit: int) -> list[Incident]:
        """The latest open incidents, newest first."""
        ...

    async def led_by(self, incident_id: str, limit: int) -> list[Incident]:
        """The incidents that were absorbed by this one, oldest first."""
        ...

    async def noted(self, limit: int) -> list[Incident]:
        """The latest incidents with a note on how they ended, newest first."""
        ...

    async def ended(self, limit: int, since: datetime | None = None) -> list[Incident]:
        """The latest incidents that are resolved or have such a note, newest first.

        With `since`, only those that were saved at that time or later, by the clock of whoever saved them.
        """
        ...

    async def save(self, incident: Incident) -> None:
        """Insert at revision 1, else replace the preceding revision. Raises Conflict if another writer was first."""
        ...


class SilenceStore(Protocol):
    """Maintenance windows that people declared in a chat."""

    async def save(self, silence: Silence) -> None:
        """Insert or replace."""
        ...

    async def not_over(self, at: datetime) -> list[Silence]:
        """Those that end after `at`, the first to end first."""
        ...


class PredictionStore(Protocol):
    """Every prediction, what became of it, and the calibrators fitted from that."""

    async def add(self, prediction: Prediction) -> None:
        """Store a prediction; one with a known id is left as it is."""
        ...

    async def get(self, prediction_id: str) -> Prediction | None: ...

    async def label(self, outcome: Outcome) -> None:
        """Store a label. A later label by the same person on the same prediction replaces the earlier one.

        One that is earlier than that person's label is not stored: events may come out of order.
        """
        ...

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        """Take the label of this person back; nothing if there is none."""
        ...

    async def react(self, prediction_id: str, by: str, *, approves: bool, at: datetime, taken_back: bool) -> bool:
        """Remember that this person put such a reaction to a stored prediction at this time, or took it back.

        False, and nothing is changed, if something later is known of that reaction.
        """
        ...

    async def reactions(self, prediction_id: str, by: str) -> dict[bool, datetime]:
        """The reactions of this person that stand: whether each approves → when it was put."""
        ...

    async def judged_since(self, kind: PredictionKind, since: datetime) -> list[str]:
        """The subjects of the predictions of a kind that have a label from that time or later, in order."""
        ...

    async def labels_of(self, prediction_id: str) -> list[Outcome]:
        """Every label on a prediction, one a person, oldest first."""
        ...

    async def labelled(self, estimator: Estimator) -> list[tuple[Prediction, Outcome]]:
        """Every prediction of an estimator that has a label, with its latest one, oldest prediction first."""
        ...

    async def estimators(self) -> list[Estimator]:
        """All that ever made a prediction, in order."""
        ...

    async def count_labelled(self, estimator: Estimator) -> int: ...

    async def recent(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        """The latest predictions of a kind, newest first, each with its latest label if it has one."""
        ...

    async def calibrator(self, estimator: Estimator) -> Calibrator | None:
        """The calibrator in use, None while there is none."""
        ...

    async def adopt(self, estimator: Estimator, calibrator: Calibrator) -> None:
        """Use a calibrator from now on. The earlier ones are kept, for badges that were made with them."""
        ...

    async def calibrator_version(self, version: str) -> Calibrator | None:
        """A calibrator that is or was in use, by its version."""
        ...


class ConversationStore(Protocol):
    """The conversations in the threads that Plumbline took part in."""

    async def add(self, key: str, place: Place, turn: Turn, at: datetime) -> None:
        """Remember a turn; one with a known key is left as it is."""
        ...

    async def forget(self, key: str) -> None:
        """Forget a turn; nothing if there is none."""
        ...

    async def get(self, key: str, place: Place) -> Turn | None:
        """The turn of this key; None if there is none, or if it was not said in the channel of `place`."""
        ...

    async def history(self, place: Place, limit: int) -> tuple[Turn, ...]:
        """The last turns in the thread at `place`, oldest first; empty outside a thread."""
        ...


@dataclass(frozen=True, slots=True)
class Ingestion:
    """How fresh a source is: when it was read to its end the last time, and how many documents of it are indexed.

    `failure` says why it could not be read since; before it was ever read, `finished_at` is when that was tried.
    `left_out` names documents that could not be indexed, each with the reason.
    """

    source: str
    finished_at: datetime
    documents: int
    failure: str = ""
    left_out: tuple[str, ...] = ()


class IngestionStore(Protocol):
    """How fresh each knowledge source is."""

    async def record(self, ingestion: Ingestion) -> None: ...

    async def all(self) -> list[Ingestion]:
        """The last ingestion of every source, by name."""
        ...

    async def forget(self, source: str) -> None:
        """Without an effect for a source that is not known."""
        ...


class CursorStore(Protocol):
    """How far each changing source has been read."""

    async def load(self, source: str) -> SourceCursor | None:
        """Return the cursor at which reading goes on; None for a source that was never read."""
        ...

    async def save(self, source: str, cursor: SourceCursor) -> None:
        """Remember where reading goes on, in place of what was remembered before."""
        ...


class CuratedStore(Protocol):
    """Answers that people gave: proposals, and those that were confirmed."""

    async def get(self, answer_id: str) -> CuratedAnswer | None: ...

    async def save(self, answer: CuratedAnswer) -> None:
        """Insert or replace."""
        ...

    async def current(self, at: datetime) -> list[CuratedAnswer]:
        """Those that are confirmed and expire after `at`, by id."""
        ...


class BuildFailureStore(Protocol):
    """Failed builds that were told to people, and the lines that these confirmed."""

    async def get(self, failure_id: str) -> RecordedFailure | None: ...

    async def save(self, failure: RecordedFailure) -> None:
        """Insert or replace."""
        ...

    async def confirmed(self, project: str, limit: int) -> list[RecordedFailure]:
        """The latest confirmed ones of a project, newest first."""
        ...

    async def in_thread(self, place: Place) -> RecordedFailure | None:
        """The latest one that was asked for in the thread at `place`; None outside a thread."""
        ...

    async def forget_older(self, project: str, keep: int) -> None:
        """Of a project's confirmed ones, and of the others, keep the latest `keep` each."""
        ...


class AuditStore(Protocol):
    """The audit log. Entries are added, and forgotten when they are old; none is ever changed."""

    async def add(self, entry: AuditEntry) -> None:
        """Add an entry; one with a known key is left as it is."""
        ...

    async def latest(self, limit: int, before: int | None = None, act: Act | None = None) -> list[NumberedEntry]:
        """The latest entries (of this act), newest first; with `before`, those whose number is below it."""
        ...

    async def since(self, at: datetime, after: int, limit: int) -> list[NumberedEntry]:
        """The first `limit` entries from `at` on whose number is above `after`, in ascending order of number."""
        ...

    async def forget_before(self, at: datetime) -> int:
        """Delete the entries from before `at`, and return how many. For the retention policy alone."""
        ...


class ChannelSettingsStore(Protocol):
    """The settings of channels. Of a place, only the platform and the channel matter."""

    async def get(self, place: Place) -> ChannelSettings:
        """Return the settings that were saved last for the channel; the defaults if none ever were."""
        ...

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        """Insert or replace."""
        ...


@dataclass(frozen=True, slots=True)
class HeldIncident:
    """An incident that a place is to be told of later, and since when."""

    incident_id: str
    place: Place
    held_at: datetime


class HeldIncidentStore(Protocol):
    """Incidents that a channel's quiet hours hold back, until it was told of them. Of a place, the channel matters."""

    async def hold(self, incident_id: str, place: Place, at: datetime) -> None:
        """It is to be told there later, also if it was told before. Of one that waits already, nothing changes."""
        ...

    async def places(self, incident_id: str) -> frozenset[Place]:
        """The places that it is held for, told or not."""
        ...

    async def waiting(self) -> list[HeldIncident]:
        """Everything that is to be told, by channel and incident."""
        ...

    async def tell(self, incident_id: str, place: Place) -> None:
        """The place was told of it; it still is not posted there."""
        ...

    async def release(self, incident_id: str, place: Place) -> None:
        """It is posted there as usual."""
        ...
