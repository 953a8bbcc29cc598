"""How a card leaves for Teams: one small port, two SDKs behind it. Only the chosen one is imported."""

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

TIMEOUT = 30  # seconds; a message may stand in the chat although the answer was lost, so better wait than repeat

Sdk = Literal["botbuilder", "agents"]


class MessageTooLarge(Undeliverable):
    """The message is too large for Teams."""


class StreamPhase(StrEnum):
    """The kind of update of a streamed message: a sign of work, or all of it."""

    INFORMATIVE = "informative"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StreamUpdate:
    """One update of a message that is streamed into a personal chat. The first has no `stream_id`, and gets one.

    `text` is everything so far; `sequence` counts from 1. `card` stands below the text of the last update.
    """

    phase: StreamPhase
    text: str
    sequence: int
    stream_id: str = ""
    card: Card | None = None

    @property
    def entity(self) -> dict[str, Any]:
        """How Teams is told: https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux"""
        numbered = {"streamSequence": self.sequence} if self.phase is not StreamPhase.FINAL else {}
        known = {"streamId": self.stream_id} if self.stream_id else {}
        return {"type": "streaminfo", "streamType": str(self.phase), **numbered, **known}


class Transport(Protocol):
    """Speaks to a connector service.

    Raises ChatUnavailable when it does not answer or asks to wait (408, 412, 429, 5xx), MessageNotFound for 404,
    ConfigurationError when the bot may not speak there (401, 403), MessageTooLarge for 413, Undeliverable when it
    refuses the message.
    """

    async def send(self, service_url: str, conversation_id: str, card: Card) -> str:
        """Post a card, and return the id of the message."""
        ...

    async def update(self, service_url: str, conversation_id: str, message_id: str, card: Card) -> None:
        """Replace the card of a message."""
        ...

    async def stream(self, service_url: str, conversation_id: str, update: StreamUpdate) -> str:
        """Show an update of a streamed message, and return the id of its stream."""
        ...

    async def delete(self, service_url: str, conversation_id: str, message_id: str) -> None:
        """Take a message away."""
        ...

    async def close(self) -> None: ...


def open_transport(sdk: Sdk, token: AccessToken | None) -> Transport:
    """The transport of the chosen SDK; without a token it speaks without one, as the playground expects."""
    if sdk == "botbuilder":
        from adapters.teams.transport_botbuilder import BotbuilderTransport

        return BotbuilderTransport(token)
    from adapters.teams.transport_agents import AgentsTransport

    return AgentsTransport(token)


def failure(status: int, retry_after: str | None, detail: str) -> PlumblineError:
    """Return the error that a response other than success stands for."""
    if status == 429:
        return ChatBusy("Teams asks to wait (HTTP 429).", _seconds(retry_after))
    if status in (408, 412) or (status >= 500 and status != 501):  # what is not implemented never will be
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
    """Retry-After holds seconds or a date (RFC 9110, section 10.2.3)."""
    if not retry_after:
        return None
    try:
        if retry_after.strip().isdigit():
            return float(retry_after)
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
