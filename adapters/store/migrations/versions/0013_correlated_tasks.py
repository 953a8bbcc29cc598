"""The creation time and the correlation of tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("added_at", sa.DateTime(), nullable=True))
    op.add_column("tasks", sa.Column("correlation", sa.Text(), nullable=False, server_default=""))
