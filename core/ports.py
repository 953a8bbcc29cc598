"""Every port: what the decisions need from outside. Each has a fake, real adapters, and one contract suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.audit import Act, AuditEntry, NumberedEntry
from core.channel_settings import ChannelSettings
from core.confidence.calibrator import Calibrator
from core.confidence.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.conversation import Audience, MessageReference, Place, Question, Turn
from core.correlation import current_correlation
from core.curated import CuratedAnswer
from core.feedback import Feedback, Reaction
from core.incident import Incident
from core.knowledge.document import Document, Passage
from core.knowledge.windows import WindowedPassage
from core.language_model import ModelReply, ModelRequest
from core.messages import Form, Message, Verdict
from core.rca.recorded_failure import RecordedFailure
from core.silences import Silence

if TYPE_CHECKING:  # it is built on the vector types below
    from core.knowledge.encoder import Encoder
    from core.knowledge.wording import Wording
    from core.triage.owner_model import OwnerModel


class Clock(Protocol):
    """The time. The only way for the core and the handlers to know it."""

    def now(self) -> datetime:
        """The current time, with a time zone (UTC)."""
        ...


# --- knowledge -------------------------------------------------------------------------------------------------------


class KnowledgeSource(Protocol):
    """One place that documents come from."""

    @property
    def name(self) -> str:
        """Unique among the sources; the first part of its documents' ids."""
        ...

    def documents(self) -> AsyncIterator[Document]:
        """Every document that the source holds now, each id once, in any order.

        Raises SourceUnavailable when the source cannot be read to its end: then nothing is deleted.
        """
        ...


@dataclass(frozen=True, slots=True)
class Changes:
    """A part of what changed at a source. Once it is indexed, `cursor` is where reading goes on, in whatever process.

    `documents` are new or changed, perhaps only possibly; `removed_ids` are those that the source no longer holds.
    """

    documents: tuple[Document, ...]
    removed_ids: frozenset[str]
    cursor: str


@runtime_checkable
class ChangingSource(Protocol):
    """A place that documents come from which can tell what changed since it was last read."""

    @property
    def name(self) -> str:
        """Unique among the sources; the first part of its documents' ids."""
        ...

    def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[Changes]:
        """What changed since `cursor`, in parts to be applied in order; since ever if it is empty or not understood.

        `known_ids` are the ids of the source's documents that are indexed. After the last part the index holds exactly
        what the source holds. A part is indexed before its cursor is kept, so that a killed process loses none.
        Raises SourceUnavailable when the source cannot be read further: the parts before that stand.
        """
        ...


@runtime_checkable
class CheckedSource(Protocol):
    """A place that documents come from, behind a door: whether it opens can be told without reading everything."""

    async def check(self) -> None:
        """Raises SourceUnavailable when the token, its rights or the way there is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class SourceCursor:
    """How far a source has been read. `documents` is the number of its documents that the index then held.

    An index that holds fewer is not the one that the cursor was kept for: the source is then read from the start.
    """

    position: str
    documents: int


class SecretDetector(Protocol):
    """Finds passwords, keys and tokens."""

    def find(self, text: str) -> list[tuple[int, int]]:
        """Where the secrets stand in `text`: start and end of each, in order, none overlapping."""
        ...


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights: `indices` are distinct and ascending unsigned 32-bit numbers, `values` as many weights above 0."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class EncodedPassage:
    """A passage as it is stored: its text, its term weights, its dense vector of unit length, its windows, its wording."""

    passage: Passage
    lexical: SparseVector
    dense: NDArray[np.float32]
    windows: WindowedPassage
    wording: Wording


@dataclass(frozen=True, slots=True)
class Hit:
    """What a search found: the id of a passage, and its score, an inner product, higher is better."""

    passage_id: str
    score: float


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as it is read again, its windows and its wording."""

    passage: Passage
    windows: WindowedPassage
    wording: Wording


