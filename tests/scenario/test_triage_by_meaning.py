"""With an embedding model an incident told in words never heard finds its team; when the model fails, triage goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, learn_owners, open_core
from bot.wiring.ports import all_ports
from core.model.conversation import PUBLIC, Audience
from core.model.incident import Incident
from handlers.incidents.investigate_incident import triage
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.outage import incident
from tests.fakes.past_incidents import TEAMS
from tests.fakes.puzzles import SENSES, STRANGE_WORDS, puzzles

RARE = next(word for word in STRANGE_WORDS if SENSES[word] == 2)


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    past = [
        {
            "id": each.id,
            "title": each.title,
            "description": each.description,
            "service": each.service,
            "severity": each.severity,
            "started_at": each.started_at.isoformat(),
            "owner": each.owner,
        }
        for each in puzzles()
    ]
    (tmp_path / "past.jsonl").write_text("".join(json.dumps(each) + "\n" for each in past), encoding="utf-8")
    teams = "".join(f"  - {{id: {team.id}, name: {team.name}}}\n" for team in TEAMS)
    config = tmp_path / "plumbline.yaml"
    config.write_text(
        "channels:\n  - {name: incidents, console: incidents}\n"
        f"teams:\n{teams}sources:\n  - {{name: past, kind: past_incidents, path: past.jsonl}}\n",
        encoding="utf-8",
    )
    settings = Settings.model_validate({"PLUMBLINE_DATA_DIR": tmp_path / "data", "PLUMBLINE_CONFIG": config})
    async with open_core(settings, load_workspace(config)) as core:
        yield core


async def first(core: Core, found: Incident) -> str:
    triaged = await triage(found, Audience(frozenset({PUBLIC})), all_ports(core))
    assert triaged.findings.owner is not None
    return triaged.findings.owner.candidates[0].team_id


@pytest.mark.external  # a process fits the votes
async def test_what_is_meant_finds_the_team_as_long_as_the_model_answers(core: Core) -> None:
    embedder = FakeEmbedder(SENSES)
    core = replace(core, knowledge=replace(core.knowledge, chosen=embedder))
    assert await learn_owners(core)
    asked = incident(title=RARE, service="")
    assert await first(core, asked) == TEAMS[2].id
    embedder.failing = True
    assert await first(core, asked) != TEAMS[2].id
