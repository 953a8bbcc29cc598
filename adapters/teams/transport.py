"""The transport of cards to Teams, through an SDK of Microsoft, which is imported when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol

from adapters.teams.connector import AccessToken
from adapters.teams.elements import ADAPTIVE_CARD, Card
from adapters.teams.refusals import Operation
from core.model.errors import ChatUnavailable, ConfigurationError, PlumblineError

SdkName = Literal["agents", "botbuilder"]


class StreamPhase(StrEnum):
    """The kind of update of a streamed message: a sign of work, or all of it."""

    INFORMATIVE = "informative"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """One update of a message that is streamed into a personal chat. The first has no `stream_id`, and gets one.

    `text` is everything so far; `sequence` counts from 1. `card` is shown below the text of the last update.
    """

    phase: StreamPhase
    text: str
    sequence: int
    stream_id: str = ""
    card: Card | None = None

    @property
    def entity(self) -> dict[str, Any]:
        """Return the entity that tells Teams about the stream: https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux"""
        numbered = {"streamSequence": self.sequence} if self.phase is not StreamPhase.FINAL else {}
        identity = {"streamId": self.stream_id} if self.stream_id else {}
        return {"type": "streaminfo", "streamType": str(self.phase), **numbered, **identity}


class Sdk(Protocol):
    """A client of connector services."""

    async def call(
        self, service_url: str, token: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> Any:
        """Call a connector service with the JSON of an activity, if any, and return its answer or None.

        Raises ChatUnavailable if it cannot be reached, and the result of `failure` for any status but success.
        """
        ...

    async def close(self) -> None: ...


class Transport:
    """Sends requests to connector services. The SDK is loaded with the first message, which takes a quarter of a second.

    Raises ChatUnavailable when Teams does not answer or asks to wait (408, 412, 429, 5xx), MessageNotFound for 404,
    ConfigurationError when the bot may not post there (401, 403), MessageTooLarge for 413, Undeliverable when it
    refuses the message.
    """

    def __init__(self, load: Callable[[], Sdk], token: AccessToken | None) -> None:
        """Open the transport. Without a token, none is sent, as the playground expects."""
        self._load = load
        self._token = token
        self._loading = asyncio.Lock()
        self._sdk: Sdk | None = None
        self._is_closed = False

    async def opened(self) -> Sdk:
        """Return the SDK, which is loaded in a thread. Raises ChatUnavailable after `close`."""
        async with self._loading:
            if self._is_closed:  # a session that is opened now would stay open
                raise ChatUnavailable("The bot is stopping and sends nothing more to Teams.")
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._load)
            return self._sdk

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        """Post a card, and return the id of the message."""
        activity = _card_message(card) | {"summary": card.summary}
        return _id_of(await self._call(service_url, "send_to_conversation", conversation_id, activity=activity))

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        """Replace the card of a message."""
        activity = _card_message(card) | {"summary": card.summary}
        await self._call(service_url, "update_activity", conversation_id, message_id, activity=activity)

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        """Show an update of a streamed message, and return the id of its stream."""
        if update.card is None:
            kind = "message" if update.phase is StreamPhase.FINAL else "typing"
            activity = {"type": kind, "entities": [update.entity]}
        else:
            activity = _card_message(update.card, update.entity)
        activity |= {"text": update.text, "textFormat": "plain"}
        answer = await self._call(service_url, "send_to_conversation", conversation_id, activity=activity)
        return update.stream_id or _id_of(answer)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        """Delete a message."""
        await self._call(service_url, "delete_activity", conversation_id, message_id)

    async def close(self) -> None:
        async with self._loading:  # a load that has begun ends first
            self._is_closed = True
            if self._sdk is not None:
                await self._sdk.close()

    async def _call(
        self, service_url: str, operation: Operation, *ids: str, activity: dict[str, Any] | None = None
    ) -> Any:
        token = await self._token.get() if self._token else ""
        return await (await self.opened()).call(service_url, token, operation, *ids, activity=activity)


def open_transport(name: SdkName, token: AccessToken | None) -> Transport:
    def load() -> Sdk:
        if name == "agents":
            from adapters.teams.sdk_agents import Agents

            return Agents()
        try:
            from adapters.teams.sdk_botbuilder import Botbuilder
        except ModuleNotFoundError:
            raise ConfigurationError("TEAMS_SDK=botbuilder needs botbuilder: install plumbline[botbuilder].") from None

        return Botbuilder()

    return Transport(load, token)


def _card_message(card: Card, *entities: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the card, and with these entities and those of the card."""
    message: dict[str, Any] = {
        "type": "message",
        "attachments": [{"contentType": ADAPTIVE_CARD, "content": card.content}],
    }
    if described := [*entities, *card.entities]:
        message["entities"] = described
    if card.channel_data is not None:
        message["channelData"] = card.channel_data
    return message


def _id_of(answer: object) -> str:
    message_id = getattr(answer, "id", None)
    if not message_id:
        raise PlumblineError("Teams accepted the message but did not return its id.")
    return str(message_id)
