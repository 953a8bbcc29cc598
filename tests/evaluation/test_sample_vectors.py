"""The vectors that ship with the sample company are those of its texts, but for a few that changed."""

from __future__ import annotations

from adapters.known_vectors import KnownVectors
from bot.commands.demo import VECTORS
from tests.documentation.vectors import sample_texts
from tests.fakes.embedder import FakeEmbedder


class NeverAsked(FakeEmbedder):
    """It stands for the embedded model and need not be asked for any text."""

    def __init__(self) -> None:
        super().__init__({"": 0}, name="all-MiniLM-L6-v2")
        self.dimensions = 384


async def test_nearly_every_text_of_the_sample_company_has_its_vector() -> None:
    model = NeverAsked()
    texts = await sample_texts()
    await KnownVectors(model, VECTORS).embed_passages(texts)
    assert len(model.asked) <= len(texts) / 20, "run `python -m tests.documentation.vectors`"
