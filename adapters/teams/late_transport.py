"""A transport that opens on first use, because loading its SDK takes a quarter of a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from adapters.teams.elements import Card
from adapters.teams.transport import StreamUpdate, Transport


class LateTransport:
    """Implements `Transport`."""

    def __init__(self, open_sdk: Callable[[], Transport]) -> None:
        self._open_sdk = open_sdk
        self._opening = asyncio.Lock()
        self._transport: Transport | None = None

    async def opened(self) -> Transport:
        """Return the open transport."""
        async with self._opening:
            if self._transport is None:
                self._transport = await asyncio.to_thread(self._open_sdk)
            return self._transport

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        return await (await self.opened()).send(service_url, conversation_id, card)

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        await (await self.opened()).update(service_url, conversation_id, message_id, card)

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        return await (await self.opened()).stream(service_url, conversation_id, update)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        await (await self.opened()).delete(service_url, conversation_id, message_id)

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.close()
