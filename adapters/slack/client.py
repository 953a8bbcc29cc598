"""A client of Slack's Web API, and the translation of its errors."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import AsyncRateLimitErrorRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from core.model.errors import ChatBusy, ChatUnavailable, MessageNotFound, PlumblineError, Undeliverable

TIMEOUT = 10  # seconds per call
LONGEST_PAUSE = 3.0  # seconds of Retry-After that are waited for here; a longer pause is left to the workflow

GONE = frozenset({"message_not_found", "thread_not_found"})

WRITES = frozenset({"chat.postMessage", "chat.update"})

NEVER = {
    "cant_update_message": "post it anew",
    "channel_not_found": "check the channel's id, and invite the bot if the channel is private",
    "invalid_blocks": "report it as an error of Plumbline",
    "invalid_blocks_format": "report it as an error of Plumbline",
    "is_archived": "unarchive the channel or take it out of the routes",
    "msg_blocks_too_long": "report it as an error of Plumbline",
    "msg_too_long": "report it as an error of Plumbline",
    "no_text": "report it as an error of Plumbline",
    "not_in_channel": "invite the bot to the channel",
    "restricted_action": "let apps post in the channel",
    "restricted_action_read_only_channel": "let apps post in the channel",
    "restricted_action_thread_only_channel": "let apps post in the channel",
}
"""Why a message is not taken however often it is sent, and what a person can do."""

REMEDIES = {
    "account_inactive": "install the app again",
    "channel_not_found": "check the channel's id, and invite the bot if the channel is private",
    "invalid_auth": "check SLACK_BOT_TOKEN",
    "is_archived": "unarchive the channel or take it out of the routes",
    "missing_scope": "install the app again with the scopes of its manifest",
    "not_authed": "set SLACK_BOT_TOKEN",
    "not_in_channel": "invite the bot to the channel",
    "token_expired": "install the app again",
    "token_revoked": "install the app again",
}


class _ShortRateLimitRetryHandler(AsyncRateLimitErrorRetryHandler):
    """Waits for short pauses that Slack requests. The SDK's own handler waits for any duration."""

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        pause = _retry_after(response.headers) if response is not None and response.status_code == 429 else None
        return pause is not None and pause <= LONGEST_PAUSE


def slack_client(bot_token: str, api_url: str, session: aiohttp.ClientSession | None = None) -> AsyncWebClient:
    """Return a client that waits for short rate limits and retries nothing else.

    A lost connection is not retried here: Slack may have posted the message, and only the caller can look for it. With
    `session`, connections are kept open between calls; the caller closes it.
    """
    return AsyncWebClient(
        bot_token,
        base_url=api_url,
        timeout=TIMEOUT,
        session=session,
        retry_handlers=[_ShortRateLimitRetryHandler(max_retry_count=1)],
    )


async def call(method: str, response: Awaitable[AsyncSlackResponse]) -> dict[str, Any]:
    """Return the body of Slack's response.

    Raises ChatUnavailable if Slack does not answer, refuses, or asks to wait, and MessageNotFound if the message or
    thread is gone.
    """
    try:
        answered = await response
    except SlackApiError as error:
        raise _translated(method, error) from error
    except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError, AttributeError) as error:
        # AttributeError: the SDK fails on plain text, such as a proxy's error page.
        reason = str(error) or type(error).__name__
        raise ChatUnavailable(f"Slack did not answer {method} ({reason}): it is tried again.") from error
    return answered.data if isinstance(answered.data, dict) else {}


def error_code(error: PlumblineError) -> str:
    """Return Slack's code of the error that caused this one; empty if there is none."""
    response = getattr(error.__cause__, "response", None)
    body = getattr(response, "data", None)
    code = body.get("error", "") if isinstance(body, dict) else ""
    return code if isinstance(code, str) else ""


def _translated(method: str, error: SlackApiError) -> PlumblineError:
    # The response is the SDK's own, or aiohttp's if the body was no JSON.
    body = getattr(error.response, "data", None)
    code = body.get("error", "") if isinstance(body, dict) else ""
    if code in GONE:
        return MessageNotFound(f"Slack has no such message any more ({method}: {code}): somebody deleted it.")
    if method in WRITES and code in NEVER:
        return Undeliverable(f"Slack refused {method} with {code}: {NEVER[code]}.")
    if code in REMEDIES:
        return ChatUnavailable(f"Slack refused {method} with {code}: {REMEDIES[code]}.")
    status = getattr(error.response, "status_code", None) or getattr(error.response, "status", "no status")
    reason = code or f"HTTP {status}"
    if status == 429:
        return ChatBusy(f"Slack asks to wait with {method}: it is tried again.", _retry_after(_headers(error)))
    return ChatUnavailable(f"Slack refused {method} with {reason}: it is tried again.", _retry_after(_headers(error)))


def _headers(error: SlackApiError) -> Any:
    return getattr(error.response, "headers", None) or {}


def _retry_after(headers: Any) -> float | None:
    """Return Slack's Retry-After in seconds. aiohttp has one value, the SDK's retry state a list."""
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
    text = str(value[0] if isinstance(value, list) and value else value)
    return float(text) if text.isascii() and text.isdigit() else None
