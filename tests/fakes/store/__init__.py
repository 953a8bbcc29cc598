"""The durable state in memory, one noun per module."""

from tests.fakes.store.store import InMemoryStore

__all__ = ["InMemoryStore"]
