"""The settings of a channel, and the incidents that its quiet hours hold back."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.create_table(
        "channel_settings",
        sa.Column("channel", sa.Text(), primary_key=True),
        sa.Column("body", sa.JSON(), nullable=False),
    )
    op.create_table(
        "held_incidents",
        sa.Column("incident_id", sa.Text(), primary_key=True),
        sa.Column("channel", sa.Text(), primary_key=True),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("told", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_held_incidents_told", "held_incidents", ["told"])
