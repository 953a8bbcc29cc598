"""The port for sending cards to Teams, with one adapter per SDK. Only the chosen one is imported."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Literal, Protocol

from adapters.teams.access_token import AccessToken
from adapters.teams.elements import Card
from core.model.errors import (
    ChatBusy,
    ChatUnavailable,
    ConfigurationError,
    MessageNotFound,
    PlumblineError,
    Undeliverable,
)

TIMEOUT = 30  # seconds; a post may succeed although its response is lost, so waiting is better than repeating

Sdk = Literal["botbuilder", "agents"]


class MessageTooLarge(Undeliverable):
    """A message exceeds the size limit of Teams."""


class StreamPhase(StrEnum):
    """The kind of a streaming update: a waiting sign, a part of the text, or all of it."""

    INFORMATIVE = "informative"
    STREAMING = "streaming"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """One update of a streamed message. The first has no `stream_id`, and receives one.

    `text` is everything so far; `sequence` counts from 1. `card` is shown below the text of the last update.
    """

    phase: StreamPhase
    text: str
    sequence: int
    stream_id: str = ""
    card: Card | None = None

    @property
    def entity(self) -> dict[str, Any]:
        """Return the stream entity: https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux"""
        numbered = {"streamSequence": self.sequence} if self.phase is not StreamPhase.FINAL else {}
        known = {"streamId": self.stream_id} if self.stream_id else {}
        return {"type": "streaminfo", "streamType": str(self.phase), **numbered, **known}


class Transport(Protocol):
    """Sends requests to a connector service.

    Raises ChatUnavailable if it does not answer or asks to wait (408, 412, 429, 5xx), MessageNotFound for 404,
    ConfigurationError if the bot may not post there (401, 403), MessageTooLarge for 413, and Undeliverable if it
    refuses the message.
    """

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        """Post a card, and return the id of the message."""
        ...

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        """Replace the card of a message."""
        ...

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        """Send an update of a streamed message, and return the id of its stream."""
        ...

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        """Delete a message."""
        ...

    async def close(self) -> None: ...


def open_transport(sdk: Sdk, token: AccessToken | None) -> Transport:
    """Return the transport of the chosen SDK. Without a token it sends none, as the playground expects."""
    if sdk == "botbuilder":
        from adapters.teams.transport_botbuilder import BotbuilderTransport

        return BotbuilderTransport(token)
    from adapters.teams.transport_agents import AgentsTransport

    return AgentsTransport(token)


def failure(status: int, retry_after: str | None, detail: str) -> PlumblineError:
    """Return the error for an unsuccessful response."""
    if status == 429:
        return ChatBusy("Teams asks to wait (HTTP 429).", _seconds(retry_after))
    if status in (408, 412) or (status >= 500 and status != 501):  # 501 (not implemented) is permanent
        return ChatUnavailable(f"Teams did not take the message now (HTTP {status}).", _seconds(retry_after))
    if status == 404:
        return MessageNotFound("Teams has no such conversation or message, or it was deleted.")
    if status == 413:
        return MessageTooLarge("The message is too large for Teams.")
    if status in (401, 403):
        return ConfigurationError(
            f"Teams does not let the bot speak there (HTTP {status}): install the app in that team or chat, "
            "and check TEAMS_APP_ID, TEAMS_APP_PASSWORD and TEAMS_TENANT_ID."
        )
    return Undeliverable(f"Teams refused the message (HTTP {status}): {detail[:200]}")


def _seconds(retry_after: str | None) -> float | None:
    """Return Retry-After in seconds; the header has seconds or a date (RFC 9110, section 10.2.3)."""
    if not retry_after:
        return None
    try:
        if retry_after.strip().isdigit():
            return float(retry_after)
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
