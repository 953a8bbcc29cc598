"""Who waits for whom: 16 people and a nightly job at one language model, with the queue and without it.

    python -m tests.benchmarks model-queue --llm http://127.0.0.1:8081 [--seconds 20] [--json FILE]

`burst`: the nightly job has been running when 16 people ask at once. `saturated`: 16 people ask again as soon as they
are answered, for so many seconds, while the nightly job goes on. `direct` sends everything to the server as it comes;
`queue` goes through the queue with its priorities. Every prompt has about 200 characters of its own, every
reply at most 32 tokens. Times are in seconds, from asking to the whole reply.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter, time_ns
from typing import Any

import aiohttp
import numpy as np

from bot.config.settings import Settings, load_settings
from bot.wiring.application import llama_server, open_model
from core.model.language_model import ChatMessage, ModelRequest, Role, Urgency
from core.ports import LanguageModel

PEOPLE = 16
NIGHTLY_AT_ONCE = 12  # requests that the nightly job keeps under way
WARM_UP = 12  # nightly replies before people come
REPLY_TOKENS = 32
DEADLINE = 300.0  # seconds; far enough that nothing is given up
PASSAGE = "The refunds worker retries a failed transfer three times, a minute apart, and then pages its owner. "


@dataclass(slots=True)
class Taken:
    """How long the replies took, in seconds, in the order in which they came."""

    people: list[float] = field(default_factory=list)
    nightly: list[float] = field(default_factory=list)


def request(number: int, urgency: Urgency, requester: str) -> ModelRequest:
    prompt = f"Case {number}. " + PASSAGE * 2
    return ModelRequest(
        (ChatMessage(Role.USER, prompt),),
        max_tokens=REPLY_TOKENS,
        temperature=1.0,
        seed=number,
        urgency=urgency,
        requester=requester,
        deadline=DEADLINE,
    )


class Load:
    """People and a nightly job at one model."""

    numbers = count(time_ns())  # no prompt is one that the server has in its cache, from this run or the last

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.taken = Taken()
        self._warm = asyncio.Event()

    async def _ask(self, urgency: Urgency, requester: str, taken: list[float]) -> None:
        started = perf_counter()
        await self._model.generate(request(next(self.numbers), urgency, requester))
        taken.append(perf_counter() - started)

    async def _nightly(self) -> None:
        while True:
            await self._ask(Urgency.BACKGROUND, "nightly", self.taken.nightly)
            if len(self.taken.nightly) >= WARM_UP:
                self._warm.set()

    @asynccontextmanager
    async def nightly_job(self) -> AsyncGenerator[None]:
        """Keep the nightly job going until the block ends; what was measured before the block is forgotten."""
        tasks = [asyncio.create_task(self._nightly()) for _ in range(NIGHTLY_AT_ONCE)]
        try:
            await self._warm.wait()
            self.taken = Taken()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def question(self, person: int) -> None:
        await self._ask(Urgency.PERSON, f"channel {person}", self.taken.people)

    async def questions(self, person: int, ends_at: float) -> None:
        while perf_counter() < ends_at:
            await self.question(person)


async def burst(model: LanguageModel) -> dict[str, Any]:
    load = Load(model)
    async with load.nightly_job():
        started = perf_counter()
        await asyncio.gather(*(load.question(person) for person in range(PEOPLE)))
        return figures(load.taken, perf_counter() - started)


async def saturated(model: LanguageModel, seconds: float) -> dict[str, Any]:
    load = Load(model)
    async with load.nightly_job():
        started = perf_counter()
        await asyncio.gather(*(load.questions(person, started + seconds) for person in range(PEOPLE)))
        return figures(load.taken, perf_counter() - started)


def figures(taken: Taken, seconds: float) -> dict[str, Any]:
    people, nightly = taken.people, taken.nightly
    return {
        "seconds": round(seconds, 1),
        "people_replies": len(people),
        "people_p50_s": round(float(np.percentile(people, 50)), 2),
        "people_max_s": round(max(people), 2),
        "nightly_replies": len(nightly),
        "nightly_share": round(len(nightly) / (len(people) + len(nightly)), 3),
        "nightly_max_s": round(max(nightly), 2) if nightly else None,
    }


async def measure(settings: Settings, seconds: float) -> dict[str, Any]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        direct = llama_server(settings.llm_url, settings, session)
        result: dict[str, Any] = {"slots": await direct.check_health()}
        result["direct"] = {"burst": await burst(direct), "saturated": await saturated(direct, seconds)}
        async with open_model(settings, session) as queue:
            assert queue is not None
            await queue.check_health()
            result["queue"] = {"burst": await burst(queue), "saturated": await saturated(queue, seconds)}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="16 people and a nightly job at one language model.")
    parser.add_argument("--llm", required=True)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = asyncio.run(measure(load_settings(llm_url=arguments.llm), arguments.seconds))
    print(json.dumps(result, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
