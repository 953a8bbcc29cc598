"""What everybody is told who asks whether the bot is ready."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from bot.server import NO_ANSWER, _missing
from bot.work.engine import NOT_CHECKED
from core.model.errors import IndexUnavailable, StoreUnavailable
from tests.cases import every_case
from tests.fakes.passage_index import FakePassageIndex
from tests.fakes.store import InMemoryStore

HOST = "db.internal.example"
REFUSED = f'connection to server at "{HOST}", port 5432 failed'


class BrokenStore:
    def transaction(self) -> Any:
        raise StoreUnavailable(REFUSED)


class BrokenIndex:
    async def count(self) -> int:
        raise IndexUnavailable(REFUSED)


def core(store: Any, index: Any) -> Any:
    return SimpleNamespace(store=store, knowledge=SimpleNamespace(index=index), workspace=SimpleNamespace(sources=()))


@every_case(
    ("store", "index", "trouble", "answer"),
    [
        (InMemoryStore(), FakePassageIndex(), "", ""),
        (InMemoryStore(), FakePassageIndex(), NOT_CHECKED, NOT_CHECKED),
        (InMemoryStore(), FakePassageIndex(), REFUSED, NO_ANSWER),
        (BrokenStore(), FakePassageIndex(), "", NO_ANSWER),
        (InMemoryStore(), BrokenIndex(), "", NO_ANSWER),
    ],
)
async def test_readiness_names_what_is_missing_and_no_server(store: Any, index: Any, trouble: str, answer: str) -> None:
    replica: Any = SimpleNamespace(trouble=trouble)
    assert await _missing(core(store, index), replica) == answer
