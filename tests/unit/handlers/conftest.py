"""An empty store and a chat in which nothing stands yet."""

from __future__ import annotations

import pytest

from tests.fakes.messenger import RecordingMessenger
from tests.fakes.store import InMemoryStore


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def chat() -> RecordingMessenger:
    return RecordingMessenger()