class PassageIndex(Protocol):
    """Passages with a lexical and a dense vector, filtered by reader.

    What was written is found at once by the next search, and survives a kill -9 after `upsert` returned.
    Raises IndexUnavailable when the index cannot be reached.
    """

    async def upsert(self, passages: Sequence[EncodedPassage]) -> None:
        """Write passages; those with a known id are replaced."""
        ...

    async def delete_documents(self, document_ids: Sequence[str]) -> None:
        """Remove all passages of these documents; unknown ids are ignored."""
        ...

    async def clear(self, dimensions: int) -> None:
        """Remove everything and expect dense vectors of this length from now on."""
        ...

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[Hit]:
        """The passages readable by one of `readers` with the highest inner product above 0, best first."""
        ...

    async def search_dense(self, query: NDArray[np.float32], readers: frozenset[str], limit: int) -> list[Hit]:
        """The passages readable by one of `readers` with the highest inner product, best first."""
        ...

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[StoredPassage]:
        """These passages in this order, without those that are gone or that none of `readers` may read."""
        ...

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        """A document's passages in order; empty if it does not exist or none of `readers` may read it."""
        ...

    def scan(self, document_ids: Sequence[str] | None = None) -> AsyncIterator[Passage]:
        """Every passage (of these documents), whoever may read it: to learn term statistics from, never to show."""
        ...

    async def content_hashes(self, source: str) -> dict[str, str]:
        """Document id → content hash of everything indexed from this source."""
        ...

    async def count(self) -> int:
        """The number of passages."""
        ...

    async def close(self) -> None: ...


class EncoderStore(Protocol):
    """Keeps what the encoder learned from the corpus, for every process on the index whose vectors depend on it.

    Raises StoreUnavailable where it is in a database that cannot be reached.
    """

    async def load(self) -> Encoder | None:
        """The encoder that was saved last; None if there is none that this version can read.

        By this process at once, by whatever process after at most 2 seconds where it is in a database. Called for
        every query: microseconds while nothing was saved since the last call, but for one look in those 2 seconds.
        """
        ...

    async def load_newest(self) -> Encoder | None:
        """The same, and surely the one that was saved last by whatever process: for whoever is about to change it."""
        ...

    async def save(self, encoder: Encoder, /) -> None:
        """Replace the encoder: whole or, after a crash, not at all."""
        ...


class OwnerModelStore(Protocol):
    """Keeps what was learned of which team owns which incidents, for every process.

    Raises StoreUnavailable where it is in a database that cannot be reached.
    """

    async def load(self) -> OwnerModel | None:
        """The model that was saved last; None if there is none that this version can read.

        By this process at once, by whatever process after at most 2 seconds where it is in a database. Called for
        every triage: microseconds while nothing was saved since the last call, but for one look in those 2 seconds.
        """
        ...

    async def save(self, model: OwnerModel, /) -> None:
        """Replace the model: whole or, after a crash, not at all."""
        ...


class Embedder(Protocol):
    """A pretrained embedding model, in place of the latent model that is fitted to the corpus."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row of unit length for each text."""
        ...

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """A vector of unit length; its inner product with a passage's row says how near they are."""
        ...


