"""The platform's message id and the claim of a post, to resolve reactions."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("posts", sa.Column("claim", sa.Text(), nullable=False, server_default=""))
    op.add_column("posts", sa.Column("message", sa.Text()))
    op.create_index("ix_posts_message", "posts", ["message"])
