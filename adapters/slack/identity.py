"""The identity of the bot in its workspace, and that of its posts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slack_bolt.authorization import AuthorizeResult
from slack_bolt.authorization.async_authorize import AsyncAuthorize
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.client import call


class BotIdentity(AsyncAuthorize):
    """Looks up the bot's identity once.

    Unlike Bolt's default, it raises if Slack does not answer, so no event is dropped.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        super().__init__()
        self._client = client
        self._known: AuthorizeResult | None = None

    async def __call__(self, **_: Any) -> AuthorizeResult:
        """Return the authorization. Raises ChatUnavailable."""
        if self._known is None:
            answer = await call("auth.test", self._client.auth_test())
            self._known = AuthorizeResult(
                enterprise_id=answer.get("enterprise_id"),
                team_id=answer.get("team_id"),
                bot_user_id=answer["user_id"],
                bot_id=answer.get("bot_id"),
                bot_token=self._client.token,
            )
        return self._known

    async def user_id(self) -> str:
        """Return the bot's user id. Raises ChatUnavailable."""
        return (await self()).bot_user_id or ""


async def names_of(client: AsyncWebClient, user: str) -> tuple[str, ...]:
    """Return a person's names in Slack, with the displayed name first. Raises the errors of `call`."""
    user_info = (await call("users.info", client.users_info(user=user))).get("user", {})
    profile = user_info.get("profile") or {}
    names = (profile.get("display_name"), user_info.get("real_name"), user_info.get("name"))
    return tuple(name for name in names if isinstance(name, str) and name)


EVENT_TYPE = "plumbline_post"


def metadata(intent: str) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"intent": intent}}


def intent_of(message: Mapping[str, Any]) -> str | None:
    kept = message.get("metadata") or {}
    return kept.get("event_payload", {}).get("intent") if kept.get("event_type") == EVENT_TYPE else None
