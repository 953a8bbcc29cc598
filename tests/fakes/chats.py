"""A chat platform with a messenger of ours in front of it, as the messenger contract wants to see it."""

from __future__ import annotations

from typing import Protocol

from core.model.conversation import MessageReference, Person, Place
from core.ports import Messenger


class Chat(Protocol):
    """What the contract needs of a platform besides its messenger: the eyes and hands of the people in it."""

    @property
    def messenger(self) -> Messenger: ...

    @property
    def successor(self) -> Messenger:
        """That of the next process: it knows nothing of what `messenger` posted."""
        ...

    @property
    def place(self) -> Place:
        """A channel that the bot may post in, empty at first."""
        ...

    @property
    def finds(self) -> bool:
        """Whether the platform can tell which message was posted for an intent."""
        ...

    def shown(self, reference: MessageReference) -> str:
        """All text that a person reads in this message."""
        ...

    def count(self) -> int:
        """How many messages stand on the platform."""
        ...

    @property
    def member(self) -> Person:
        """Somebody who reads the channel."""
        ...

    @property
    def targets(self) -> bool:
        """Whether the platform can let one member alone see a message."""
        ...

    def only_for(self, reference: MessageReference) -> str | None:
        """The id of the one person who sees this message, None if everybody in the channel does."""
        ...

    def thread_of(self, reference: MessageReference) -> str | None:
        """The id of the root message of the thread that this message stands in, None if it stands in none."""
        ...

    async def delete(self, reference: MessageReference) -> None:
        """A person deletes a message."""
        ...

    def break_down(self) -> None:
        """The next call finds the platform down."""
        ...

    def ask_to_wait(self, seconds: int) -> None:
        """The next call is told to come back after so many seconds."""
        ...
