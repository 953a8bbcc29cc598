"""A running bot for the scenarios of a module: what other modules left in it would change what is seen, and slow it down."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import CodeType
from unittest.mock import patch

import pytest
import pytest_asyncio
from jinja2 import Environment
from jinja2.bccache import Bucket, BytecodeCache

from adapters.console import render
from core.model.incident import Incident, IncidentState
from core.ports import Transaction
from handlers.common.stored_incident import change_incident, save_next
from tests.scenario.application import RunningBot, running_bot

MAX_LEFT = 500  # incidents that tests leave open


class CompiledTemplates(BytecodeCache):
    """The templates of the local page, which is served anew in many tests."""

    def __init__(self) -> None:
        self._codes: dict[str, CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key] = bucket.code


@pytest.fixture(scope="session", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    with patch.object(render, "Environment", partial(Environment, bytecode_cache=CompiledTemplates())):
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def application(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningBot]:
    async with running_bot(tmp_path_factory.mktemp("bot")) as client:
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
