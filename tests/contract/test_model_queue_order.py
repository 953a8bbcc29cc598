"""Who is served next by a model server."""

from __future__ import annotations

import asyncio

import pytest

from adapters.model_queue import MAX_PASSED_OVER
from core.model.errors import ModelUnavailable
from core.model.language_model import Urgency
from tests.contract.queued_models import asked, queue_of, served, waiting
from tests.fakes.gated_model import GatedModel


async def test_a_person_goes_before_an_incident_and_an_incident_before_nightly_work() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    tasks = await waiting(
        queue.generate(asked("first")),
        queue.generate(asked("night", Urgency.BACKGROUND)),
        queue.generate(asked("incident", Urgency.INCIDENT)),
        queue.generate(asked("person")),
    )
    assert await served(model, 4) == ["first", "person", "incident", "night"]
    await asyncio.gather(*tasks)


async def test_channels_take_turns_however_many_questions_one_of_them_has() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    tasks = await waiting(
        *(queue.generate(asked(f"loud {number}", requester="loud")) for number in range(4)),
        queue.generate(asked("quiet 0", requester="quiet")),
        queue.generate(asked("quiet 1", requester="quiet")),
    )
    assert await served(model, 6) == ["loud 0", "quiet 0", "loud 1", "quiet 1", "loud 2", "loud 3"]
    await asyncio.gather(*tasks)


async def test_nightly_work_gets_a_turn_while_people_keep_asking() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    tasks = await waiting(
        *(queue.generate(asked(f"person {number}")) for number in range(20)),
        queue.generate(asked("night", Urgency.BACKGROUND)),
    )
    order = await served(model, 21)
    # The first started before the nightly request came.
    assert order.index("night") == 1 + MAX_PASSED_OVER
    await asyncio.gather(*tasks)


async def test_nightly_work_leaves_a_slot_to_whoever_comes() -> None:
    model = GatedModel()
    queue = await queue_of(model, slots=3)
    tasks = await waiting(*(queue.generate(asked("night", Urgency.BACKGROUND)) for _ in range(5)))
    assert queue.status.busy == 2
    tasks += await waiting(queue.generate(asked("person")))
    assert queue.status.busy == 3
    await served(model, 6)
    await asyncio.gather(*tasks)


async def test_a_request_for_several_replies_counts_as_that_many() -> None:
    model = GatedModel()
    queue = await queue_of(model, slots=4)
    tasks = await waiting(queue.sample(asked("three"), 3), queue.generate(asked("one")), queue.generate(asked("waits")))
    assert (queue.status.busy, queue.position("C1")) == (4, 1)
    order = await served(model, 5)
    assert order.index("waits") == order.index("one") + 2
    await asyncio.gather(*tasks)


async def test_a_request_for_more_replies_than_there_are_slots_is_not_put_off_for_ever() -> None:
    model = GatedModel()
    queue = await queue_of(model, slots=2)
    tasks = await waiting(queue.generate(asked("one")), queue.sample(asked("many"), 5))
    assert queue.status.busy == 2
    await served(model, 6)
    await asyncio.gather(*tasks)


async def test_a_full_queue_gives_up_the_newest_of_the_least_urgent() -> None:
    model = GatedModel()
    queue = await queue_of(model, capacity=2)
    tasks = await waiting(
        queue.generate(asked("running")),
        queue.generate(asked("night 1", Urgency.BACKGROUND)),
        queue.generate(asked("night 2", Urgency.BACKGROUND)),
        queue.generate(asked("person")),
    )
    with pytest.raises(ModelUnavailable, match="2 requests"):
        await tasks.pop(2)
    assert await served(model, 3) == ["running", "person", "night 1"]
    await asyncio.gather(*tasks)


async def test_a_full_queue_of_people_refuses_the_next_one_at_once() -> None:
    model = GatedModel()
    queue = await queue_of(model, capacity=1)
    tasks = await waiting(queue.generate(asked("running")), queue.generate(asked("waiting")))
    with pytest.raises(ModelUnavailable):
        await queue.generate(asked("late"))
    assert await served(model, 2) == ["running", "waiting"]
    await asyncio.gather(*tasks)


async def test_the_place_in_the_queue_can_be_told() -> None:
    model = GatedModel()
    queue = await queue_of(model)
    tasks = await waiting(
        queue.generate(asked(requester="C0")),
        queue.generate(asked(requester="C1")),
        queue.generate(asked(requester="C1")),
        queue.generate(asked(requester="C2")),
        queue.generate(asked(urgency=Urgency.INCIDENT, requester="incident")),
    )
    assert [queue.position(requester) for requester in ("C0", "C1", "C2", "incident")] == [0, 1, 2, 4]
    await served(model, 5)
    await asyncio.gather(*tasks)
