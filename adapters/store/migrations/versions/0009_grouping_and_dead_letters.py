"""Incidents that belong together, silences, and posts that could not be made."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("incidents", sa.Column("service", sa.Text()))
    op.add_column("incidents", sa.Column("leader", sa.Text()))
    op.create_index("ix_incidents_leader", "incidents", ["leader"])
    op.create_index("ix_incidents_service", "incidents", ["state", "service"])
    op.create_table(
        "incident_alerts",
        sa.Column("fingerprint", sa.Text(), primary_key=True),
        sa.Column("incident_id", sa.Text(), sa.ForeignKey("incidents.id", ondelete="CASCADE"), primary_key=True),
    )
    op.create_index("ix_incident_alerts_incident_id", "incident_alerts", ["incident_id"])
    op.add_column("posts", sa.Column("asked_at", sa.DateTime()))
    op.add_column("posts", sa.Column("wishes", sa.Integer(), nullable=False, server_default="0"))
    op.create_table(
        "dead_letters",
        sa.Column("intent", sa.Text(), primary_key=True),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("message", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
    )
    op.create_index("ix_dead_letters_at", "dead_letters", ["at"])
    op.create_table(
        "silences",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("ends_at", sa.DateTime(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
    )
    op.create_index("ix_silences_ends_at", "silences", ["ends_at"])