class LanguageModel(Protocol):
    """A language model at the user's side. Whatever it says is untrusted text.

    Every call raises ModelUnavailable when the model does not answer within the request's deadline, is overloaded or
    is down, and PromptTooLong when the prompt and `max_tokens` do not fit into the context: nothing is ever cut.
    """

    @property
    def name(self) -> str:
        """The model's name as people see it."""
        ...

    async def context_tokens(self) -> int:
        """How many tokens a prompt and its reply may have together."""
        ...

    async def count_tokens(self, text: str) -> int:
        """The length of `text` by the model's own tokenizer; 0 for the empty text."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply:
        """One reply. With a schema, it is valid JSON under the schema unless it was cut at `max_tokens`.

        Raises InvalidReply if a server without grammars gave no valid reply within its rounds.
        """
        ...

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """`count` independent replies to one prompt, which is computed once where the server can."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """One reply, piece by piece as it is generated; abandoning the iteration cancels it at the server."""
        ...

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """The probability of each of 2 to 20 distinct `choices` as the whole reply; they add up to 1.

        Read from the token probabilities of one constrained step, or estimated by sampling where the server has none.
        """
        ...


# --- chat ------------------------------------------------------------------------------------------------------------


class Messenger(Protocol):
    """Speaks on one chat platform.

    Raises ChatUnavailable when the platform does not answer, ChatBusy when it asks to wait and took nothing,
    MessageNotFound when the message to edit or to reply to is gone, Undeliverable when it will never take a message.
    """

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        """Post a message. `intent` names this very post, so that `find` finds it after a crash."""
        ...

    async def edit(self, reference: MessageReference, message: Message) -> None:
        """Replace the content of a message that was posted."""
        ...

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """The message that was posted for this intent; None if there is none or the platform cannot tell."""
        ...

    async def delete(self, reference: MessageReference) -> None:
        """Take a message that was posted away again; one that is gone already is left at that."""
        ...

    async def link(self, reference: MessageReference) -> str:
        """The address of a message for people who may read it; empty where none is known. Does not raise."""
        ...


@runtime_checkable
class SignallingMessenger(Protocol):
    """A messenger whose platform can show that somebody is waited for, other than by a message."""

    async def signal(self, place: Place, text: str) -> bool:
        """Show this line until the next post in the thread; False if the platform has no such sign there.

        Raises ChatUnavailable.
        """
        ...


class ThreadReader(Protocol):
    """Reads on one chat platform what people said to each other. Untrusted."""

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        """What was said in the thread at `place` before that time, oldest first; empty outside a thread.

        Of more than `limit` (at least 2) messages, the one that began the thread and the latest ones. A thread that is
        gone is empty. Raises ChatUnavailable.
        """
        ...


# --- monitoring ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """From `start` (inclusive) to `end` (exclusive), both with a time zone."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LogLine:
    """One log record; `text` may hold several lines (a stack trace). Untrusted."""

    service: str
    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over time: `values[i]` was measured at `times[i]` (ascending); a missing value is NaN."""

    service: str
    metric: str
    times: tuple[datetime, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """Something that somebody or something changed: a deployment, a configuration, a flag, a migration. Untrusted."""

    id: str
    at: datetime
    kind: str
    service: str
    author: str
    title: str
    detail: str = ""
    files: tuple[str, ...] = ()
    url: str = ""


class LogReader(Protocol):
    """Reads logs. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def lines(self, service: str, window: TimeWindow, limit: int) -> list[LogLine]:
        """The last `limit` records of a service within the window, oldest first; none for an unknown service."""
        ...


class MetricReader(Protocol):
    """Reads metrics. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def series(self, service: str, window: TimeWindow) -> list[Series]:
        """Every metric of a service over the window; none for an unknown service."""
        ...


class ChangeReader(Protocol):
    """Reads changes. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def changes(self, window: TimeWindow) -> list[Change]:
        """Every change within the window, oldest first, whatever service it touches."""
        ...


@dataclass(frozen=True, slots=True)
class Definition:
    """A class or function in a repository. Untrusted.

    `container` is the class that it belongs to, empty for none; `path` is relative to the repository and `line` counts
    from 1. `references` are the names of what it calls and of the types it uses, in order, qualified where the code is.
    """

    name: str
    container: str
    repository: str
    path: str
    line: int
    text: str
    references: tuple[str, ...]


