"""A client of Slack's Web API, the translation of its errors, and the identity of the bot in its workspace."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from typing import Any

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.request import HttpRequest
from slack_sdk.http_retry.response import HttpResponse
from slack_sdk.http_retry.state import RetryState
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from adapters.http import Retries, may_pass, proxy_for, retry_after
from core.model.errors import ChatBusy, ChatClosed, ChatUnavailable, MessageNotFound, PlumblineError, Undeliverable

TIMEOUT = 10  # seconds for one call
MAX_PAGES = 10_000  # of one list
SHORT = Retries(attempts=2, longest_pause=3.0)  # a longer pause is left to the workflow

GONE = frozenset({"message_not_found", "thread_not_found"})

WRITES = frozenset({"chat.postEphemeral", "chat.postMessage", "chat.update"})

NEVER = {
    "cant_update_message": "post it again",
    "invalid_blocks": "report it as an error of Plumbline",
    "invalid_blocks_format": "report it as an error of Plumbline",
    "msg_blocks_too_long": "report it as an error of Plumbline",
    "msg_too_long": "report it as an error of Plumbline",
    "no_text": "report it as an error of Plumbline",
}
"""Errors with which Slack refuses a message however often it is sent, and what a person can do."""

REMEDIES = {
    "access_denied": "install the app again",
    "account_inactive": "install the app again",
    "channel_not_found": "check the channel's id, and invite the bot if the channel is private",
    "invalid_auth": "check the token",
    "is_archived": "unarchive the channel or take it out of the routes",
    "team_access_not_granted": "install the app in the workspace",
    "missing_scope": "install the app again with the scopes of its manifest",
    "not_authed": "set the token",
    "not_in_channel": "invite the bot to the channel",
    "org_login_required": "wait until the workspace has moved to its organisation",
    "restricted_action": "let apps post in the channel",
    "restricted_action_read_only_channel": "let apps post in the channel",
    "restricted_action_thread_only_channel": "let apps post in the channel",
    "team_not_found": "install the app again",
    "token_expired": "make an app without token rotation, because Plumbline does not renew tokens",
    "token_revoked": "install the app again",
}


class _RetryHandler(AsyncRetryHandler):
    """Retries within the limits of `retries`; the SDK's own handlers sleep as long as Slack asks.

    Calls that only read are retried after every temporary failure; others only after a rate limit.
    """

    def __init__(self, retries: Retries, *, only_reads: bool) -> None:
        super().__init__(retries.attempts)
        self._retries = retries
        self._only_reads = only_reads

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> bool:
        return self._pause(state, response, error) is not None

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        request: HttpRequest,
        response: HttpResponse | None = None,
        error: Exception | None = None,
    ) -> None:
        state.next_attempt_requested = True
        await self._retries.sleep(self._pause(state, response, error) or 0.0)
        state.increment_current_attempt()

    def _pause(self, state: RetryState, response: HttpResponse | None, error: Exception | None) -> float | None:
        wish = retry_after(response.headers) if response is not None else None
        if self._only_reads:
            again = (
                isinstance(error, aiohttp.ClientError | TimeoutError)
                if response is None
                else may_pass(response.status_code)
            )
        else:
            again = response is not None and response.status_code == 429 and wish is not None
        return self._retries.pause(state.current_attempt + 1, wish) if again else None


def slack_client(
    token: str,
    api_url: str,
    session: aiohttp.ClientSession | None = None,
    retries: Retries | None = None,
    *,
    only_reads: bool = False,
) -> AsyncWebClient:
    """Return a client that waits out rate limits; if it only reads, it retries every temporary failure.

    A lost connection is not retried for others: Slack may have posted the message, and only the caller can look for it.
    With `session`, connections are kept open between calls; the caller closes it.
    """
    handler = _RetryHandler(retries or SHORT, only_reads=only_reads)
    client = AsyncWebClient(token, api_url, timeout=TIMEOUT, session=session, retry_handlers=[handler])
    client.proxy = proxy_for(api_url)  # it would take every proxy of the environment, and no exemption
    return client


async def call(method: str, response: Awaitable[AsyncSlackResponse]) -> dict[str, Any]:
    """Return the body of Slack's answer.

    Raises ChatUnavailable if Slack does not answer, refuses, or asks to wait, and MessageNotFound if the message or
    thread is gone.
    """
    try:
        answered = await _answer(method, response)
    except SlackApiError as error:
        raise _translated(method, error) from error
    return answered.data if isinstance(answered.data, dict) else {}


async def ask(client: AsyncWebClient, method: str, **arguments: str) -> tuple[dict[str, Any], Mapping[str, str]]:
    """Return the body and headers of Slack's answer, even if Slack refuses. Raises ChatUnavailable without an answer."""
    try:
        answered = await _answer(method, client.api_call(method, data=arguments))
    except SlackApiError as error:
        if not isinstance(error.response, AsyncSlackResponse) or error.response.status_code != 200:
            raise _translated(method, error) from error
        answered = error.response
    return (answered.data if isinstance(answered.data, dict) else {}), answered.headers


