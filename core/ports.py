"""Every port: what the decisions need from outside. Each has a fake, real adapters, and one contract suite."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.confidence.calibrator import Calibrator
from core.confidence.prediction import Estimator, Outcome, Prediction, PredictionKind
from core.conversation import MessageReference, Place, Question, Turn
from core.curated import CuratedAnswer
from core.feedback import Feedback
from core.incident import Incident
from core.knowledge.document import Document, Passage
from core.knowledge.windows import WindowedPassage
from core.language_model import ModelReply, ModelRequest
from core.messages import Message

if TYPE_CHECKING:  # it is built on the vector types below
    from core.knowledge.encoder import Encoder
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
    """A passage as it is stored: its text, its term weights, its dense vector of unit length, and its windows."""

    passage: Passage
    lexical: SparseVector
    dense: NDArray[np.float32]
    windows: WindowedPassage


@dataclass(frozen=True, slots=True)
class ScoredPassage:
    """A passage, its windows, and one retriever's score for it: an inner product, higher is better."""

    passage: Passage
    windows: WindowedPassage
    score: float


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

    async def search_lexical(self, query: SparseVector, readers: frozenset[str], limit: int) -> list[ScoredPassage]:
        """The passages readable by one of `readers` with the highest inner product above 0, best first."""
        ...

    async def search_dense(
        self, query: NDArray[np.float32], readers: frozenset[str], limit: int
    ) -> list[ScoredPassage]:
        """The passages readable by one of `readers` with the highest inner product, best first."""
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
    """Keeps what the encoder learned from the corpus, beside the index whose vectors depend on it."""

    async def load(self) -> Encoder | None:
        """The encoder that was saved last, by whatever process; None if there is none that this version can read.

        Called for every query: microseconds while nothing was saved since the last call.
        """
        ...

    async def save(self, encoder: Encoder, /) -> None:
        """Replace the encoder: whole or, after a crash, not at all."""
        ...


class OwnerModelStore(Protocol):
    """Keeps what was learned of which team owns which incidents."""

    async def load(self) -> OwnerModel | None:
        """The model that was saved last, by whatever process; None if there is none that this version can read.

        Called for every triage: microseconds while nothing was saved since the last call.
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

    Raises ChatUnavailable when the platform does not answer or asks to wait, MessageNotFound when the message to
    edit or to reply to is gone.
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


@runtime_checkable
class CheckedTool(Protocol):
    """A system that an investigation reads, behind a door: whether it opens can be told without an incident."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raises ToolUnavailable when the token, its rights, the configuration or the way there is wrong."""
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


# --- state -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """A workflow to be started. `key` is its idempotency key; `payload` is JSON-compatible."""

    key: str
    workflow: str
    subject: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Post:
    """A message that Plumbline means to post, and the reference of the message once it stands there."""

    intent: str
    place: Place
    attempted: bool = False
    reference: MessageReference | None = None
    content_hash: str = ""
    withdrawn: bool = False  # it must not stand there any more, nor be posted again


class TaskStore(Protocol):
    """Workflows that were asked for and not all started yet: what makes an acknowledged event safe."""

    async def add(self, task: Task) -> bool:
        """Record a task. False, and nothing is changed, if its key was ever recorded before."""
        ...

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        """Whether there is such a task that nobody has claimed yet.

        Whoever claims it afterwards sees what this transaction writes, so that a second task is not needed.
        """
        ...

    async def claim(self, limit: int) -> list[Task]:
        """The oldest tasks that are not marked as started, also those that were claimed before (by a dead process)."""
        ...

    async def mark_started(self, key: str) -> None: ...


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

    async def noted(self, limit: int) -> list[Incident]:
        """The latest incidents with a note on how they ended, newest first."""
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

    async def posted(self, intent: str, reference: MessageReference, content_hash: str) -> None: ...

    async def edited(self, intent: str, content_hash: str) -> None: ...

    async def forget(self, intent: str) -> None:
        """The message is gone: go back to the wish to post."""
        ...

    async def withdraw(self, intent: str, place: Place) -> Post:
        """Never post it again, even if nobody meant to so far; the record of what stands there now."""
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


class Transaction(Protocol):
    """The stores, written together or not at all."""

    @property
    def tasks(self) -> TaskStore: ...
    @property
    def incidents(self) -> IncidentStore: ...
    @property
    def posts(self) -> PostStore: ...
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


class Store(Protocol):
    """Durable state. Raises StoreUnavailable."""

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """A transaction: committed when the block ends, rolled back when it raises."""
        ...


# --- inbound ---------------------------------------------------------------------------------------------------------


class Inbox(Protocol):
    """Where the inbound adapters hand in what people do in a chat.

    Each call returns as soon as the event is durably recorded (milliseconds), so that the chat can be acknowledged;
    the work happens afterwards. An event whose id was handed in before is dropped.
    """

    async def ask(self, question: Question) -> None:
        """A mention, a direct message or a slash command; the text is what follows the bot's name."""
        ...

    async def press(self, feedback: Feedback) -> None:
        """A pressed button."""
        ...

    async def retract(self, question_id: str, place: Place) -> None:
        """A message was deleted that may have been a question; `question_id` is the id that it had or would have had."""
        ...
