"""The transport of cards to Teams, through the configured SDK, which is imported when it is first needed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from adapters.teams.connector import AccessToken
from adapters.teams.elements import Card
from adapters.teams.sdk import Sdk, SdkName, StreamPhase, StreamUpdate
from core.model.errors import ChatUnavailable, ConfigurationError, PlumblineError


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
        sdk = await self.opened()
        return _id_of(await self._call(service_url, "send_to_conversation", conversation_id, _activity(sdk, card)))

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        """Replace the card of a message."""
        sdk = await self.opened()
        await self._call(service_url, "update_activity", conversation_id, message_id, _activity(sdk, card))

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        """Show an update of a streamed message, and return the id of its stream."""
        sdk = await self.opened()
        answer = await self._call(service_url, "send_to_conversation", conversation_id, _streamed(sdk, update))
        return update.stream_id or _id_of(answer)

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        """Delete a message."""
        await self._call(service_url, "delete_activity", conversation_id, message_id)

    async def close(self) -> None:
        async with self._loading:  # a load that has begun ends first
            self._is_closed = True
            if self._sdk is not None:
                await self._sdk.close()

    async def _call(self, service_url: str, *arguments: Any) -> Any:
        token = await self._token.get() if self._token else ""
        sdk = await self.opened()
        return await sdk.call(service_url, token, *arguments)


def open_transport(name: SdkName, token: AccessToken | None) -> Transport:
    return Transport(_load_botbuilder if name == "botbuilder" else _load_agents, token)


def _load_botbuilder() -> Sdk:
    try:
        from adapters.teams.sdk_botbuilder import Botbuilder
    except ModuleNotFoundError:
        raise ConfigurationError("TEAMS_SDK=botbuilder needs botbuilder: install plumbline[botbuilder].") from None

    return Botbuilder()


def _load_agents() -> Sdk:
    from adapters.teams.sdk_agents import Agents

    return Agents()


def _activity(sdk: Sdk, card: Card) -> Any:
    activity = sdk.MessageFactory.attachment(sdk.CardFactory.adaptive_card(card.content))
    activity.summary = card.summary
    return _with_metadata(activity, sdk, card, [])


def _streamed(sdk: Sdk, update: StreamUpdate) -> Any:
    activity = sdk.Activity(type="message" if update.phase is StreamPhase.FINAL else "typing")
    activity.text, activity.text_format = update.text, "plain"
    if update.card is None:
        activity.entities = [sdk.entity(update.entity)]
        return activity
    activity.attachments = [sdk.CardFactory.adaptive_card(update.card.content)]
    return _with_metadata(activity, sdk, update.card, [update.entity])


def _with_metadata(activity: Any, sdk: Sdk, card: Card, entities: list[dict[str, Any]]) -> Any:
    """Return the activity with these entities, and the entities and channel data of the card."""
    if described := [*entities, *card.entities]:
        activity.entities = [sdk.entity(each) for each in described]
    if card.channel_data is not None:
        activity.channel_data = card.channel_data
    return activity


def _id_of(answer: object) -> str:
    message_id = getattr(answer, "id", None)
    if not message_id:
        raise PlumblineError("Teams accepted the message but did not return its id.")
    return str(message_id)
