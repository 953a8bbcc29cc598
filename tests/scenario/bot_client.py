"""Talks to a running bot over HTTP, as a monitoring system and as somebody at the local page do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp

from tests.scenario import webhooks

TIMEOUT = 40.0  # seconds until what a scenario waits for must have happened

Message = dict[str, Any]
T = TypeVar("T")


class BotClient:
    """`address` is that of the local page."""

    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self.address = address
        self.session = session

    async def deliver(self, group: str, *alerts: dict[str, Any], omitted: int = 0) -> str | None:
        """Send an alert webhook; returns the id of its incident."""
        body = webhooks.delivery(group, *alerts, omitted=omitted)
        async with self.session.post(f"{self.address}webhooks/alertmanager", json=body) as response:
            assert response.status == 202, await response.text()
            return (await response.json())["incident"]

    async def ask(self, channel: str, text: str) -> None:
        """Write a message on the local page."""
        form = {"channel": channel, "text": text}
        async with self.session.post(
            f"{self.address}console/messages", data=form, headers={"HX-Request": "true"}
        ) as response:
            assert response.status == 204, await response.text()

    async def submit(self, path: str, **form: str) -> None:
        """Send a form of the local page."""
        async with self.session.post(f"{self.address}{path}", data=form, headers={"HX-Request": "true"}) as response:
            assert response.status in (200, 204), await response.text()

    async def messages(self, channel: str) -> list[Message]:
        """What stands in a channel of the local page."""
        async with self.session.get(f"{self.address}console/messages.json", params={"channel": channel}) as response:
            assert response.status == 200, await response.text()
            return (await response.json())["messages"]

    async def until(self, channel: str, found: Callable[[list[Message]], T | None]) -> T:
        """What `found` makes of the channel's messages, looked at again with every change until it is true."""
        async with asyncio.timeout(TIMEOUT):
            messages = await self.messages(channel)
            if result := found(messages):
                return result
            async with self._changes(channel, messages) as changes:
                async for _ in changes:
                    if result := found(await self.messages(channel)):
                        return result
        raise AssertionError(f"The bot closed the connection before {found} was true.")

    async def incident(self, incident_id: str, so: Callable[[Message], bool] = lambda _: True) -> Message:
        """The payload of the incident's message, once it is so."""

        def found(messages: list[Message]) -> Message | None:
            shown = [incident for incident in incidents(messages) if incident["id"] == incident_id]
            return next((incident for incident in shown if so(incident)), None)

        return await self.until("incidents", found)

    async def worked_on(self, group: str, *alerts: dict[str, Any]) -> tuple[Message, int]:
        """A new incident once its investigation is over, and the message that shows it."""
        incident_id = await self.deliver(group, *alerts)
        assert incident_id is not None
        incident = await self.incident(incident_id, is_done)
        return incident, await self.root_with_details(incident_id)

    async def root_with_details(self, incident_id: str) -> int:
        """The incident's message, once its details stand in its thread: they are posted after its last edit."""

        def found(messages: list[Message]) -> int | None:
            details = of_kind(messages, "details")
            return next((each["thread"] for each in details if each["payload"]["incident"]["id"] == incident_id), None)

        return await self.until("incidents", found)

    @asynccontextmanager
    async def _changes(self, channel: str, seen: list[Message]) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields at once, and whenever something has changed since these messages were seen."""
        cursor = ".".join(str(max((each[name] for each in seen), default=0)) for name in ("id", "revision"))
        async with self.session.get(
            f"{self.address}console/live",
            params={"channel": channel, "after": cursor},
            timeout=aiohttp.ClientTimeout(total=None),
        ) as response:
            assert response.status == 200, await response.text()
            yield response.content.iter_any()


def of_kind(messages: list[Message], kind: str) -> list[Message]:
    return [message for message in messages if message["kind"] == kind]


def incidents(messages: list[Message]) -> list[Message]:
    """The payload of every incident's message."""
    return [message["payload"]["incident"] for message in of_kind(messages, "incident")]


def is_done(incident: Message) -> bool:
    """Whether the investigation is over and its result is shown."""
    return incident["stage"] == "done" and incident["findings"]["explanation"] is not None
