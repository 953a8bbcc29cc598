"""A model server that fails is left alone until it is well, so that nothing waits for it and nothing floods it."""

from __future__ import annotations

import asyncio

import pytest

from adapters import model_queue
from adapters.llama.connection import RequestRefused
from adapters.model_queue import ModelQueue
from core.model.errors import ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest
from tests.contract.queued_models import asked, down, queue_of, served, waiting
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


async def failing_queue(model: ScriptedModel) -> ModelQueue:
    """A queue before a model that has failed."""
    model.script = down
    queue = await queue_of(model)
    assert queue.status.up
    with pytest.raises(ModelUnavailable, match="does not answer"):
        await queue.generate(asked())
    return queue


async def test_a_server_that_failed_is_left_alone() -> None:
    model = ScriptedModel()
    queue = await failing_queue(model)
    model.script = lambda _: "well"
    with pytest.raises(ModelUnavailable, match="is down at http://scripted"):
        await queue.generate(asked())
    for question in (queue.count_tokens("a text"), queue.context_tokens(), queue.abilities()):
        with pytest.raises(ModelUnavailable, match="is down"):
            await question
    assert len(model.requests) == 1


async def test_who_waits_for_a_server_that_failed_is_refused_at_once() -> None:
    model = GatedModel(script=down)
    queue = await queue_of(model)
    tasks = await waiting(*(queue.generate(asked(f"{number}")) for number in range(40)))
    assert await served(model, 1) == ["0"]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, ModelUnavailable) for result in results)
    assert len(model.requests) == 1
    assert not queue.status.up


async def test_a_server_is_used_again_after_it_passed_a_check_and_answered() -> None:
    model = ScriptedModel()
    queue = await failing_queue(model)
    await queue.check_health()
    model.script = lambda _: "well"
    assert (await queue.generate(asked())).text == "well"
    assert queue.status.up


async def test_a_server_that_passes_its_checks_and_fails_is_tried_once_after_each() -> None:
    model = ScriptedModel()
    queue = await failing_queue(model)
    for checks in range(1, 4):
        await queue.check_health()
        for _ in range(5):
            with pytest.raises(ModelUnavailable):
                await queue.generate(asked())
        assert len(model.requests) == 1 + checks


async def test_prompts_that_are_too_long_do_not_close_a_server_to_others() -> None:
    queue = await queue_of(ScriptedModel(context=600))
    with pytest.raises(PromptTooLong):
        await queue.generate(asked("long " * 600))
    assert queue.status.up


async def test_requests_that_are_refused_do_not_close_a_server_to_others() -> None:
    def refuse(request: ModelRequest) -> str:
        if "odd" in request.messages[0].text:
            raise RequestRefused("The model server at a refused with HTTP status 400.", "unknown schema")
        return "well"

    queue = await queue_of(ScriptedModel(refuse))
    with pytest.raises(ModelUnavailable, match="HTTP status 400"):
        await queue.generate(asked("odd"))
    assert (await queue.generate(asked())).text == "well"


async def test_health_checks_find_a_server_that_is_gone_and_one_that_came_back() -> None:
    healthy = False

    async def check() -> int:
        if not healthy:
            raise ModelUnavailable("It does not answer.")
        return 4

    queue = ModelQueue(ScriptedModel(lambda _: "well"), check, "http://a")
    assert queue.status.up
    await queue.check_health()
    with pytest.raises(ModelUnavailable, match="is down"):
        await queue.generate(asked())
    healthy = True
    await queue.check_health()
    assert (await queue.generate(asked())).text == "well"
    assert queue.status.slots == 4


async def test_a_server_that_hangs_does_not_hold_up_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang() -> int:
        return await asyncio.Future()

    monkeypatch.setattr(model_queue, "HEALTH_TIMEOUT", 0.01)
    queue = ModelQueue(ScriptedModel(), hang, "http://a")
    await queue.check_health()
    assert not queue.status.up


async def test_health_is_checked_as_long_as_the_queue_is_watched() -> None:
    checked = asyncio.Event()

    async def check() -> int:
        checked.set()
        return 1

    async with ModelQueue(ScriptedModel(), check, "http://a").watched():
        await checked.wait()
    assert len(asyncio.all_tasks()) == 1