async def _answer(method: str, response: Awaitable[AsyncSlackResponse]) -> AsyncSlackResponse:
    try:
        return await response
    except (aiohttp.ClientError, TimeoutError, UnicodeDecodeError, AttributeError) as error:
        # AttributeError: the SDK fails on plain text, such as a proxy's error page.
        reason = str(error) or type(error).__name__
        raise ChatUnavailable(f"Slack did not answer {method} ({reason}). Plumbline tries again.") from error


async def pages(
    client: AsyncWebClient, method: str, arguments: Mapping[str, Any], at_most: int = MAX_PAGES
) -> AsyncIterator[dict[str, Any]]:
    """Yield the pages of a method that lists something. Raises the errors of `call`, also for a repeated page."""
    cursor, before = "", set[str]()
    for _ in range(at_most):
        parameters = dict(arguments) | ({"cursor": cursor} if cursor else {})
        page = await call(method, client.api_call(method, http_verb="GET", params=parameters))
        yield page
        cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
        if not cursor:
            return
        if cursor in before:
            raise ChatUnavailable(f"Slack returned the same page of {method} twice.")
        before.add(cursor)


def error_code(error: PlumblineError) -> str:
    """Return Slack's name for the error that caused this one; empty if Slack gave none."""
    return _code(getattr(error.__cause__, "response", None))


def refusal_code(error: PlumblineError) -> str:
    """Return Slack's name for the error if Slack answered and refused; empty if it did not answer, or asked to wait."""
    response = getattr(error.__cause__, "response", None)
    return _code(response) if getattr(response, "status_code", None) == 200 else ""


def _code(response: object) -> str:
    body = getattr(response, "data", None)
    code = body.get("error", "") if isinstance(body, dict) else ""
    return code if isinstance(code, str) else ""


def _translated(method: str, error: SlackApiError) -> PlumblineError:
    # The SDK attaches its own response, or aiohttp's if the body was not JSON.
    code = _code(error.response)
    if code in GONE:
        return MessageNotFound(f"Slack no longer has this message ({method}: {code}). Somebody deleted it.")
    # What one member alone may not see, for whatever reason, is for everybody.
    if method in WRITES and (code in NEVER or (method == "chat.postEphemeral" and code not in ("", "ratelimited"))):
        return Undeliverable(f"Slack refused {method} with {code}: {NEVER.get(code, 'show it to everybody')}.")
    if code in REMEDIES:
        kind = ChatClosed if method in WRITES else ChatUnavailable
        return kind(f"Slack refused {method} with {code}: {REMEDIES[code]}.")
    status = getattr(error.response, "status_code", None) or getattr(error.response, "status", "no status")
    if status == 429:
        return ChatBusy(
            f"Slack asked to wait before {method}. Plumbline tries again.",
            retry_after(getattr(error.response, "headers", None) or {}),
        )
    return ChatUnavailable(
        f"Slack refused {method} with {code or f'HTTP {status}'}. Plumbline tries again.",
        retry_after(getattr(error.response, "headers", None) or {}),
    )


class BotIdentity(AsyncAuthorize):
    """Looks up the bot's identity once.

    Unlike Bolt's default, it raises if Slack does not answer, so no event is dropped.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        super().__init__()
        self._client = client
        self._answer: dict[str, Any] = {}

    async def __call__(self, **_: Any) -> AuthorizeResult:
        """Return the authorization. Raises ChatUnavailable."""
        answer = await self.answer()
        return AuthorizeResult(
            enterprise_id=answer.get("enterprise_id"),
            team_id=answer.get("team_id"),
            bot_user_id=answer["user_id"],
            bot_id=answer.get("bot_id"),
            bot_token=self._client.token,
        )

    async def answer(self) -> dict[str, Any]:
        """Return Slack's answer to `auth.test`. Raises ChatUnavailable."""
        self._answer = self._answer or await call("auth.test", self._client.auth_test())
        return self._answer

    async def user_id(self) -> str:
        """Return the bot's user id. Raises ChatUnavailable."""
        return (await self()).bot_user_id or ""


async def names_of(client: AsyncWebClient, user: str) -> tuple[str, ...]:
    """Return a person's names in Slack, with the displayed name first. Raises the errors of `call`."""
    user_info = (await call("users.info", client.users_info(user=user))).get("user", {})
    profile = user_info.get("profile") or {}
    return tuple(
        name
        for name in (profile.get("display_name"), user_info.get("real_name"), user_info.get("name"))
        if isinstance(name, str) and name
    )


EVENT_TYPE = "plumbline_post"


def metadata(intent: str) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"intent": intent}}


def intent_of(message: Mapping[str, Any]) -> str | None:
    kept = message.get("metadata") or {}
    return kept.get("event_payload", {}).get("intent") if kept.get("event_type") == EVENT_TYPE else None
