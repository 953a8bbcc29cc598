"""How far each changing source has been read."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "source_cursors",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
