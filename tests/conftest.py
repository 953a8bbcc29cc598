"""What tests of more than one folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bot.config.settings import Settings
from tests.databases import postgres_server

# How long an example takes says how busy the machine is, and nothing about the property.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def nothing_set() -> Iterator[None]:
    """No bot of a test finds the database or the chat that this machine's environment names."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for field in Settings.model_fields.values():
            monkeypatch.delenv(str(field.validation_alias), raising=False)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server, for external tests."""
    with postgres_server() as address:
        yield address
