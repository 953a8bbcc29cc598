"""Posts that must not stand there any more, because what they answered was deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("posts", sa.Column("withdrawn", sa.Boolean(), nullable=False, server_default=sa.false()))
