"""The SDK of Teams is loaded when it is first needed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from adapters.teams.connector import Operation
from adapters.teams.messenger import Transport

SERVICE = "https://smba.example/"


class Recorded:
    """An SDK that remembers how often it was loaded, by which thread, and what it was asked for."""

    def __init__(self) -> None:
        self.calls = list[str]()
        self.loaded_by = list[int]()

    def load(self) -> Recorded:
        self.loaded_by.append(threading.get_ident())
        return self

    async def call(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> str:
        self.calls.append(f"{operation} {ids[-1]}")
        return ""


async def test_it_is_loaded_once_and_beside_the_loop_however_many_messages_come_first() -> None:
    sdk = Recorded()
    transport = Transport(sdk.load, None)
    await asyncio.gather(*(transport.delete(SERVICE, "19:a", str(number)) for number in range(5)), transport.opened())
    assert len(sdk.loaded_by) == 1
    assert sdk.loaded_by != [threading.get_ident()]
    assert sorted(sdk.calls) == [f"delete_activity {number}" for number in range(5)]
