"""Failed builds, and the lines of their logs that people confirmed."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "build_failures",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("found_at", sa.DateTime(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("channel", sa.Text()),
        sa.Column("thread", sa.Text()),
        sa.Column("log", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
    )
    op.create_index("ix_build_failures_project", "build_failures", ["project", "confirmed", "found_at"])
    op.create_index("ix_build_failures_thread", "build_failures", ["channel", "thread"])
