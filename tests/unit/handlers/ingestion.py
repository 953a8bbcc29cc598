"""A source, an index and an embedding model for ingestions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from core.knowledge.terms import Encoder
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex


class FakeSource:
    """Documents in memory; `fails_after` of them the source breaks."""

    def __init__(self, name: str, texts: dict[str, str], fails_after: int | None = None) -> None:
        self.name = name
        self.texts = texts
        self.fails_after = fails_after

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        for count, (key, text) in enumerate(self.texts.items()):
            if count == self.fails_after:
                raise SourceUnavailable(f"{self.name} is down.")
            yield Document(f"{self.name}/{key}", self.name, "family", key, text)


class FakeEmbedder:
    name = "tiny"
    dimensions = 3

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.tile(np.array([1, 0, 0], np.float32), (len(texts), 1))

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.array([1, 0, 0], np.float32)


@pytest.fixture
def index() -> FakePassageIndex:
    return FakePassageIndex()


@pytest.fixture
def encoders() -> FakeEncoderStore:
    return FakeEncoderStore()


def encoder_of(encoders: FakeEncoderStore) -> Encoder:
    return encoders.saved[-1]
