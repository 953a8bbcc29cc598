"""The schema of a database: created from `tables.py`, or brought up to it.

A database of an older version gets the tables, columns and indexes that it lacks, so `tables.py` alone defines the
schema. A new column has a `server_default` or may be null, because replicas of the version before still insert rows.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn

from adapters.store.tables import metadata
from core.model.errors import ConfigurationError

LATEST = 1  # raise it with every change of `tables.py`: an older Plumbline then refuses the database and its backups
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
