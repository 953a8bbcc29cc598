"""Ports of durable work: tasks, posts and dead letters, and of the durable state as a whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from core.model.conversation import MessageReference, Place
from core.model.messages import Message
from core.model.running import current_correlation
from core.ports.state import (
    AuditStore,
    BuildFailureStore,
    ChannelSettingsStore,
    ConversationStore,
    CuratedStore,
    CursorStore,
    HeldIncidentStore,
    IncidentStore,
    IngestionStore,
    PredictionStore,
    SilenceStore,
)


@dataclass(frozen=True, slots=True)
class Task:
    """A workflow to start. `key` is its idempotency key; `payload` is JSON-compatible.

    `correlation` is that of the request or task that created it (see `core.model.running`), may be empty.
    """

    key: str
    workflow: str
    subject: str
    payload: Mapping[str, Any]
    correlation: str = field(default_factory=current_correlation)

    @property
    def person(self) -> str:
        """Return the platform's id of the person whose question or remark it is; empty for other tasks."""
        asker: Mapping[str, Any] = self.payload.get("asker") or {}
        return str(asker.get("id", ""))


@dataclass(frozen=True, slots=True)
class Backlog:
    """The numbers of unclaimed tasks, with the age of the oldest (None if there are none), and of tasks `under_way`."""

    waiting: int
    oldest: datetime | None
    under_way: int


class TaskStore(Protocol):
    """Stores requested workflows until they end, which makes acknowledged events durable."""

    async def add(self, task: Task) -> bool:
        """Record a task. Returns False, and changes nothing, if its key was ever recorded."""
        ...

    async def is_known(self, key: str) -> bool:
        """Return whether a task with this key was ever recorded."""
        ...

    async def claim(self, owner: str, limit: int, busy: Collection[str] = ()) -> list[Task]:
        """Assign unfinished tasks that belong to no replica to `owner`, and return them.

        Those of nobody come first, for example alerts; then people's, oldest first, except those of `busy` people.
        """
        ...

    async def release(self, owners: Collection[str], kept: Collection[str] = ()) -> int:
        """Release the unfinished tasks claimed by `owners`, except `kept`. Returns their number."""
        ...

    async def end(self, keys: Collection[str]) -> None:
        """Mark tasks as finished."""

    async def reopen(self, keys: Collection[str], owner: str) -> None:
        """Mark tasks as unfinished again, and assign them to `owner`."""

    async def backlog(self) -> Backlog:
        """Return the numbers of waiting and running tasks of all replicas."""
        ...


class ReplicaStore(Protocol):
    """Stores the processes that work on this store, including dead ones that left work behind."""

    async def seen(self, replica: str, at: datetime) -> None:
        """Record that a replica is alive at the time `at` of its own clock."""

    async def all(self) -> dict[str, datetime]:
        """Return when each replica was last seen."""
        ...

    async def remove(self, replica: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Post:
    """A message that is to be posted, and the reference of the message once it is posted."""

    intent: str
    place: Place
    attempted: bool = False
    reference: MessageReference | None = None
    content_hash: str = ""
    withdrawn: bool = False  # it must not be shown or posted again
    claim: str = ""  # id of the claimed prediction, see `core.model.messages.claim`


class PostStore(Protocol):
    """Stores the record of every post, before and after it is made."""

    async def intend(self, intent: str, place: Place) -> Post:
        """Record the intent to post, or return the existing record."""
        ...

    async def find(self, intent: str) -> Post | None:
        """Return the record of an intent; None if there is none."""
        ...

    async def attempt(self, intent: str, place: Place) -> Post | None:
        """Record that the message is about to be posted, unless it was posted or withdrawn.

        Returns the record before that; None if there was none.
        """

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        """Record the posted message. Returns False if it was withdrawn in the meantime."""
        ...

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None: ...

    async def at(self, reference: MessageReference) -> Post | None:
        """Return the post behind this message, in any thread; None if the bot posted no such message."""
        ...

    async def forget(self, intent: str) -> None:
        """Record that the message does not exist, so that it can be posted again."""

    async def withdraw(self, intent: str, place: Place) -> Post:
        """Prevent any further post of the intent, and return the record of the current message."""
        ...

    async def mark_stale(self, intent: str, place: Place, at: datetime, patience: timedelta) -> int | None:
        """Mark the message as out of date, and return the number of pending updates.

        Returns None if an update was requested less than `patience` ago and is not done: it will see what this
        transaction writes.
        """
        ...

    async def admit(self, intent: str, place: Place, at: datetime, since: datetime, limit: int) -> bool:
        """Count an intent, at `at`, among the new messages of the place's channel, unless `limit` were counted after `since`.

        Returns whether it is counted, now or before.
        """
        ...

    async def pending_updates(self, intent: str) -> int:
        """Return the number of requested updates."""
        ...

    async def mark_current(self, intent: str, pending_updates: int) -> bool:
        """Mark the message as up to date with the state at `pending_updates` requested updates.

        Returns False if there are more.
        """
        ...


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that the chat refused, with the reason.

    It is kept until a person retries it, or, if it waits, until the chat takes messages there again.
    """

    intent: str
    place: Place
    message: Message
    reason: str
    at: datetime
    waiting_since: datetime | None = None


class DeadLetterStore(Protocol):
    """Stores the messages that could not be posted."""

    async def add(self, intent: str, place: Place, message: Message, reason: str, *, waits: bool = False) -> None:
        """Store a message, replacing the one for the same intent. A message that goes on waiting keeps its time."""

    async def get(self, intent: str) -> DeadLetter | None: ...

    async def latest(self, limit: int) -> list[DeadLetter]:
        """Return the latest dead letters, newest first."""
        ...

    async def waiting(self) -> list[DeadLetter]:
        """Return those that wait for a chat to take messages, the longest-waiting first."""
        ...

    async def count(self) -> int: ...

    async def remove(self, intent: str) -> None: ...


class Clock(Protocol):
    """The only source of the current time for core and handlers."""

    def now(self) -> datetime:
        """Return the current time in UTC, with a time zone."""
        ...


class Transaction(Protocol):
    """The stores, written atomically."""

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
        """Open a transaction, which is committed when the block ends and rolled back when it raises."""
        ...

    def lock(self, name: str) -> AbstractAsyncContextManager[None]:
        """Hold a lock, exclusive among all processes on this store; a dying process releases it. Not reentrant.

        A holder that loses its database connection may no longer be alone, so the guarded work must tolerate that.
        """
        ...