class CodeReader(Protocol):
    """Reads source code. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def definitions(self, names: Sequence[str]) -> list[Definition]:
        """Every class and function of one of these simple names, in order of repository, path and line."""
        ...


@dataclass(frozen=True, slots=True)
class ToolParameter:
    """What a tool wants to know: an id, a service, a snapshot key; never a query. `choices` are all allowed values.

    With `snapshot` the value is the key of an earlier observation, and the tool gets the observation itself.
    """

    name: str
    description: str
    choices: tuple[str, ...] = ()
    snapshot: bool = False


class Tool(Protocol):
    """Something read-only that the investigating model may ask (RCAgent, section 3.2). Raises ToolUnavailable.

    What it answers depends on its arguments alone for the length of one investigation, and is untrusted text.
    """

    @property
    def name(self) -> str:
        """Unique among the tools; letters, digits and underscores."""
        ...

    @property
    def description(self) -> str:
        """What it tells, in one sentence."""
        ...

    @property
    def parameters(self) -> tuple[ToolParameter, ...]: ...

    async def call(self, arguments: Mapping[str, str]) -> str:
        """The observation; `arguments` has a value for every parameter, one of its choices if it has any."""
        ...


class DependencyReader(Protocol):
    """Reads which service calls which, as traces show it. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def dependencies(self, window: TimeWindow) -> dict[str, tuple[str, ...]]:
        """Caller → the services that it called within the window, each once, in order of their names."""
        ...


@dataclass(frozen=True, slots=True)
class FailedBuild:
    """A run of a pipeline that failed, with the end of the log of its first failed step. Untrusted.

    `service` is the one whose builds these are, `project` what the build server calls it. Where there is no build server
    because somebody pasted a log, all but the log and the service are empty.
    """

    system: str
    project: str
    service: str
    run: str
    step: str
    log: str
    url: str = ""
    at: datetime | None = None

    @property
    def history_key(self) -> str:
        """Under what confirmed failures of the same kind are kept; empty where nothing tells what ran."""
        return f"{self.system or 'pasted'}: {self.project}" if self.project else ""


@runtime_checkable
class BuildReader(Protocol):
    """Reads builds that failed. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def linked_failure(self, url: str) -> FailedBuild | None:
        """The failed run that a link leads to; None if it did not fail, or is not one of the configured projects."""
        ...

    async def last_failure(self, service: str, before: datetime) -> FailedBuild | None:
        """The latest run of a service that began before that time, if it failed; None for an unknown service."""
        ...


@runtime_checkable
class CheckedTool(Protocol):
    """A system that an investigation reads, behind a door: whether it opens can be told without an incident."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raises ToolUnavailable when the token, its rights, the configuration or the way there is wrong."""
        ...


class AlertMonitor(Protocol):
    """A monitoring system that tells what it knows of alerts right now. Raises ToolUnavailable."""

    @property
    def name(self) -> str: ...

    async def firing(self, incident: Incident) -> bool | None:
        """Whether an alert of this incident fires, silenced or not; None if this system cannot tell."""
        ...

    async def silences(self) -> list[Silence]:
        """Those that are in force; none where the system knows no silences."""
        ...


class Toolbox(Protocol):
    """An outside system that the investigating model may ask."""

    @property
    def name(self) -> str: ...

    async def tools(self, services: Sequence[str], window: TimeWindow) -> list[Tool]:
        """The tools for one investigation. Raises ToolUnavailable.

        Of what has a time they tell nothing from after the window.
        """
        ...


# --- people ----------------------------------------------------------------------------------------------------------


class OnCall(Protocol):
    """Who is on call, team by team."""

    @property
    def name(self) -> str:
        """What people call the system that holds the schedules."""
        ...

    @property
    def teams(self) -> frozenset[str]:
        """The ids of the teams whose schedules it has."""
        ...

    async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
        """Those on call for a team at a time (with a zone), the one to call first before the others. Untrusted.

        Nobody for a team that is not in `teams`, or while nobody is on call. Raises ToolUnavailable when the schedule
        cannot be read.
        """
        ...


# --- state -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """A workflow to be started. `key` is its idempotency key; `payload` is JSON-compatible.

    `correlation` is that of the request or task that asks for it (see `core.correlation`), empty if nothing did.
    """

    key: str
    workflow: str
    subject: str
    payload: Mapping[str, Any]
    correlation: str = field(default_factory=current_correlation)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Tasks that nobody has taken on yet: how many, and since when the oldest waits, None if none does.

    `under_way` are those that were taken on and have not ended.
    """

    waiting: int
    oldest: datetime | None
    under_way: int


