"""Replicas are killed at random moments of a storm, and everything that was accepted is said once."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa

from adapters.store.database import open_database
from tests.benchmarks import kills
from tests.databases import new_postgres_database

pytestmark = pytest.mark.external

KILLS = 20  # `python -m tests.benchmarks load --kill 200` is the long one
RATE = 2.0  # events a second


async def test_one_replica_on_sqlite() -> None:
    told_whole_and_once(await kills.run(KILLS, 1, "", RATE, seed=1))


async def test_three_replicas_on_postgresql(postgres: str) -> None:
    async with new_postgres_database(postgres) as url:
        told_whole_and_once(await kills.run(KILLS, 3, url, RATE, seed=2))


def told_whole_and_once(figures: dict[str, object]) -> None:
    assert figures["accepted"]
    assert (figures["lost"], figures["duplicated"], figures["unfinished"]) == (0, 0, 0), figures


async def test_a_database_that_drops_every_connection_again_and_again_loses_nothing(postgres: str) -> None:
    """As a server does that is restarted, or fails over."""
    async with new_postgres_database(postgres) as url:
        dropping = asyncio.create_task(drop_connections(postgres, url))
        figures = await kills.run(3, 2, url, RATE, seed=3)
        dropping.cancel()
        await asyncio.gather(dropping, return_exceptions=True)
        told_whole_and_once(figures)


async def drop_connections(server: str, url: str) -> None:
    """All of one database, every few seconds."""
    engine = open_database(server)
    ended = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
    try:
        while True:
            await asyncio.sleep(4.0)
            async with engine.connect() as connection:
                await connection.execute(ended, {"name": sa.make_url(url).database})
    finally:
        await engine.dispose()
