"""The last incident of an alert group is looked up with every delivery."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_index("ix_incidents_group", "incidents", ["source", "group_key", "opened_at"], unique=False)