@dataclass(frozen=True, slots=True)
class Post:
    """A message that Plumbline means to post, and the reference of the message once it stands there."""

    intent: str
    place: Place
    attempted: bool = False
    reference: MessageReference | None = None
    content_hash: str = ""
    withdrawn: bool = False  # it must not stand there any more, nor be posted again
    claim: str = ""  # the id of the prediction that it claims, see `core.messages.claim`


class TaskStore(Protocol):
    """Workflows that were asked for, until they have ended: what makes an acknowledged event safe."""

    async def add(self, task: Task) -> bool:
        """Record a task. False, and nothing is changed, if its key was ever recorded before."""
        ...

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        """Whether there is such a task that nobody has claimed yet.

        Whoever claims it afterwards sees what this transaction writes, so that a second task is not needed.
        """
        ...

    async def claim(self, owner: str, limit: int) -> list[Task]:
        """The oldest tasks that have not ended and belong to no replica; they belong to `owner` from now on."""
        ...

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        """Let go of what `owners` claimed and has not ended, but for these keys; how many that were."""
        ...

    async def end(self, keys: Collection[str]) -> None:
        """Nothing is left to do for these tasks."""
        ...

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        """These tasks have not ended after all, and belong to `owner`."""
        ...

    async def backlog(self) -> Backlog:
        """What waits, and what is under way, whoever works on it."""
        ...


class ReplicaStore(Protocol):
    """The processes that work on this store, and those that did and left work behind."""

    async def seen(self, replica: str, at: datetime) -> None:
        """It is at work, and now by its own clock is `at`: nobody is thought dead because of that."""
        ...

    async def all(self) -> dict[str, datetime]:
        """When each was seen last."""
        ...

    async def remove(self, replica: str) -> None: ...


class IncidentStore(Protocol):
    """Incidents. At most one is open for a source and group key."""

    async def add_delivery(self, key: str, received_at: datetime) -> bool:
        """Remember an alert delivery. False if its key was ever recorded before."""
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

    async def ended(self, limit: int) -> list[Incident]:
        """The latest incidents that are resolved or have such a note, newest first."""
        ...

    async def save(self, incident: Incident) -> None:
        """Insert at revision 1, else replace the preceding revision. Raises Conflict if another writer was first."""
        ...


class PostStore(Protocol):
    """The record of every post, before and after it is made."""

    async def intend(self, intent: str, place: Place) -> Post:
        """Record the wish to post, or return the record that there is already."""
        ...

    async def attempted(self, intent: str) -> None: ...

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> None: ...

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None: ...

    async def at(self, reference: MessageReference) -> Post | None:
        """What was posted as this message; its thread does not matter. None if Plumbline posted no such message."""
        ...

    async def forget(self, intent: str) -> None:
        """The message is gone: go back to the wish to post."""
        ...

    async def withdraw(self, intent: str, place: Place) -> Post:
        """Never post it again, even if nobody meant to so far; the record of what stands there now."""
        ...

    async def outdate(self, intent: str, place: Place, at: datetime, patience: timedelta) -> bool:
        """Wish that it be brought up to date. False if somebody was asked to less than `patience` ago and has not yet.

        Whoever does it learns of this wish, and sees what this transaction writes.
        """
        ...

    async def wishes(self, intent: str) -> int:
        """How often that was wished."""
        ...

    async def mend(self, intent: str, wishes: int) -> bool:
        """It was brought up to date, with what was stored when there were so many wishes. False if there are more."""
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that the chat will never take as it is, and why; until a person has it tried again."""

    intent: str
    place: Place
    message: Message
    reason: str
    at: datetime


class DeadLetterStore(Protocol):
    """What could not be posted."""

    async def add(self, intent: str, place: Place, message: Message, reason: str) -> None:
        """Keep a message from now on, in place of what was kept for its intent."""
        ...

    async def get(self, intent: str) -> DeadLetter | None: ...

    async def latest(self, limit: int) -> list[DeadLetter]:
        """Newest first."""
        ...

    async def count(self) -> int: ...

    async def remove(self, intent: str) -> None: ...


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
        """Store a label. A later label by the same person on the same prediction replaces the earlier one."""
        ...

    async def unlabel(self, prediction_id: str, labelled_by: str) -> None:
        """Take the label of this person back; nothing if there is none."""
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
    """What was said in the threads that Plumbline took part in."""

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
    """

    source: str
    finished_at: datetime
    documents: int
    failure: str = ""


