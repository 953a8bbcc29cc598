"""Several servers as one language model: who is served next, and what happens when a server fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from adapters.llama.connection import Refused
from adapters.model_pool import pool as pool_module
from adapters.model_pool.breaker import FAILURES, PAUSE, BreakerState
from adapters.model_pool.pool import ModelPool
from adapters.model_pool.queue import PATIENCE
from adapters.model_pool.server import ModelServer, RequestOutcome
from core.errors import ModelUnavailable, PromptTooLong
from core.language_model import ChatMessage, ModelRequest, Role, Urgency
from core.ports import LanguageModel
from tests.fakes.clock import FakeClock
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


def asked(
    text: str = "why?", urgency: Urgency = Urgency.PERSON, requester: str = "C1", deadline: float = 60.0
) -> ModelRequest:
    return ModelRequest((ChatMessage(Role.USER, text),), urgency=urgency, requester=requester, deadline=deadline)


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The server does not answer.")


def server(model: LanguageModel, slots: int = 1, check: Callable[[], Awaitable[int]] | None = None) -> ModelServer:
    async def well() -> int:
        return slots

    return ModelServer(f"http://{model.name}", model, slots, check or well)


def pool_of(*models: LanguageModel, slots: int = 1, capacity: int = 64, clock: FakeClock | None = None) -> ModelPool:
    return ModelPool([server(model, slots) for model in models], clock or FakeClock(), capacity)


def states(pool: ModelPool) -> list[BreakerState]:
    return [status.breaker for status in pool.status.servers]


async def waiting(*work: Awaitable[Any]) -> list[asyncio.Task[Any]]:
    """Tasks that have come as far as they can by themselves."""
    tasks = [asyncio.ensure_future(one) for one in work]
    await asyncio.sleep(0)
    return tasks


async def served(model: GatedModel, count: int) -> list[str]:
    """The texts of the next requests in the order in which they start, each ended before the next."""
    texts: list[str] = []
    for _ in range(count):
        texts.append((await model.arrivals.get()).messages[0].text)
        model.open_gate()
    return texts


# --- who is next -----------------------------------------------------------------------------------------------------


async def test_a_person_goes_before_an_incident_and_an_incident_before_nightly_work() -> None:
    model = GatedModel()
    pool = pool_of(model)
    tasks = await waiting(
        pool.generate(asked("first")),
        pool.generate(asked("night", Urgency.BACKGROUND)),
        pool.generate(asked("incident", Urgency.INCIDENT)),
        pool.generate(asked("person")),
    )
    assert await served(model, 4) == ["first", "person", "incident", "night"]
    await asyncio.gather(*tasks)


async def test_channels_take_turns_however_many_questions_one_of_them_has() -> None:
    model = GatedModel()
    pool = pool_of(model)
    tasks = await waiting(
        *(pool.generate(asked(f"loud {number}", requester="loud")) for number in range(4)),
        pool.generate(asked("quiet 0", requester="quiet")),
        pool.generate(asked("quiet 1", requester="quiet")),
    )
    assert await served(model, 6) == ["loud 0", "quiet 0", "loud 1", "quiet 1", "loud 2", "loud 3"]
    await asyncio.gather(*tasks)


async def test_nightly_work_gets_a_turn_while_people_keep_asking() -> None:
    model = GatedModel()
    pool = pool_of(model)
    tasks = await waiting(
        *(pool.generate(asked(f"person {number}")) for number in range(20)),
        pool.generate(asked("night", Urgency.BACKGROUND)),
    )
    order = await served(model, 21)
    # The first started before the nightly request came.
    assert order.index("night") == 1 + PATIENCE
    await asyncio.gather(*tasks)


async def test_nightly_work_leaves_a_slot_to_whoever_comes() -> None:
    model = GatedModel()
    pool = pool_of(model, slots=3)
    tasks = await waiting(*(pool.generate(asked("night", Urgency.BACKGROUND)) for _ in range(5)))
    assert pool.status.servers[0].busy == 2
    tasks += await waiting(pool.generate(asked("person")))
    assert pool.status.servers[0].busy == 3
    await served(model, 6)
    await asyncio.gather(*tasks)


async def test_a_request_for_several_replies_counts_as_that_many() -> None:
    model = GatedModel()
    pool = pool_of(model, slots=4)
    tasks = await waiting(pool.sample(asked("three"), 3), pool.generate(asked("one")), pool.generate(asked("waits")))
    assert (pool.status.servers[0].busy, pool.position("C1")) == (4, 1)
    order = await served(model, 5)
    assert order.index("waits") == order.index("one") + 2
    await asyncio.gather(*tasks)


async def test_a_request_for_more_replies_than_there_are_slots_is_not_put_off_for_ever() -> None:
    model = GatedModel()
    pool = pool_of(model, slots=2)
    tasks = await waiting(pool.generate(asked("one")), pool.sample(asked("many"), 5))
    assert pool.status.servers[0].busy == 2
    await served(model, 6)
    await asyncio.gather(*tasks)


async def test_a_full_queue_gives_up_the_newest_of_the_least_urgent() -> None:
    model = GatedModel()
    pool = pool_of(model, capacity=2)
    tasks = await waiting(
        pool.generate(asked("running")),
        pool.generate(asked("night 1", Urgency.BACKGROUND)),
        pool.generate(asked("night 2", Urgency.BACKGROUND)),
        pool.generate(asked("person")),
    )
    with pytest.raises(ModelUnavailable, match="2 requests waiting"):
        await tasks.pop(2)
    assert await served(model, 3) == ["running", "person", "night 1"]
    await asyncio.gather(*tasks)


async def test_a_full_queue_of_people_refuses_the_next_one_at_once() -> None:
    model = GatedModel()
    pool = pool_of(model, capacity=1)
    tasks = await waiting(pool.generate(asked("running")), pool.generate(asked("waiting")))
    with pytest.raises(ModelUnavailable):
        await pool.generate(asked("late"))
    assert await served(model, 2) == ["running", "waiting"]
    await asyncio.gather(*tasks)


async def test_the_place_in_the_queue_can_be_told() -> None:
    model = GatedModel()
    pool = pool_of(model)
    tasks = await waiting(
        pool.generate(asked(requester="C0")),
        pool.generate(asked(requester="C1")),
        pool.generate(asked(requester="C1")),
        pool.generate(asked(requester="C2")),
        pool.generate(asked(urgency=Urgency.INCIDENT, requester="incident")),
    )
    assert [pool.position(requester) for requester in ("C0", "C1", "C2", "incident")] == [0, 1, 2, 4]
    await served(model, 5)
    await asyncio.gather(*tasks)


# --- time and cancellation -------------------------------------------------------------------------------------------


async def test_a_request_whose_time_is_up_in_the_queue_is_refused_and_leaves_it() -> None:
    model = GatedModel()
    pool = pool_of(model)
    running = await waiting(pool.generate(asked("running")))
    with pytest.raises(ModelUnavailable, match="deadline"):
        await pool.generate(asked("late", requester="late", deadline=0.01))
    assert pool.position("late") == 0
    assert await served(model, 1) == ["running"]
    await asyncio.gather(*running)


async def test_a_request_whose_time_is_up_while_it_is_answered_frees_its_slot_and_blames_no_server() -> None:
    model = GatedModel()
    pool = pool_of(model)
    for _ in range(FAILURES):
        with pytest.raises(ModelUnavailable, match="deadline"):
            await pool.generate(asked(deadline=0.01))
    assert len(model.cancelled) == FAILURES
    assert pool.status.servers[0].busy == 0
    assert states(pool) == [BreakerState.CLOSED]
    assert pool.status.servers[0].outcomes[RequestOutcome.ABANDONED] == FAILURES


async def test_the_server_is_told_what_is_left_of_the_time() -> None:
    model = ScriptedModel()
    await pool_of(model).generate(asked(deadline=30.0))
    assert 0 < model.requests[0].deadline <= 30.0


async def test_a_deleted_question_leaves_the_queue() -> None:
    model = GatedModel()
    pool = pool_of(model)
    tasks = await waiting(pool.generate(asked("running")), pool.generate(asked("gone")), pool.generate(asked("next")))
    tasks.pop(1).cancel()
    assert await served(model, 2) == ["running", "next"]
    await asyncio.gather(*tasks)


async def test_a_deleted_question_is_cancelled_at_the_server_and_its_slot_goes_to_the_next() -> None:
    model = GatedModel()
    pool = pool_of(model)
    gone, following = await waiting(pool.generate(asked("gone")), pool.generate(asked("next")))
    await model.arrivals.get()
    gone.cancel()
    assert await served(model, 1) == ["next"]
    assert [request.messages[0].text for request in model.cancelled] == ["gone"]
    await following


async def test_a_slot_granted_to_a_question_that_is_deleted_that_moment_is_not_lost() -> None:
    model = GatedModel()
    pool = pool_of(model)
    first, second = await waiting(pool.generate(asked("first")), pool.generate(asked("second")))
    await model.arrivals.get()
    first.cancel()
    while pool.position("C1"):  # noqa: ASYNC110 -- the very moment matters, and nothing else tells it
        await asyncio.sleep(0)
    second.cancel()
    await asyncio.wait([first, second])
    assert pool.status.servers[0].busy == 0


async def test_a_job_that_is_stopped_leaves_nothing_behind() -> None:
    model = GatedModel()
    pool = pool_of(model, slots=2)
    tasks = await waiting(*(pool.generate(asked("job")) for _ in range(6)))
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert all(task.cancelled() for task in tasks)
    assert len(model.cancelled) == 2
    assert (pool.status.servers[0].busy, pool.position("C1")) == (0, 0)


async def test_an_abandoned_stream_frees_its_slot() -> None:
    model = GatedModel(script=lambda _: "one\ntwo")
    pool = pool_of(model)
    stream = pool.stream(asked())
    first = asyncio.ensure_future(anext(stream))
    await model.arrivals.get()
    model.open_gate()
    assert await first == "one\n"
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue] -- the port promises no more than an iterator
    assert pool.status.servers[0].busy == 0


async def test_a_stream_ends_with_its_deadline() -> None:
    pool = pool_of(GatedModel(script=lambda _: "one\ntwo"))
    with pytest.raises(ModelUnavailable, match="deadline"):
        _ = [piece async for piece in pool.stream(asked(deadline=0.01))]
    assert pool.status.servers[0].busy == 0


# --- servers that fail -----------------------------------------------------------------------------------------------


async def test_another_server_answers_when_one_fails() -> None:
    pool = pool_of(ScriptedModel(down, name="broken"), ScriptedModel(lambda _: "well"))
    assert (await pool.generate(asked())).text == "well"
    assert [piece async for piece in pool.stream(asked())] == ["well"]
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
            raise Refused("The model server at a refused with HTTP status 400.", "unknown schema")
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


async def test_a_stream_that_breaks_off_is_not_begun_again_by_another_server() -> None:
    class BreaksOff(ScriptedModel):
        async def stream(self, request: ModelRequest):
            yield "half"
            raise ModelUnavailable("The connection broke.")

    other = ScriptedModel(lambda _: "whole")
    stream = pool_of(BreaksOff(), other).stream(asked())
    assert await anext(stream) == "half"
    with pytest.raises(ModelUnavailable, match="broke"):
        await anext(stream)
    assert other.requests == []


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


# --- many servers ----------------------------------------------------------------------------------------------------


async def test_requests_spread_over_idle_servers() -> None:
    left, right = GatedModel(name="left"), GatedModel(name="right")
    pool = pool_of(left, right, slots=2)
    tasks = await waiting(*(pool.generate(asked(f"{number}" * 9)) for number in range(4)))
    assert [status.busy for status in pool.status.servers] == [2, 2]
    await asyncio.gather(served(left, 2), served(right, 2), *tasks)


async def test_a_prompt_goes_back_to_the_server_that_computed_its_beginning() -> None:
    left, right = GatedModel(name="left"), GatedModel(name="right")
    pool = pool_of(left, right)
    payments, search = "payments evidence " * 9, "search evidence " * 9
    tasks = await waiting(pool.generate(asked(payments + "why?")), pool.generate(asked(search + "why?")))
    await asyncio.gather(served(left, 1), served(right, 1), *tasks)
    tasks = await waiting(pool.generate(asked(search + "since when?")), pool.generate(asked(payments + "since when?")))
    assert await asyncio.gather(served(left, 1), served(right, 1)) == [
        [payments + "since when?"],
        [search + "since when?"],
    ]
    await asyncio.gather(*tasks)


async def test_a_common_greeting_does_not_tie_a_prompt_to_a_server() -> None:
    left, right = GatedModel(name="left"), GatedModel(name="right")
    pool = pool_of(left, right, slots=2)
    tasks = await waiting(pool.generate(asked("be brief: " + "a" * 40)), pool.generate(asked("be brief: " + "b" * 40)))
    assert [status.busy for status in pool.status.servers] == [1, 1]
    await asyncio.gather(served(left, 1), served(right, 1), *tasks)


async def test_a_prompt_must_fit_the_smallest_context() -> None:
    class Silent(ScriptedModel):
        async def context_tokens(self) -> int:
            raise ModelUnavailable("It does not answer.")

        async def count_tokens(self, text: str) -> int:
            raise ModelUnavailable("It does not answer.")

    pool = pool_of(Silent(context=10), ScriptedModel(context=8_192), ScriptedModel(context=4_096))
    assert await pool.context_tokens() == 4_096
    assert await pool.count_tokens("two words") == 2
    with pytest.raises(ModelUnavailable):
        await pool_of(Silent()).context_tokens()


async def test_it_speaks_the_port_as_the_model_behind_it_does() -> None:
    model = ScriptedModel(lambda _: "yes", odds=lambda _, __: {"yes": 3.0, "no": 1.0})
    pool = pool_of(model)
    assert pool.name == "scripted"
    assert (await pool.generate(asked())).text == "yes"
    assert await pool.expect(asked(), ["yes", "no"]) == {"yes": 0.75, "no": 0.25}
