from __future__ import annotations

import pytest
from threadpoolctl import threadpool_info

from adapters.fitting import apart


def threads_with_what_is_loaded_late() -> set[int]:
    import sklearn.ensemble  # noqa: F401 -- brings OpenMP

    return {library["num_threads"] for library in threadpool_info()}


async def test_what_a_fit_loads_keeps_to_one_core_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert await apart(threads_with_what_is_loaded_late) == {1}