class IngestionStore(Protocol):
    """How fresh each knowledge source is."""

    async def record(self, ingestion: Ingestion) -> None: ...

    async def all(self) -> list[Ingestion]:
        """The last ingestion of every source, by name."""
        ...


class CursorStore(Protocol):
    """How far each changing source has been read."""

    async def load(self, source: str) -> SourceCursor | None:
        """Where reading goes on; None for a source that was never read."""
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
    """Who saw and did what. Entries are added, and forgotten when they are old; none is ever changed."""

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
    """What is set for a channel. Of a place, only the platform and the channel matter."""

    async def get(self, place: Place) -> ChannelSettings:
        """What was saved last for the channel; the defaults if nothing ever was."""
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


class Transaction(Protocol):
    """The stores, written together or not at all."""

    @property
    def tasks(self) -> TaskStore: ...
    @property
    def replicas(self) -> ReplicaStore: ...
    @property
    def incidents(self) -> IncidentStore: ...
    @property
    def posts(self) -> PostStore: ...
    @property
    def dead_letters(self) -> DeadLetterStore: ...
    @property
    def silences(self) -> SilenceStore: ...
    @property
    def predictions(self) -> PredictionStore: ...
    @property
    def conversations(self) -> ConversationStore: ...
    @property
    def ingestions(self) -> IngestionStore: ...
    @property
    def cursors(self) -> CursorStore: ...
    @property
    def curated(self) -> CuratedStore: ...
    @property
    def build_failures(self) -> BuildFailureStore: ...
    @property
    def channel_settings(self) -> ChannelSettingsStore: ...
    @property
    def held_incidents(self) -> HeldIncidentStore: ...
    @property
    def audit(self) -> AuditStore: ...


class Store(Protocol):
    """Durable state. Raises StoreUnavailable."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: committed when the block ends, rolled back when it raises."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one task at a time, of all processes on this store; a process that dies lets go. Not reentrant.

        A holder that loses its database meanwhile may not be alone any more: what it guards must bear that, as a
        message does that is only shown out of date until its next edit.
        """
        ...


# --- inbound ---------------------------------------------------------------------------------------------------------


class Inbox(Protocol):
    """Where the inbound adapters hand in what people do in a chat.

    Each call returns as soon as the event is durably recorded (milliseconds), so that the chat can be acknowledged;
    the work happens afterwards. An event whose key was handed in before is dropped.
    """

    async def ask(self, question: Question) -> None:
        """A mention, a direct message or a slash command, or such a message that was edited (see `Question.revision`).

        The text is what follows the bot's name.
        """
        ...

    async def press(self, feedback: Feedback) -> None:
        """A pressed button."""
        ...

    async def react(self, reaction: Reaction) -> None:
        """A reaction to a message that may be one of ours."""
        ...

    async def retract(self, question_id: str, place: Place) -> None:
        """A message was deleted that may have been a question; `question_id` is the id that it had or would have had."""
        ...


class Standing(Protocol):
    """What a message of ours shows, for platforms that ask for it again."""

    async def message(self, reference: MessageReference) -> Message | None:
        """As it would be shown now, within milliseconds; None for one that nothing can change any more.

        Of the reference, the platform, the channel and the message's id matter. Raises StoreUnavailable.
        """
        ...


class Forms(Protocol):
    """What is asked of somebody whose press leaves a question open, for platforms that can ask it in a form."""

    async def form(self, verdict: Verdict, subject: str, audience: Audience) -> Form | None:
        """The form for a press of this button, within milliseconds; None if nothing is to be asked.

        It says nothing that the audience of the message may not read.

        Raises StoreUnavailable.
        """
        ...
