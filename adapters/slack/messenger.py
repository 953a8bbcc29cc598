"""The Messenger of Slack, and agent sessions.

Slack itself shows in a session that the bot works in a thread, with a stop button of its own.

Only an app that is an agent has them (`agent_view` in its manifest). https://docs.slack.dev/ai/agent-sessions
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import structlog
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.blocks import ACTION_PREFIX, Block, Rendered
from adapters.slack.client import BotIdentity, call, error_code, intent_of, metadata, pages
from adapters.slack.payloads import SessionStopped, parse
from adapters.slack.questions import moment
from adapters.slack.render import render
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, Undeliverable
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, Message, is_lifted
from core.ports import Inbox

PAGE = 200  # messages per request
PERSON = ("U", "W")  # prefixes of people's ids
MAX_SEARCHED_PAGES = 5  # searched for a post that may have been made before a crash
MAX_LINKS = 1_000  # message addresses cached
SIGN_INTERVAL = 5.0  # seconds between statuses
WORKING = "is at work …"  # shown after the bot's name

REFUSED_BLOCKS = frozenset({"invalid_blocks", "invalid_blocks_format"})

log = structlog.get_logger()


class SlackMessenger:
    """Implements `core.ports.Messenger` and `core.ports.SignallingMessenger`."""

    def __init__(self, client: AsyncWebClient) -> None:
        self._client = client
        self._sessions = AgentSessions(client)
        self._has_newest = True  # blocks, until Slack refuses them
        self._has_status = True  # until Slack refuses it
        self._waited_for: set[Place] = set()  # threads that show a status
        self._links: dict[tuple[str, str], str] = {}

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        posted, blocks = await self._send(
            "chat.postMessage",
            message,
            channel=place.channel,
            thread_ts=place.thread,
            reply_broadcast=is_lifted(message, place) or None,
            metadata=metadata(intent),
            unfurl_links=False,
            unfurl_media=False,
        )
        self._waited_for.discard(place)  # Slack removes the status itself
        # A person's id opens a direct message, whose id is in Slack's response.
        reference = MessageReference(replace(place, channel=posted["channel"]), posted["ts"])
        await self._sessions.update(reference, blocks)
        return reference

    async def edit(self, reference: MessageReference, message: Message) -> None:
        _, blocks = await self._send("chat.update", message, channel=reference.place.channel, ts=reference.message_id)
        await self._sessions.update(reference, blocks)
        await self._clear_status(reference.place)

    async def delete(self, reference: MessageReference) -> None:
        deletion = self._client.chat_delete(channel=reference.place.channel, ts=reference.message_id)
        with suppress(MessageNotFound):
            await call("chat.delete", deletion)
        await self._sessions.update(reference)

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """Return the message, or None.

        Posts to a person are not found, because only the post's response has the channel id.
        """
        if place.channel.startswith(PERSON):
            return None
        method = "conversations.history" if place.thread is None else "conversations.replies"
        thread = {} if place.thread is None else {"ts": place.thread}
        options = {"channel": place.channel, **thread, "include_all_metadata": True, "limit": PAGE}
        async for page in pages(self._client, method, options, MAX_SEARCHED_PAGES):
            for message in page.get("messages", ()):
                if intent_of(message) == intent:
                    return MessageReference(place, message["ts"])
        return None

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message, cached."""
        key = reference.place.channel, reference.message_id
        if key not in self._links:
            asking = self._client.chat_getPermalink(channel=key[0], message_ts=key[1])
            try:
                self._links[key] = (await call("chat.getPermalink", asking)).get("permalink", "")
            except (ChatUnavailable, MessageNotFound):
                return ""
            if len(self._links) > MAX_LINKS:
                del self._links[next(iter(self._links))]
        return self._links[key]

    async def signal(self, place: Place, text: str) -> float:
        """Show a status in the thread until its next message, or for two minutes.

        Only if Slack does not support messages that show the steps of the work.
        """
        if self._has_newest or not self._has_status or place.thread is None:
            return 0.0
        if not await self._set_status(place, WORKING, [text]):
            return 0.0
        self._waited_for.add(place)
        return SIGN_INTERVAL

    async def _set_status(self, place: Place, status: str, shown: list[str]) -> bool:
        """Set the status, and return whether Slack accepted it."""
        setting = self._client.assistant_threads_setStatus(
            channel_id=place.channel, thread_ts=place.thread or "", status=status, loading_messages=shown
        )
        try:
            await call("assistant.threads.setStatus", setting)
        except (ChatUnavailable, MessageNotFound) as error:
            self._has_status = self._has_status and error_code(error) not in NEVER
            log.info("no status in Slack", reason=str(error))
            return False
        return True

    async def _clear_status(self, place: Place) -> None:
        """Clear the status, because an edit does not."""
        if place in self._waited_for:
            self._waited_for.discard(place)
            await self._set_status(place, "", [])

    async def _send(self, method: str, message: Message, **arguments: Any) -> tuple[dict[str, Any], list[Block]]:
        """Send a message, without the newest blocks where Slack does not know them. Raises the errors of `call`.

        Returns Slack's answer and the blocks that were sent.
        """
        rendered = render(message, newest=self._has_newest)
        try:
            return await self._call(method, rendered, arguments), rendered.blocks
        except Undeliverable as error:
            older = render(message, newest=False)
            if error_code(error) not in REFUSED_BLOCKS or older == rendered:
                raise
        answer = await self._call(method, older, arguments)
        self._has_newest = False
        log.info("Slack does not know the newest blocks", method=method)
        return answer, older.blocks

    async def _call(self, method: str, rendered: Rendered, arguments: dict[str, Any]) -> dict[str, Any]:
        send = self._client.chat_update if method == "chat.update" else self._client.chat_postMessage
        shown = {"text": rendered.text, "blocks": rendered.blocks, "link_names": False, "parse": "none"}
        return await call(method, send(**arguments, **shown))


LATEST = 3_600.0  # seconds before the press in which a message with a button was posted
MAX_THREAD_PAGES = 2
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
            async for page in pages(self._client, "conversations.replies", options, MAX_THREAD_PAGES)
            for message in page.get("messages", ())
            if message.get("user") == bot
            for stop_id in stop_ids(message.get("blocks") or ())
        ]
