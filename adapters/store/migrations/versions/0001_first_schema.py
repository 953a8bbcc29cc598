"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "calibrators",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "console_messages",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("thread", sa.Integer(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("intent"),
        sa.UniqueConstraint("revision"),
    )
    op.create_index("ix_console_messages_channel", "console_messages", ["channel", "thread", "id"], unique=False)
    op.create_index(op.f("ix_console_messages_thread"), "console_messages", ["thread"], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("received_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "incidents",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("opened_at", sa.DateTime(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=True),
        sa.Column("channel", sa.Text(), nullable=True),
        sa.Column("message_id", sa.Text(), nullable=True),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_incidents_message", "incidents", ["channel", "message_id"], unique=False)
    op.create_index(op.f("ix_incidents_opened_at"), "incidents", ["opened_at"], unique=False)
    op.create_index(
        "uq_incidents_open",
        "incidents",
        ["source", "group_key"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "ingestions",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("finished_at", sa.DateTime(), nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.Column("failure", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "posts",
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("place", sa.JSON(), nullable=False),
        sa.Column("attempted", sa.Boolean(), nullable=False),
        sa.Column("reference", sa.JSON(), nullable=True),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("intent"),
    )
    op.create_table(
        "predictions",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_predictions_kind", "predictions", ["kind", "engine", "made_at"], unique=False)
    op.create_table(
        "tasks",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("workflow", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("claimed", sa.Boolean(), nullable=False),
        sa.Column("started", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("key"),
    )
    op.create_index("ix_tasks_unstarted", "tasks", ["started", "number"], unique=False)
    op.create_table(
        "teams_conversations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("reference", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "turns",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("thread", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("key"),
    )
    op.create_index(op.f("ix_turns_thread"), "turns", ["thread"], unique=False)
    op.create_table(
        "outcomes",
        sa.Column("prediction_id", sa.Text(), nullable=False),
        sa.Column("labelled_by", sa.Text(), nullable=False),
        sa.Column("correct", sa.Boolean(), nullable=False),
        sa.Column("labelled_at", sa.DateTime(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["prediction_id"],
            ["predictions.id"],
        ),
        sa.PrimaryKeyConstraint("prediction_id", "labelled_by"),
    )


def downgrade() -> None:
    op.drop_table("outcomes")
    op.drop_index(op.f("ix_turns_thread"), table_name="turns")
    op.drop_table("turns")
    op.drop_table("teams_conversations")
    op.drop_index("ix_tasks_unstarted", table_name="tasks")
    op.drop_table("tasks")
    op.drop_index("ix_predictions_kind", table_name="predictions")
    op.drop_table("predictions")
    op.drop_table("posts")
    op.drop_table("ingestions")
    op.drop_index(
        "uq_incidents_open",
        table_name="incidents",
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )
    op.drop_index(op.f("ix_incidents_opened_at"), table_name="incidents")
    op.drop_index("ix_incidents_message", table_name="incidents")
    op.drop_table("incidents")
    op.drop_table("deliveries")
    op.drop_index(op.f("ix_console_messages_thread"), table_name="console_messages")
    op.drop_index("ix_console_messages_channel", table_name="console_messages")
    op.drop_table("console_messages")
    op.drop_table("calibrators")
