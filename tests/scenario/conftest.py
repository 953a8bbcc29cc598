"""A running bot for the scenarios of a module: what other modules left in it would change what is seen, and slow it down."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from core.model.incident import Incident, IncidentState
from core.ports import Transaction
from handlers.common.stored_incident import change_incident, save_next
from tests.folders import copy_folder
from tests.scenario.application import RunningBot, running_bot
from tests.scenario.home import furnished
from tests.scenario.teams_home import furnished_for_teams, teams_home
from tests.templates import templates_compiled_once

__all__ = ["furnished", "furnished_for_teams", "teams_home", "templates_compiled_once"]

MAX_LEFT = 500  # incidents that tests leave open


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def application(furnished: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningBot]:
    folder = tmp_path_factory.mktemp("bot")
    copy_folder(furnished, folder)  # its documents are those of every company: they need not be parsed again
    async with running_bot(folder) as client:
        yield client


@pytest_asyncio.fixture(loop_scope="session")
async def bot(application: RunningBot) -> AsyncIterator[RunningBot]:
    """The running bot. What a scenario leaves open would explain what happens in the next: it is over afterwards."""
    yield application
    async with application.store.transaction() as transaction:
        left = await transaction.incidents.open(MAX_LEFT)
    for incident in left:
        await change_incident(incident.id, _over, application.store)


async def _over(incident: Incident, transaction: Transaction) -> Incident:
    over = replace(incident, state=IncidentState.RESOLVED, resolved_at=datetime.now(UTC))
    return await save_next(over, incident, transaction)
