"""Several replicas: a task belongs to the one that works on it, until its workflow has ended."""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

ALONE = "local"  # what every process called itself until now


def upgrade() -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    replicas = op.create_table(
        "replicas",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM tasks")):
        op.bulk_insert(replicas, [{"id": ALONE, "seen_at": now}])
    with op.batch_alter_table("tasks") as tasks:
        tasks.add_column(sa.Column("owner", sa.Text()))
        tasks.add_column(sa.Column("ended_at", sa.DateTime()))
    # The workflow engine knows of those that were started, and resumes them.
    started = sa.table("tasks", sa.column("started", sa.Boolean()), sa.column("ended_at", sa.DateTime()))
    op.execute(started.update().where(started.c.started.is_(True)).values(ended_at=now))
    with op.batch_alter_table("tasks") as tasks:
        tasks.drop_index("ix_tasks_unstarted")
        tasks.drop_column("started")
        tasks.create_index("ix_tasks_waiting", ["ended_at", "owner", "number"])
