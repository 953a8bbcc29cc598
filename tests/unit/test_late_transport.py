"""The SDK of Teams is loaded when it is first needed."""

from __future__ import annotations

import asyncio
import threading

from adapters.teams.elements import Card
from adapters.teams.late_transport import LateTransport
from adapters.teams.transport import StreamUpdate

SERVICE = "https://smba.example/"


class Recorded:
    """A transport that remembers what it was asked for."""

    def __init__(self) -> None:
        self.calls = list[str]()

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        self.calls.append(f"send {conversation_id}")
        return "id"

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        self.calls.append(f"update {message_id}")

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        self.calls.append(f"stream {update.text}")
        return "stream"

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        self.calls.append(f"delete {message_id}")

    async def close(self) -> None:
        self.calls.append("close")


class Sdk:
    """Counts how often it is loaded, and by which threads."""

    def __init__(self) -> None:
        self.transport = Recorded()
        self.loaded_by = list[int]()

    def load(self) -> Recorded:
        self.loaded_by.append(threading.get_ident())
        return self.transport


async def test_nothing_is_loaded_for_a_chat_in_which_nothing_is_said() -> None:
    sdk = Sdk()
    await LateTransport(sdk.load).close()
    assert not sdk.loaded_by
    assert not sdk.transport.calls


async def test_it_is_loaded_once_and_beside_the_loop_however_many_messages_come_first() -> None:
    sdk = Sdk()
    late = LateTransport(sdk.load)
    await asyncio.gather(*(late.delete(SERVICE, "19:a", str(number)) for number in range(5)), late.opened())
    assert len(sdk.loaded_by) == 1
    assert sdk.loaded_by != [threading.get_ident()]
    assert sorted(sdk.transport.calls) == [f"delete {number}" for number in range(5)]
    await late.close()
    assert sdk.transport.calls[-1] == "close"
