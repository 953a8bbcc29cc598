"""What a first question would have to wait for is done once the bot is ready."""

from __future__ import annotations

from bot.server import warm_up
from core.knowledge.redactor import Redactor
from core.knowledge.retriever import Retriever
from core.knowledge.terms import Encoder
from core.model.errors import StoreUnavailable
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex


class Encoders(FakeEncoderStore):
    """Counts how often it is read; `fails`: it cannot be."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.reads = 0
        self._fails = fails

    async def load(self) -> Encoder | None:
        self.reads += 1
        if self._fails:
            raise StoreUnavailable("The database does not answer.")
        return await super().load()


class CountingDetector:
    """Finds nothing, and counts in how many texts."""

    def __init__(self) -> None:
        self.texts = 0

    def find(self, text: str) -> list[tuple[int, int]]:
        assert text
        self.texts += 1
        return []


async def test_what_was_learned_is_read_before_anybody_asks() -> None:
    encoders = Encoders()
    secrets = CountingDetector()
    await warm_up(Retriever(FakePassageIndex(), encoders), Redactor(secrets), None)
    assert encoders.reads == 1
    assert secrets.texts == 1


async def test_a_database_that_does_not_answer_is_told_to_whoever_asks_first() -> None:
    secrets = CountingDetector()
    await warm_up(Retriever(FakePassageIndex(), Encoders(fails=True)), Redactor(secrets), None)
    assert secrets.texts == 1
