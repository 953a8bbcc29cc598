"""References to Teams conversations in which the bot can post on its own, in SQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.store.database import upsert
from adapters.store.tables import teams_conversations


class SqlTeamsConversations:
    """Implements `adapters.teams.references.ConversationReferences`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def get(self, conversation_id: str) -> dict[str, Any] | None:
        async with self._engine.connect() as connection:
            row = await connection.execute(
                sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == conversation_id)
            )
            return row.scalar_one_or_none()

    async def put(self, conversation_id: str, reference: dict[str, Any]) -> None:
        async with self._engine.begin() as connection:
            await upsert(connection, teams_conversations, {"id": conversation_id, "reference": reference})

    async def beginning_with(self, prefix: str) -> list[dict[str, Any]]:
        wanted = teams_conversations.c.id.startswith(prefix, autoescape=True)
        async with self._engine.connect() as connection:
            rows = await connection.execute(
                sa.select(teams_conversations.c.reference).where(wanted).order_by(teams_conversations.c.id)
            )
            return list(rows.scalars())

    async def remove(self, conversation_id: str, team_id: str) -> None:
        gone = teams_conversations.c.id == conversation_id
        if team_id:
            gone |= teams_conversations.c.reference["team_id"].as_string() == team_id
        async with self._engine.begin() as connection:
            await connection.execute(sa.delete(teams_conversations).where(gone))
