"""The port of the durable state as a whole."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

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
from core.ports.work import DeadLetterStore, PostStore, ReplicaStore, TaskStore


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
