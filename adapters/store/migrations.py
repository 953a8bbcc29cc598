"""The schema of a database: created from `tables.py`, or brought up to it.

A database of an older version gets the tables, columns and indexes that it lacks, so `tables.py` alone defines the
schema. A new column has a `server_default` or may be null, because replicas of the version before still insert rows.
Changes other than additions are steps in `_convert`.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from adapters.store.tables import calibrators, metadata, predictions, replicas, tasks
from core.model.errors import ConfigurationError

LATEST = 20  # raise it with every change of `tables.py`: an older Plumbline then refuses the database and its backups
MIGRATING = 0x706C756D62  # PostgreSQL's advisory lock for migrations; any number that nothing else uses

_version = sa.Table("alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True))

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


def schema_versions() -> list[str]:
    """Return the schema versions that this version knows, oldest first."""
    return [f"{number:04}" for number in range(1, LATEST + 1)]


def upgrade(connection: sa.Connection) -> None:
    """Bring the schema to the latest version. Does nothing if it is current.

    Raises ConfigurationError, and changes nothing, for a newer schema.
    """
    if connection.dialect.name == "postgresql":  # several replicas may start at once
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATING)))
    inspector, versions = sa.inspect(connection), schema_versions()
    before = set(inspector.get_table_names())
    version = connection.scalar(sa.select(_version)) if _version.name in before else None
    if version == versions[-1]:
        return
    if version and version not in versions:
        raise ConfigurationError(
            f"The database has the schema of a newer Plumbline ({version}; this one knows up to {versions[-1]}): install "
            "that version again, or restore a backup from before the upgrade."
        )
    _version.create(connection, checkfirst=True)
    metadata.create_all(connection)
    for table in metadata.sorted_tables:
        if table.name in before:
            _complete(connection, table, inspector)
    if "audit" not in before:
        connection.exec_driver_sql(_AUDIT_TRIGGER[connection.dialect.name])
    _convert(connection, version or versions[-1])
    connection.execute(sa.delete(_version))
    connection.execute(sa.insert(_version).values(version_num=versions[-1]))


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


def _convert(connection: sa.Connection, version: str) -> None:
    """Convert the data of a database of an older version."""
    now = datetime.now(UTC)
    if version < "0003":  # the version of an estimator was in the body alone
        for table, column in ((predictions, "estimator_version"), (calibrators, "version")):
            (key,) = table.primary_key
            for identity, body in connection.execute(sa.select(key, table.c.body)).all():
                connection.execute(table.update().where(key == identity).values({column: getattr(body, column)}))
        connection.execute(sa.text("DROP INDEX ix_predictions_kind"))
    if version < "0010":  # a task was either started or not, by the only process, which called itself "local"
        if connection.scalar(sa.text("SELECT count(*) FROM tasks")):
            connection.execute(sa.insert(replicas).values(id="local", seen_at=now))
        # The workflow engine knows of those that were started, and resumes them.
        connection.execute(sa.update(tasks).where(sa.text("started")).values(ended_at=now))
        connection.execute(sa.text("DROP INDEX ix_tasks_unstarted"))
        connection.execute(sa.text("ALTER TABLE tasks DROP COLUMN started"))
