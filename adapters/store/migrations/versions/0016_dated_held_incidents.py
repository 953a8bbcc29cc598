"""The time since when an incident is held, which identifies the summary that reports it."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    # Of what is held already, when is not known: any time does, as long as it stays the same.
    held_at = sa.Column("held_at", sa.DateTime(), nullable=False, server_default="2026-01-01 00:00:00")
    op.add_column("held_incidents", held_at)
