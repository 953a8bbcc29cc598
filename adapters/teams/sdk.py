"""The port for an SDK of Teams, the updates that are sent through it, and the errors for its answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol

from adapters.http import may_pass
from adapters.teams.elements import Card
from core.model.errors import (
    ChatBusy,
    ChatUnavailable,
    ConfigurationError,
    MessageNotFound,
    PlumblineError,
    StoppedByPerson,
    Undeliverable,
)

# https://learn.microsoft.com/microsoftteams/platform/bots/streaming-ux#error-codes
CANCELLED = re.compile(r"stream was cancell?ed by user", re.IGNORECASE)

TIMEOUT = 30  # seconds; long, because a message whose answer is lost may be posted twice

SdkName = Literal["botbuilder", "agents"]
Operation = Literal["send_to_conversation", "update_activity", "delete_activity"]  # as both SDKs call them


class MessageTooLarge(Undeliverable):
    """The message is too large for Teams."""


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
    """The differences between the SDKs. Each has its own classes for messages, of the same shape."""

    Activity: Any
    CardFactory: Any
    MessageFactory: Any

    def entity(self, fields: dict[str, Any]) -> Any:
        """Return an entity of an activity with exactly these fields."""
        ...

    async def call(self, service_url: str, token: str, operation: Operation, *arguments: Any) -> Any:
        """Call a connector service, and return its answer or None.

        Raises ChatUnavailable if it cannot be reached, and the result of `failure` for any status but success.
        """
        ...

    async def close(self) -> None: ...


def failure(status: int, retry_after: float | None, detail: str) -> PlumblineError:
    """Return the error for a response other than success."""
    if status == 429:
        return ChatBusy("Teams asked to wait (HTTP 429).", retry_after)
    if may_pass(status):
        return ChatUnavailable(f"Teams did not accept the message (HTTP {status}).", retry_after)
    if status == 404:
        return MessageNotFound("Teams has no such conversation or message, or it was deleted.")
    if status == 413:
        return MessageTooLarge("The message is too large for Teams.")
    if status == 403 and CANCELLED.search(detail):
        return StoppedByPerson("Somebody stopped the message in Teams.")
    if status in (401, 403):
        return ConfigurationError(
            f"Teams does not let the bot post there (HTTP {status}): install the app in that team or chat, "
            "and check TEAMS_APP_ID, TEAMS_APP_PASSWORD and TEAMS_TENANT_ID."
        )
    return Undeliverable(f"Teams refused the message (HTTP {status}): {detail[:200]}")
