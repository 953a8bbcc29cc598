"""Settings and fixtures that tests of more than one folder share."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from bot.config.settings import Settings
from bot.quick_imports import quick_imports
from tests.databases import postgres_server

EXTERNAL = Path(__file__).parent / "external"

# Each worker has a core of its own: the threads of a numeric library would only wait for those of the other worker.
# The limit is for the libraries that are loaded by now, the variables for those that are loaded later.
threadpool_limits(1)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# Databases and indexes wait for a disk at each of their many writes. Where programs may not be started from memory, or
# little of it is left, the tests write to the disk.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30  # bytes
if "TMPDIR" not in os.environ and MEMORY.is_dir():
    held = os.statvfs(MEMORY)
    if held.f_bavail * held.f_frsize >= ROOM and not held.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

# How long an example takes says how busy the machine is, and nothing about the property.
# `make fuzz` draws many more examples.
UNTIMED = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("untimed", UNTIMED)
settings.register_profile("thorough", UNTIMED, max_examples=1000)
settings.load_profile("untimed")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Keep the libraries of servers, browsers and emulators out of a run without their tests."""
    return True if collection_path == EXTERNAL and config.option.markexpr == "not external" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage, then and later: modules and tests stay until the end."""
    with quick_imports():
        collected = yield
    gc.set_threshold(20_000, 20, 50)  # looking for the little garbage of tests as often as usual takes 4 % of the time
    return collected


@pytest.fixture(scope="session", autouse=True)
def nothing_set() -> Iterator[None]:
    """No bot of a test finds the database or the chat that this machine's environment names."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        for field in Settings.model_fields.values():
            monkeypatch.delenv(str(field.validation_alias), raising=False)
        # The embedded model takes some seconds to read the sample company; tests that are about it say so.
        monkeypatch.setenv("PLUMBLINE_EMBEDDINGS", "none")
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server, for external tests."""
    with postgres_server() as address:
        yield address
