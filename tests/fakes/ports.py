"""Bundles of ports for handlers: what a test does not give is empty."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from core.knowledge.retriever import Retriever
from core.triage.owner_model import OwnerModel
from handlers.common.ports import IncidentPorts, Ports, QuestionPorts
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


def ports(**given: Any) -> Ports:
    return Ports(**_completed(given))


def incident_ports(*, owners: OwnerModel | None = None, **given: Any) -> IncidentPorts:
    """Return the ports of incidents; `owners` is the owner model."""
    given = _completed(given)
    if owners is not None:
        given["owner_models"] = _Kept(owners)
    return IncidentPorts(**given)


def question_ports(**given: Any) -> QuestionPorts:
    """Return the ports of questions; those of incidents have what both share."""
    given = _completed(given)
    shared = {name: given[name] for name in (field.name for field in fields(IncidentPorts)) if name in given}
    index = given.setdefault("index", FakePassageIndex())
    given.setdefault("retriever", Retriever(index, FakeEncoderStore(), None))
    given.setdefault("incidents", IncidentPorts(**shared))
    return QuestionPorts(**given)


def _completed(given: dict[str, Any]) -> dict[str, Any]:
    given.setdefault("store", InMemoryStore())
    given.setdefault("clock", FakeClock())
    given.setdefault("poster", Poster(given["store"], {}))
    return given
