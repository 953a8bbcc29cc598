"""Calibrators belong to one version of an estimator, and are found by their own version.

Those that were fitted before pooled the versions: they are kept for the badges made with them, and no longer used.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_predictions = sa.table("predictions", sa.column("id"), sa.column("body", sa.JSON), sa.column("estimator_version"))
_calibrators = sa.table("calibrators", sa.column("number"), sa.column("body", sa.JSON), sa.column("version"))


def upgrade() -> None:
    for table, column in (
        ("predictions", "estimator_version"),
        ("calibrators", "estimator_version"),
        ("calibrators", "version"),
    ):
        op.add_column(table, sa.Column(column, sa.Text(), nullable=False, server_default=""))
    _fill(_predictions, _predictions.c.id, "estimator_version")
    _fill(_calibrators, _calibrators.c.number, "version")
    op.drop_index("ix_predictions_kind", "predictions")
    op.create_index("ix_predictions_estimator", "predictions", ["kind", "engine", "estimator_version", "made_at"])
    op.create_index("ix_calibrators_version", "calibrators", ["version"])


def _fill(table: sa.TableClause, key: sa.ColumnClause, column: str) -> None:
    connection = op.get_bind()
    for identity, body in connection.execute(sa.select(key, table.c.body)).all():
        connection.execute(table.update().where(key == identity).values({column: body[column]}))
