"""The store in memory: one transaction at a time, undone when it raises."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, field

from core.model.errors import Conflict, StoreUnavailable
from tests.fakes.store.audit import InMemoryAudit
from tests.fakes.store.build_failures import InMemoryBuildFailures
from tests.fakes.store.channel_settings import InMemoryChannelSettings
from tests.fakes.store.conversations import InMemoryConversations
from tests.fakes.store.curated import InMemoryCurated
from tests.fakes.store.dead_letters import InMemoryDeadLetters
from tests.fakes.store.held_incidents import InMemoryHeldIncidents
from tests.fakes.store.incidents import InMemoryIncidents
from tests.fakes.store.ingestions import InMemoryCursors, InMemoryIngestions
from tests.fakes.store.posts import InMemoryPosts
from tests.fakes.store.predictions import InMemoryPredictions
from tests.fakes.store.replicas import InMemoryReplicas
from tests.fakes.store.silences import InMemorySilences
from tests.fakes.store.tasks import InMemoryTasks


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

    @property
    def cursors(self) -> InMemoryCursors:
        return InMemoryCursors(self.ingestions.cursors)

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[InMemoryStore]:
        async with self._writer:
            if self.outages:
                self.outages -= 1
                raise StoreUnavailable("The database is down.")
            before = {name: _snapshot(getattr(self, name)) for name in STORES}
            self.held_incidents.incidents = self.incidents
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
