"""The tables, and the schema of a database: created from them, or brought up to it.

A database of an older version gets the tables, columns and indexes that it lacks, so `tables.py` alone defines the
schema. A new column has a `server_default` or may be null, because replicas of the version before still insert rows.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.schema import CreateColumn

from core.confidence.calibrator import Calibrator
from core.model.badge import Prediction
from core.model.conversation import MessageReference, Place
from core.model.document import CuratedAnswer
from core.model.errors import ConfigurationError
from core.model.incident import Incident
from core.model.silences import ChannelSettings, Silence
from core.rca.failing_lines import RecordedFailure


class UtcDateTime(sa.types.TypeDecorator[datetime]):
    """A time, always in UTC in Python. SQLite alone would drop the time zone."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return value.astimezone(UTC).replace(tzinfo=None) if value else None

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> datetime | None:
        return value.replace(tzinfo=UTC) if value else None


class Json(sa.types.TypeDecorator[Any]):
    """An object of the domain, stored as JSON."""

    impl = sa.JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else self._adapter.dump_python(value, mode="json")

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else self._adapter.validate_python(value)

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        return self.impl_instance.coerce_compared_value(op, value)


metadata = sa.MetaData()

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("workflow", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("owner", sa.Text),  # the replica that works on it
    sa.Column("ended_at", UtcDateTime),
    sa.Column("added_at", UtcDateTime, nullable=False),
    sa.Column("correlation", sa.Text, nullable=False),
    sa.Index("ix_tasks_waiting", "ended_at", "owner", "number"),
)

replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("seen_at", UtcDateTime, nullable=False),
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("received_at", UtcDateTime, nullable=False),
)

