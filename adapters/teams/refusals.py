"""The operations of an SDK of Teams, and the errors for its refusals."""

from __future__ import annotations

import re
from typing import Literal

from adapters.http import may_pass
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

Operation = Literal["send_to_conversation", "update_activity", "delete_activity"]  # as both SDKs call them


class MessageTooLarge(Undeliverable):
    """The message is too large for Teams."""


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
