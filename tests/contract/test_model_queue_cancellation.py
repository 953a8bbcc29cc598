"""A request whose time is up, or that nobody waits for any more, leaves its slot to the next."""

from __future__ import annotations

import asyncio

import pytest

from adapters.model_queue import RequestOutcome
from core.model.errors import ModelUnavailable
from tests.contract.queued_models import asked, queue_of, served, waiting
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


async def test_a_request_whose_time_is_up_in_the_queue_is_refused_and_leaves_it() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    running = await waiting(queue.generate(asked("running")))
    with pytest.raises(ModelUnavailable, match="deadline"):
        await queue.generate(asked("late", requester="late", deadline=0.01))
    assert queue.position("late") == 0
    assert await served(model, 1) == ["running"]
    await asyncio.gather(*running)


async def test_a_request_whose_time_is_up_while_it_is_answered_frees_its_slot_and_blames_no_server() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    for _ in range(3):
        with pytest.raises(ModelUnavailable, match="deadline"):
            await queue.generate(asked(deadline=0.01))
    assert len(model.cancelled) == 3
    assert queue.status.busy == 0
    assert queue.status.up
    assert queue.status.outcomes[RequestOutcome.ABANDONED] == 3


async def test_the_server_is_told_what_is_left_of_the_time() -> None:
    model = ScriptedModel()
    await (await queue_of(model)).generate(asked(deadline=30.0))
    assert 0 < model.requests[0].deadline <= 30.0


async def test_a_deleted_question_leaves_the_queue() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    tasks = await waiting(
        queue.generate(asked("running")), queue.generate(asked("gone")), queue.generate(asked("next"))
    )
    tasks.pop(1).cancel()
    assert await served(model, 2) == ["running", "next"]
    await asyncio.gather(*tasks)


async def test_a_deleted_question_is_cancelled_at_the_server_and_its_slot_goes_to_the_next() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    gone, following = await waiting(queue.generate(asked("gone")), queue.generate(asked("next")))
    await model.arrivals.get()
    gone.cancel()
    assert await served(model, 1) == ["next"]
    assert [request.messages[0].text for request in model.cancelled] == ["gone"]
    await following


async def test_a_slot_granted_to_a_question_that_is_deleted_that_moment_is_not_lost() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    first, second = await waiting(queue.generate(asked("first")), queue.generate(asked("second")))
    await model.arrivals.get()
    first.cancel()
    while queue.position("C1"):  # noqa: ASYNC110 -- the very moment matters, and nothing else tells it
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([first, second])
    assert queue.status.busy == 0


async def test_a_job_that_is_stopped_leaves_nothing_behind() -> None:
    model = GatedModel()
    queue = await queue_of(model, slots=2)
    tasks = await waiting(*(queue.generate(asked("job")) for _ in range(6)))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert len(model.cancelled) == 2
    assert (queue.status.busy, queue.position("C1")) == (0, 0)
