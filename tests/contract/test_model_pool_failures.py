"""A model server fails: another one answers, and it is left alone until it is well."""

from __future__ import annotations

import asyncio

import pytest

from adapters.llama.connection import RequestRefused
from adapters.model_pool import pool as pool_module
from adapters.model_pool.pool import ModelPool
from adapters.model_pool.server import FAILURES, PAUSE, BreakerState
from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest
from tests.contract.model_pools import asked, down, pool_of, served, server, states, waiting
from tests.fakes.clock import FakeClock
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


async def test_another_server_answers_when_one_fails() -> None:
    pool = pool_of(ScriptedModel(down, name="broken"), ScriptedModel(lambda _: "well"))
    assert (await pool.generate(asked())).text == "well"
    assert len(await pool.sample(asked(), 3)) == 3


async def test_a_prompt_that_is_too_long_is_not_tried_elsewhere() -> None:
    small, large = ScriptedModel(context=5), ScriptedModel(context=10_000)
    pool = pool_of(small, large)
    for _ in range(FAILURES):
        with pytest.raises(PromptTooLong):
            await pool.generate(asked())
    assert large.requests == []
    assert states(pool) == [BreakerState.CLOSED, BreakerState.CLOSED]


async def test_a_request_that_every_server_refuses_does_not_close_them_to_others() -> None:
    def refuse(request: ModelRequest) -> str:
        if "odd" in request.messages[0].text:
            raise RequestRefused("The model server at a refused with HTTP status 400.", "unknown schema")
        return "well"

    first, second = ScriptedModel(refuse, name="first"), ScriptedModel(refuse, name="second")
    pool = pool_of(first, second)
    for _ in range(FAILURES):
        with pytest.raises(ModelUnavailable, match="HTTP status 400"):
            await pool.generate(asked("odd"))
    assert (len(first.requests), len(second.requests)) == (FAILURES, FAILURES)
    assert (await pool.generate(asked())).text == "well"


async def test_a_request_waits_in_its_old_place_for_the_server_that_is_left() -> None:
    broken, well = ScriptedModel(down, name="broken"), GatedModel()
    pool = pool_of(well, broken)
    tasks = await waiting(*(pool.generate(asked(text)) for text in ("running", "failed over", "later")))
    assert await served(well, 3) == ["running", "failed over", "later"]
    await asyncio.gather(*tasks)


async def test_the_last_failure_is_told_when_every_server_failed() -> None:
    pool = pool_of(ScriptedModel(down), ScriptedModel(down))
    with pytest.raises(ModelUnavailable, match="does not answer"):
        await pool.generate(asked())


async def broken_pool(model: ScriptedModel, clock: FakeClock) -> ModelPool:
    model.script = down
    pool = pool_of(model, clock=clock)
    for _ in range(FAILURES):
        with pytest.raises(ModelUnavailable, match="does not answer"):
            await pool.generate(asked())
    return pool


async def test_a_server_that_fails_again_and_again_is_left_alone() -> None:
    model = ScriptedModel()
    pool = await broken_pool(model, FakeClock())
    model.script = lambda _: "well"
    with pytest.raises(ModelUnavailable, match="is down at http://scripted"):
        await pool.generate(asked())
    with pytest.raises(ModelUnavailable):
        await pool.count_tokens("a text")
    assert len(model.requests) == FAILURES


async def test_one_request_tries_a_server_that_was_left_alone_and_the_others_wait_for_it() -> None:
    model, clock = GatedModel(), FakeClock()
    model.script = down
    pool = pool_of(model, slots=2, clock=clock)
    tasks = await waiting(*(pool.generate(asked()) for _ in range(FAILURES)))
    for _ in range(FAILURES):
        await model.arrivals.get()
        model.open_gate()
    assert all(isinstance(error, ModelUnavailable) for error in await asyncio.gather(*tasks, return_exceptions=True))
    assert states(pool) == [BreakerState.OPEN]
    clock.advance(PAUSE.total_seconds())
    model.script = lambda _: "well"
    tasks = await waiting(pool.generate(asked("trial")), pool.generate(asked("after")))
    assert (states(pool), pool.status.servers[0].busy) == ([BreakerState.HALF_OPEN], 1)
    assert await served(model, 2) == ["trial", "after"]
    await asyncio.gather(*tasks)
    assert states(pool) == [BreakerState.CLOSED]


async def test_a_failed_trial_leaves_the_server_alone_again_and_refuses_who_waits() -> None:
    model, clock = ScriptedModel(), FakeClock()
    pool = await broken_pool(model, clock)
    clock.advance(PAUSE.total_seconds())
    tasks = await waiting(pool.generate(asked()), pool.generate(asked()))
    assert all(isinstance(error, ModelUnavailable) for error in await asyncio.gather(*tasks, return_exceptions=True))
    assert states(pool) == [BreakerState.OPEN]


async def test_a_cancelled_trial_makes_way_for_another() -> None:
    model, clock = GatedModel(), FakeClock()
    pool = pool_of(ScriptedModel(down), model, clock=clock)
    loads = pool._servers
    for load in loads:
        for _ in range(FAILURES):
            load.breaker.failed()
    clock.advance(PAUSE.total_seconds())
    loads[0].breaker.failed()
    (trial,) = await waiting(pool.generate(asked("cancelled")))
    await model.arrivals.get()
    trial.cancel()
    tasks = await waiting(pool.generate(asked("second")))
    assert await served(model, 1) == ["second"]
    await asyncio.gather(*tasks)


async def test_health_checks_find_a_server_that_hangs_and_one_that_came_back() -> None:
    healthy = False

    async def check() -> int:
        if not healthy:
            raise ModelUnavailable("It does not answer.")
        return 4

    pool = ModelPool([server(ScriptedModel(lambda _: "well"), check=check)], FakeClock())
    for _ in range(FAILURES):
        await pool.check_health()
    assert states(pool) == [BreakerState.OPEN]
    healthy = True
    await pool.check_health()
    assert states(pool) == [BreakerState.HALF_OPEN]
    assert (await pool.generate(asked())).text == "well"
    assert states(pool) == [BreakerState.CLOSED]
    assert pool.status.servers[0].slots == 4


async def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hangs(ScriptedModel):
        async def count_tokens(self, text: str) -> int:
            return await asyncio.Future()

    async def hang() -> int:
        return await asyncio.Future()

    monkeypatch.setattr(pool_module, "HEALTH_TIMEOUT", 0.01)
    monkeypatch.setattr(pool_module, "COUNT_TIMEOUT", 0.01)
    pool = ModelPool([server(Hangs(), check=hang), server(ScriptedModel())], FakeClock())
    assert await pool.count_tokens("two words") == 2
    for _ in range(FAILURES):
        await pool.check_health()
    assert states(pool) == [BreakerState.OPEN, BreakerState.CLOSED]


async def test_health_is_checked_as_long_as_the_pool_is_watched() -> None:
    checked = asyncio.Event()

    async def check() -> int:
        checked.set()
        return 1

    pool = ModelPool([server(ScriptedModel(), check=check)], FakeClock())
    async with pool.watched():
        await checked.wait()
    assert len(asyncio.all_tasks()) == 1
