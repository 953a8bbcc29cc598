"""Managers that are played by a model of random weights: every triage names a team that there is, or asks a person."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from adapters.llama.server import LlamaServer
from core.model.incident import Incident, PastIncident, Severity
from core.model.language_model import ModelReply, ModelRequest
from core.model.team import Team
from core.rca.observations import Observations
from core.triage.history import IncidentHistory
from core.triage.model_managers import TeamDocuments
from handlers.incidents.negotiate_owner import Negotiator
from handlers.incidents.triage_incident import NOT_AGREED, triage_incident
from tests.external.llama_servers import llama_server
from tests.fakes.clock import FakeClock
from tests.fakes.incidents import bare_incident
from tests.fakes.ports import incident_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.random_model import Shape, write_random_model

pytestmark = pytest.mark.external

TRIAGES = 60
SLOTS = 16
AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
TEAMS = [
    Team(
        f"team-{number}",
        f"Team {number}",
        f"## We own\n\nService {number}, pump {number}.\n",
        frozenset({f"s{number}"}),
    )
    for number in range(8)
]
HISTORY = IncidentHistory(
    [PastIncident(f"I-{n}", f"pump {n % 8} stalls", "", "", Severity.WARNING, AT, f"team-{n % 8}") for n in range(40)]
)


class Varied:
    """The model at temperature 1, with another seed for every request: the hardest that there is. Counts cut replies."""

    def __init__(self, model: LlamaServer) -> None:
        self._model = model
        self._seed = 0
        self.cut = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def generate(self, request: ModelRequest) -> ModelReply:
        self._seed += 1
        reply = await self._model.generate(replace(request, temperature=1.0, seed=self._seed, deadline=600.0))
        self.cut += not reply.complete
        return reply


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_random_model(tmp_path_factory.mktemp("model") / "random.gguf", Shape(layers=2, width=64))


@pytest.fixture
async def model(weights: Path) -> AsyncIterator[Varied]:
    async with (
        llama_server("native", weights, slots=SLOTS, slot_context=8_192) as server,
        aiohttp.ClientSession() as session,
    ):
        yield Varied(LlamaServer(server.url, session))


async def sees_nothing(incident: Incident) -> Observations:
    return Observations(incident, AT, (), (), (), (), {})


def incident(number: int) -> Incident:
    title = f"pump {number % 8} stalls and service {(number + 3) % 8} complains"
    return bare_incident(title, id=f"I-X{number}", group_key=f"g{number}")


async def test_every_triage_ends_in_a_team_or_asks_a_person_and_no_reply_is_invalid(model: Varied) -> None:
    negotiator = Negotiator(model, TeamDocuments(model), sees_nothing)  # type: ignore[arg-type]  it has all the rest
    store, free = FakePredictionStore(), asyncio.Semaphore(4)

    async def triaged(number: int) -> str:
        async with free:
            found = await triage_incident(
                incident(number),
                incident_ports(teams=TEAMS, store=store, clock=FakeClock()),
                history=HISTORY,
                negotiator=negotiator,
            )
        assert found.owner is not None
        teams = {team.id for team in TEAMS}
        assert {candidate.team_id for candidate in found.owner.candidates} <= teams
        assert {vote.choice for vote in found.owner.votes} <= {*teams, None}
        assert all("did not answer" not in vote.reason for vote in found.owner.votes)
        if found.owner.owner is None:
            assert found.owner.note == NOT_AGREED
            return "a person is asked"
        assert found.owner.owner.team_id in teams
        assert found.owner.note == ""
        return "a team is named"

    ended = Counter(await asyncio.gather(*map(triaged, range(TRIAGES))))
    assert sum(ended.values()) == TRIAGES
    assert model.cut == 0
    assert set(ended) <= {"a team is named", "a person is asked"}
