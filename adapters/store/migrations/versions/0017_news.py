"""The time of an incident's last change, and the last event of each reaction."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.add_column("incidents", sa.Column("changed_at", sa.DateTime()))
    op.create_index(op.f("ix_incidents_changed_at"), "incidents", ["changed_at"], unique=False)
    op.create_index(op.f("ix_outcomes_labelled_at"), "outcomes", ["labelled_at"], unique=False)
    op.create_table(
        "reactions",
        sa.Column("prediction_id", sa.Text(), nullable=False),
        sa.Column("reacted_by", sa.Text(), nullable=False),
        sa.Column("approves", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("taken_back", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["prediction_id"], ["predictions.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("prediction_id", "reacted_by", "approves"),
    )
