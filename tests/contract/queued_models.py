"""Scripted models behind a queue, and what is asked of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from adapters.model_queue import ModelQueue
from core.model.errors import ModelUnavailable
from core.model.language_model import ChatMessage, ModelRequest, Role, Urgency
from tests.fakes.gated_model import GatedModel
from tests.fakes.language_model import ScriptedModel


def asked(
    text: str = "why?", urgency: Urgency = Urgency.PERSON, requester: str = "C1", deadline: float = 60.0
) -> ModelRequest:
    return ModelRequest((ChatMessage(Role.USER, text),), urgency=urgency, requester=requester, deadline=deadline)


def down(_: ModelRequest) -> str:
    raise ModelUnavailable("The server does not answer.")


async def queue_of(model: ScriptedModel, slots: int = 1, capacity: int = 64) -> ModelQueue:
    """Return a queue that knows the number of slots."""

    async def check() -> int:
        return slots

    queue = ModelQueue(model, check, f"http://{model.name}", capacity)
    await queue.check_health()
    return queue


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
