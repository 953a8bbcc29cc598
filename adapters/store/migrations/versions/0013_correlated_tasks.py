"""Tasks know since when they wait, and which request asked for them."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("added_at", sa.DateTime(), nullable=True))
    op.add_column("tasks", sa.Column("correlation", sa.Text(), nullable=False, server_default=""))
