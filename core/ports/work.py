"""Work that must not be lost: tasks, posts, and what a chat refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from core.model.conversation import MessageReference, Place
from core.model.correlation import current_correlation
from core.model.messages import Message


@dataclass(frozen=True, slots=True)
class Task:
    """A workflow to be started. `key` is its idempotency key; `payload` is JSON-compatible.

    `correlation` is that of the request or task that asks for it (see `core.model.correlation`), empty if nothing did.
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


class TaskStore(Protocol):
    """Workflows that were asked for, until they have ended: what makes an acknowledged event safe."""

    async def add(self, task: Task) -> bool:
        """Record a task. False, and nothing is changed, if its key was ever recorded before."""
        ...

    async def is_known(self, key: str) -> bool:
        """Return whether a task of this key was ever recorded."""
        ...

    async def has_waiting(self, workflow: str, subject: str) -> bool:
        """Return whether there is such a task that nobody has claimed yet.

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
        """Return the tasks that wait and those under way, whoever works on them."""
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


@dataclass(frozen=True, slots=True)
class Post:
    """A message that Plumbline means to post, and the reference of the message once it stands there."""

    intent: str
    place: Place
    attempted: bool = False
    reference: MessageReference | None = None
    content_hash: str = ""
    withdrawn: bool = False  # it must not stand there any more, nor be posted again
    claim: str = ""  # the id of the prediction that it claims, see `core.model.messages.claim`


class PostStore(Protocol):
    """The record of every post, before and after it is made."""

    async def intend(self, intent: str, place: Place) -> Post:
        """Record the wish to post, or return the record that there is already."""
        ...

    async def attempted(self, intent: str) -> None: ...

    async def posted(self, intent: str, reference: MessageReference, content_hash: str, claim: str = "") -> bool:
        """Record the message that stands there now. False if it was withdrawn while it was on its way."""
        ...

    async def edited(self, intent: str, content_hash: str, claim: str = "") -> None: ...

    async def at(self, reference: MessageReference) -> Post | None:
        """Return the post behind this message, whatever its thread. None if Plumbline posted no such message."""
        ...

    async def forget(self, intent: str) -> None:
        """The message is gone: go back to the wish to post."""
        ...

    async def withdraw(self, intent: str, place: Place) -> Post:
        """Never post it again, even if nobody meant to so far; the record of what stands there now."""
        ...

    async def outdate(self, intent: str, place: Place, at: datetime, patience: timedelta) -> int | None:
        """Wish that it be brought up to date; returns how often that was wished.

        None if somebody was asked to less than `patience` ago and has not yet: he learns of this wish, and sees what
        this transaction writes.
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
    """The messages that could not be posted."""

    async def add(self, intent: str, place: Place, message: Message, reason: str) -> None:
        """Keep a message from now on, in place of what was kept for its intent."""
        ...

    async def get(self, intent: str) -> DeadLetter | None: ...

    async def latest(self, limit: int) -> list[DeadLetter]:
        """Newest first."""
        ...

    async def count(self) -> int: ...

    async def remove(self, intent: str) -> None: ...
