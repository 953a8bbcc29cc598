"""Several servers as one language model."""

from __future__ import annotations

import asyncio

import pytest

from core.model.errors import ModelUnavailable
from tests.contract.model_pools import asked, pool_of, served, waiting
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


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
