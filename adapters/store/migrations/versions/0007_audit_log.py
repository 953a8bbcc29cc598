"""The audit log. The database refuses to change what was written; only old entries can be deleted, as a policy asks."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_SQLITE = """
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is not changed'); END
"""
_POSTGRESQL = (
    """
    CREATE FUNCTION audit_is_not_changed() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the audit log is not changed'; END $$
    """,
    """
    CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_is_not_changed()
    """,
)


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(), nullable=False),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("documents", sa.JSON(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("key"),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"], unique=False)
    for statement in (_SQLITE,) if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
