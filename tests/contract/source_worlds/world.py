"""What every world can do, and the names of the channels in them."""

from __future__ import annotations

from typing import Protocol

from core.ports import ChangingSource, KnowledgeSource
from tests.fakes.refusals import Refusals

CHANNEL = "C0CICD"
TEAM, TEAMS_CHANNEL, HIDDEN_CHANNEL = "team-1", "19:cicd@thread.tacv2", "19:hidden@thread.tacv2"


class World(Protocol):
    """A source, and the hands that change what it reads. A document is known by a `key` of one digit."""

    @property
    def source(self) -> KnowledgeSource | ChangingSource: ...

    def write(self, key: str, text: str) -> None:
        """Make a document, or change it, so that it holds this text."""
        ...

    def remove(self, key: str) -> None: ...

    def hide(self, key: str) -> None:
        """Let not everybody read it any more."""
        ...


class RemoteWorld(World, Protocol):
    """One behind a server that may refuse. `pauses` are those that were made, in seconds."""

    @property
    def refusals(self) -> Refusals: ...
    @property
    def pauses(self) -> list[float]: ...

    def expire_token(self) -> None: ...