incidents = sa.Table(
    "incidents",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("group_key", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("opened_at", UtcDateTime, nullable=False, index=True),
    sa.Column("platform", sa.Text),
    sa.Column("channel", sa.Text),
    sa.Column("message_id", sa.Text),
    sa.Column("service", sa.Text),
    sa.Column("leader", sa.Text, index=True),
    sa.Column("body", Json(Incident), nullable=False),
    sa.Column("changed_at", UtcDateTime, nullable=False, index=True),  # by the clock of the saving process
    sa.Index("ix_incidents_message", "channel", "message_id"),
    sa.Index("ix_incidents_service", "state", "service"),
    sa.Index("ix_incidents_group", "source", "group_key", "opened_at"),
    sa.Index(
        "uq_incidents_open",
        "source",
        "group_key",
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    ),
)

incident_alerts = sa.Table(
    "incident_alerts",
    metadata,
    sa.Column("fingerprint", sa.Text, primary_key=True),
    sa.Column("incident_id", sa.Text, sa.ForeignKey("incidents.id", ondelete="CASCADE"), primary_key=True, index=True),
)

posts = sa.Table(
    "posts",
    metadata,
    sa.Column("intent", sa.Text, primary_key=True),
    sa.Column("place", Json(Place), nullable=False),
    sa.Column("attempted", sa.Boolean, nullable=False, default=False),
    sa.Column("reference", Json(MessageReference)),
    sa.Column("content_hash", sa.Text, nullable=False, default=""),
    sa.Column("withdrawn", sa.Boolean, nullable=False, default=False),
    sa.Column("claim", sa.Text, nullable=False, default=""),
    sa.Column("message", sa.Text, index=True),
    sa.Column("asked_at", UtcDateTime),  # when an update was requested that is not done yet
    sa.Column("wishes", sa.Integer, nullable=False, default=0),
    sa.Column("made_at", UtcDateTime, nullable=False),  # used by the retention policy only
    sa.Column("channel", sa.Text),  # if it counts among the new messages of its channel
    sa.Column("counted_at", UtcDateTime),
    sa.Index("ix_posts_counted", "channel", "counted_at"),
)

dead_letters = sa.Table(
    "dead_letters",
    metadata,
    sa.Column("intent", sa.Text, primary_key=True),
    sa.Column("place", Json(Place), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("message", sa.JSON, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
    sa.Column("waiting_since", UtcDateTime),  # for the chat to take messages; else for a person
)

rate_limits = sa.Table(
    "rate_limits",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),  # a digest
    sa.Column("body", sa.JSON, nullable=False),  # empty while it is new
    sa.Column("used_at", UtcDateTime, nullable=False),  # used by the retention policy only
)

silences = sa.Table(
    "silences",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("ends_at", UtcDateTime, nullable=False, index=True),
    sa.Column("body", Json(Silence), nullable=False),
)

predictions = sa.Table(
    "predictions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("estimator_version", sa.Text, nullable=False),
    sa.Column("made_at", UtcDateTime, nullable=False),
    sa.Column("body", Json(Prediction), nullable=False),
    sa.Column("judged", sa.Boolean, nullable=False, server_default=sa.false()),  # set by a trigger; never taken back
    sa.Index("ix_predictions_estimator", "kind", "engine", "estimator_version", "made_at"),
    sa.Index("ix_predictions_made", "kind", "made_at"),
    sa.Index(
        "ix_predictions_judged",
        "kind",
        "engine",
        "estimator_version",
        "made_at",
        "id",
        sqlite_where=sa.text("judged = 1"),
        postgresql_where=sa.text("judged"),
    ),
)

outcomes = sa.Table(
    "outcomes",
    metadata,
    sa.Column("prediction_id", sa.Text, sa.ForeignKey("predictions.id"), primary_key=True),
    sa.Column("labelled_by", sa.Text, primary_key=True),
    sa.Column("correct", sa.Boolean, nullable=False),
    sa.Column("labelled_at", UtcDateTime, nullable=False, index=True),
    sa.Column("comment", sa.Text, nullable=False, default=""),
)

reactions = sa.Table(
    "reactions",
    metadata,
    sa.Column("prediction_id", sa.Text, sa.ForeignKey("predictions.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("reacted_by", sa.Text, primary_key=True),
    sa.Column("approves", sa.Boolean, primary_key=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("taken_back", sa.Boolean, nullable=False),
)

calibrators = sa.Table(
    "calibrators",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("engine", sa.Text, nullable=False),
    sa.Column("estimator_version", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False, index=True),
    sa.Column("body", Json(Calibrator), nullable=False),
)

turns = sa.Table(
    "turns",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("thread", sa.Text, nullable=False, index=True),
    sa.Column("speaker", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", UtcDateTime, nullable=False),
)

ingestions = sa.Table(
    "ingestions",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("finished_at", UtcDateTime, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.Column("failure", sa.Text, nullable=False, default=""),
    sa.Column("left_out", Json(tuple[str, ...]), nullable=False),
)

learned_models = sa.Table(
    "learned_models",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("version", sa.Text, nullable=False),  # new with every save
    sa.Column("saved_at", UtcDateTime, nullable=False),
    sa.Column("content", sa.LargeBinary, nullable=False),
)

source_cursors = sa.Table(
    "source_cursors",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("position", sa.Text, nullable=False),
    sa.Column("documents", sa.Integer, nullable=False),
)

curated_answers = sa.Table(
    "curated_answers",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("expires_at", UtcDateTime, index=True),
    sa.Column("body", Json(CuratedAnswer), nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("at", UtcDateTime, nullable=False, index=True),
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("documents", Json(tuple[str, ...]), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sqlite_autoincrement=True,  # deleted numbers are not reused
)

build_failures = sa.Table(
    "build_failures",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("found_at", UtcDateTime, nullable=False),
    sa.Column("confirmed", sa.Boolean, nullable=False),
    sa.Column("channel", sa.Text),
    sa.Column("thread", sa.Text),
    sa.Column("log", sa.LargeBinary, nullable=False),
    sa.Column("body", Json(RecordedFailure), nullable=False),
    sa.Index("ix_build_failures_project", "project", "confirmed", "found_at"),
    sa.Index("ix_build_failures_thread", "channel", "thread"),
)

console_messages = sa.Table(
    "console_messages",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("thread", sa.Integer, index=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("intent", sa.Text, nullable=False, unique=True),
    sa.Column("at", UtcDateTime, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False, unique=True),
    sa.Index("ix_console_messages_channel", "channel", "thread", "id"),
)

channel_settings = sa.Table(
    "channel_settings",
    metadata,
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("body", Json(ChannelSettings), nullable=False),
)

held_incidents = sa.Table(
    "held_incidents",
    metadata,
    sa.Column("incident_id", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("place", Json(Place), nullable=False),
    sa.Column("told", sa.Boolean, nullable=False, index=True),
    sa.Column("held_at", UtcDateTime, nullable=False),
    sa.Column("storm", sa.Text, nullable=False),  # the summary that lists it
    sa.Index("ix_held_incidents_storm", "storm", "held_at"),
    sa.Index("ix_held_incidents_channel", "channel", "held_at"),
)

teams_conversations = sa.Table(
    "teams_conversations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("reference", sa.JSON, nullable=False),
)

sessions = sa.Table(  # of people who signed in at the local page; `id` is the digest of what the browser has
    "sessions",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("visitor", sa.JSON, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("ends_at", UtcDateTime, nullable=False, index=True),
)


LATEST = 5  # raise it with every change of `tables.py`: an older Plumbline then refuses the database and its backups
MIGRATING = 0x706C756D62  # PostgreSQL's advisory lock for migrations; any number that nothing else uses

_version = sa.Table("schema_version", sa.MetaData(), sa.Column("number", sa.Integer, primary_key=True))

# Entries of the audit log cannot be changed, only deleted, as the retention policy asks.
_AUDIT_TRIGGER = {
    "sqlite": """
        CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit log is not changed'); END
    """,
    "postgresql": """
        CREATE FUNCTION audit_is_not_changed() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'the audit log is not changed'; END $$;
        CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
        FOR EACH ROW EXECUTE FUNCTION audit_is_not_changed()
    """,
}

# The judged predictions have an index of their own, so that the latest of an estimator are found among any number. A
# trigger marks them, because replicas of the version before also store labels. Every upgrade makes sure of it.
_JUDGED_TRIGGER = {
    "sqlite": """
        CREATE TRIGGER IF NOT EXISTS prediction_is_judged AFTER INSERT ON outcomes
        BEGIN UPDATE predictions SET judged = true WHERE id = NEW.prediction_id; END
    """,
    "postgresql": """
        CREATE OR REPLACE FUNCTION prediction_is_judged() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN UPDATE predictions SET judged = true WHERE id = NEW.prediction_id; RETURN NULL; END $$;
        DROP TRIGGER IF EXISTS prediction_is_judged ON outcomes;
        CREATE TRIGGER prediction_is_judged AFTER INSERT ON outcomes
        FOR EACH ROW EXECUTE FUNCTION prediction_is_judged()
    """,
}


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to the latest version. Does nothing if it is current.

    Raises ConfigurationError, and changes nothing, for a newer schema.
    """
    if connection.dialect.name == "postgresql":  # several replicas may start at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
    inspector = sa.inspect(connection)
    before = set(inspector.get_table_names())
    version = (connection.scalar(sa.select(_version)) if _version.name in before else None) or 0
    if version == LATEST:
        return
    if version > LATEST:
        raise ConfigurationError(
            f"The database has the schema of a newer Plumbline ({version}; this one knows up to {LATEST}): install "
            "that version again, or restore a backup from before the upgrade."
        )
    _version.create(connection, checkfirst=True)
    metadata.create_all(connection)
    for table in metadata.sorted_tables:
        if table.name in before:
            _complete(connection, table, inspector)
    if "audit" not in before:
        connection.exec_driver_sql(_AUDIT_TRIGGER[connection.dialect.name])
    connection.exec_driver_sql(_JUDGED_TRIGGER[connection.dialect.name])
    labelled = predictions.c.id.in_(sa.select(outcomes.c.prediction_id))
    connection.execute(predictions.update().where(labelled).values(judged=True))
    connection.execute(sa.delete(_version))
    connection.execute(sa.insert(_version).values(number=LATEST))


def _complete(connection: sa.Connection, table: sa.Table, inspector: sa.Inspector) -> None:
    """Add the columns and indexes that an existing table lacks."""
    columns = {column["name"] for column in inspector.get_columns(table.name)}
    for column in table.columns:
        if column.name not in columns:
            definition = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {definition}"))
    indexes = {index["name"] for index in inspector.get_indexes(table.name)}
    for index in table.indexes:
        if index.name not in indexes:
            index.create(connection)
