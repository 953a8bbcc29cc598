"""Durable state on SQLAlchemy: SQLite embedded, PostgreSQL beyond one machine."""
