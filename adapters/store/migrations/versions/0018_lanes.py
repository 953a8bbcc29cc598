"""The turns to write in each channel, for all replicas."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.create_table(
        "lanes",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("used_at", sa.DateTime(), nullable=False),
    )
