"""Durable state with SQLAlchemy: embedded SQLite, or PostgreSQL for several machines."""
