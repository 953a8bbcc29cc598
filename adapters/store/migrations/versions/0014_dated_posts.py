"""The creation time of posts, for the retention policy. Existing posts are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("posts", sa.Column("made_at", sa.DateTime()))
