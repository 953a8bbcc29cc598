"""The ports of the handlers: what a test does not give is empty."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from adapters.posted.recognise import recognise
from core.answering.caveats import HelpDesk
from core.knowledge.retriever import Retriever
from core.model.document import LIFETIME
from core.triage.owner_model import IncidentHistory, OwnerModel
from handlers.common.ports import (
    AdoptionPorts,
    Chats,
    Company,
    FilingPorts,
    KnowledgePorts,
    Models,
    Ownership,
    PagingPorts,
    Past,
    Ports,
    Readers,
)
from handlers.common.post_message import Poster
from tests.fakes.clock import FakeClock
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.store import InMemoryStore


class _Kept:
    """An owner model that was learned before."""

    def __init__(self, model: OwnerModel | None) -> None:
        self._model = model

    async def load(self) -> OwnerModel | None:
        return self._model

    async def save(self, model: OwnerModel) -> None:
        self._model = model


GROUPS: dict[str, type[Any]] = {
    "chats": Chats,
    "company": Company,
    "ownership": Ownership,
    "models": Models,
    "paging": PagingPorts,
    "filing": FilingPorts,
    "past": Past,
    "knowledge": KnowledgePorts,
}


def some_ports(*, owners: OwnerModel | None = None, poster: Poster | None = None, **given: Any) -> Ports:
    """Return ports with what is given, by the names of the fields of all groups; `owners` is the owner model."""
    if owners is not None:
        given["owner_models"] = _Kept(owners)
    if poster is not None:
        given.setdefault("store", poster._store)
        given["messengers"] = poster._messengers
    given.setdefault("store", InMemoryStore())
    given.setdefault("clock", FakeClock())
    given.setdefault("index", FakePassageIndex())
    given.setdefault("retriever", Retriever(given["index"], FakeEncoderStore(), None))
    given = {"help_desk": HelpDesk(), "lifetime": LIFETIME, "publish": _nothing, "learn": _nothing, **given}
    given.setdefault("adoption", AdoptionPorts(recognise=recognise))
    given.setdefault("history_for", lambda *_: IncidentHistory(()))
    grouped = {name: kind(**_of(kind, given)) for name, kind in GROUPS.items()}
    read = {name: given.pop(name) for name in ("changes", "monitors") if name in given}
    return Ports(**grouped, readers=replace(given.pop("readers", Readers()), **read), **given)


async def _nothing() -> None:
    pass


def _of(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    return {each.name: given.pop(each.name) for each in fields(kind) if each.name in given}
