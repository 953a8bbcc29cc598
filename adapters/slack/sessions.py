"""Agent sessions: Slack itself shows that the bot works in a thread, with a stop button of its own.

Only an app that is an agent has them (`agent_view` in its manifest). https://docs.slack.dev/ai/agent-sessions
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.blocks import ACTION_PREFIX, Block
from adapters.slack.client import BotIdentity, call, error_code, pages
from adapters.slack.payloads import SessionStopped, parse
from adapters.slack.questions import moment
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound
from core.model.feedback import Feedback
from core.model.messages import ButtonAction
from core.ports import Inbox

LATEST = 3_600.0  # seconds before the press in which a message with a button was posted
PAGE = 200  # messages per request
MAX_PAGES = 2
STOP = f"{ACTION_PREFIX}{ButtonAction.STOP}"
PROCESSING, ACTIVE = "processing", "active"

# Error codes for a method that Slack lacks or the app may not use. It is not called again.
NEVER = frozenset(
    {
        "access_denied",
        "deprecated",
        "feature_not_enabled",
        "missing_scope",
        "not_allowed",
        "not_allowed_token_type",
        "not_authorized",
        "unknown_method",
    }
)

log = structlog.get_logger()


def stop_ids(blocks: Iterable[Block]) -> list[str]:
    """Return the ids of what the “Stop” buttons of a message stop."""
    elements = (element for block in blocks if block.get("type") == "actions" for element in block["elements"])
    return [element["value"] for element in elements if element.get("action_id") == STOP]


class AgentSessions:
    """Shows threads as being worked in, as long as a message in them has a “Stop” button.

    Work goes on without it, so a failure is only logged.
    """

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._is_available = True  # until Slack refuses
        self._working: dict[Place, frozenset[str]] = {}  # the messages in a thread with such a button

    async def update(self, reference: MessageReference, blocks: Iterable[Block] = ()) -> None:
        """Show what a message of a thread says now; without blocks, it was deleted."""
        place = reference.place
        before = self._working.get(place, frozenset())
        now = before | {reference.message_id} if stop_ids(blocks) else before - {reference.message_id}
        if now:
            self._working[place] = now
        else:
            self._working.pop(place, None)
        if place.thread is not None and bool(now) is not bool(before):
            await self.set_status(place.channel, place.thread, PROCESSING if now else ACTIVE)

    async def set_status(self, channel: str, thread: str, status: str) -> None:
        if not self._is_available:
            return
        setting = self._client.agents_sessions_setStatus(channel_id=channel, thread_ts=thread, status=status)
        try:
            await call("agents.sessions.setStatus", setting)
        except (ChatUnavailable, MessageNotFound) as error:
            self._is_available = error_code(error) not in NEVER
            log.info("no agent session in Slack", reason=str(error))


class SessionStops:
    """Passes a press of Slack's stop button to the inbox, as one of every “Stop” in the thread."""

    def __init__(self, inbox: Inbox, identity: BotIdentity, client: AsyncWebClient) -> None:
        self._inbox = inbox
        self._identity = identity
        self._client = client
        self._sessions = AgentSessions(client)

    def listen(self, app: AsyncApp) -> None:
        app.event("agent_session_stopped")(self._on_stop)

    async def _on_stop(self, event: dict[str, Any]) -> None:
        stopped = parse(SessionStopped, event)
        place = Place(Platform.SLACK, stopped.channel, stopped.thread_ts)
        for number, stop_id in enumerate(await self._offered(stopped)):
            await self._inbox.press(
                Feedback(
                    id=f"slack:{stopped.channel}:{stopped.event_ts}:{number}",
                    verdict=ButtonAction.STOP,
                    subject=stop_id,
                    person=Person(Platform.SLACK, stopped.user),
                    place=place,
                    at=moment(stopped.event_ts),
                )
            )
        # Slack leaves it to the app, also where nobody works any more.
        await self._sessions.set_status(stopped.channel, stopped.thread_ts, ACTIVE)

    async def _offered(self, stopped: SessionStopped) -> list[str]:
        """Return what the bot's own messages of the thread offer to stop: whichever replica works on it, they say so."""
        bot = await self._identity.user_id()
        since = f"{float(stopped.event_ts) - LATEST:.6f}"  # Slack adds the first message of the thread
        options = {"channel": stopped.channel, "ts": stopped.thread_ts, "oldest": since, "limit": PAGE}
        return [
            stop_id
            async for page in pages(self._client, "conversations.replies", options, MAX_PAGES)
            for message in page.get("messages", ())
            if message.get("user") == bot
            for stop_id in stop_ids(message.get("blocks") or ())
        ]
