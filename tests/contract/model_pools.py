"""Pools of scripted servers, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from adapters.model_pool.pool import ModelPool
from adapters.model_pool.server import BreakerState, ModelServer
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role, Urgency
from core.ports import LanguageModel
from tests.fakes.clock import FakeClock
from tests.fakes.gated_model import GatedModel


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
