"""Entry point of Alembic. Runs the migrations on the connection passed by `migrate`."""

from alembic import context

from adapters.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
