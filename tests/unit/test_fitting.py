from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info

from adapters.fitting import apart


def threads_with_what_is_loaded_late() -> set[int]:
    import sklearn.ensemble  # noqa: F401 -- brings OpenMP

    return {library["num_threads"] for library in threadpool_info()}


@pytest.mark.external  # a process starts, and loads what a fit needs
async def test_what_a_fit_loads_keeps_to_one_core_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert await apart(threads_with_what_is_loaded_late) == {1}


@pytest.mark.external  # a process starts, and is waited for
async def test_a_fit_that_is_cancelled_holds_up_nobody_and_its_process_ends(tmp_path: Path) -> None:
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    os.mkfifo(begun)
    fitting = asyncio.create_task(apart(fit_long, begun, ended))
    process = int(await asyncio.to_thread(begun.read_text))
    fitting.cancel()
    await asyncio.wait([fitting])
    assert fitting.cancelled()
    with suppress(ProcessLookupError):
        while True:
            os.kill(process, 0)
            await asyncio.sleep(0.01)
    assert not ended.exists(), "nobody waited for the fit"


def fit_long(begun: Path, ended: Path) -> None:
    begun.write_text(str(os.getpid()))
    time.sleep(5)
    ended.touch()
