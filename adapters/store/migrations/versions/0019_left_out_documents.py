"""The documents of a source that could not be indexed."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("ingestions", sa.Column("left_out", sa.JSON(), nullable=False, server_default="[]"))
