"""What people do in Slack: mentions, direct messages, slash commands and buttons, handed to the inbox.

HTTP and Socket Mode take the same path. An event is acknowledged once the inbox has recorded it; if that fails, Slack
gets an error and sends the event again.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.response import BoltResponse

from adapters.slack.channels import ChannelDirectory, ChannelKind, audience_of
from adapters.slack.client import slack_client
from adapters.slack.corrections import INPUT
from adapters.slack.entities import mentions, plain_text
from adapters.slack.guests import GuestDirectory
from adapters.slack.handovers import PICKER
from adapters.slack.identity import BotIdentity
from adapters.slack.parts import ACTION_PREFIX
from adapters.slack.payloads import ButtonPress, DeletionEvent, Envelope, MessageEvent, SlashCommand, parse
from adapters.slack.requests import SignedRequests, parse_body
from core.audience import with_outsiders
from core.conversation import PUBLIC, Audience, Channel, Person, Place, Platform, Question
from core.errors import MalformedInput, Unauthorized
from core.feedback import Feedback
from core.messages import Verdict
from core.ports import Clock, Inbox

COMMAND = "/plumbline"
SPOKEN_SUBTYPES = frozenset({None, "file_share", "thread_broadcast"})  # of messages that a person has just written

NOT_HERE = "I am not in this conversation: add me with /invite, or write to me directly."

# Bolt's warnings tell a developer what to type; whatever an operator has to know is raised.
bolt_logger = logging.getLogger("adapters.slack.bolt")
bolt_logger.setLevel(logging.ERROR)


class SlackInbound:
    """Listens to one Slack workspace."""

    def __init__(
        self,
        *,
        bot_token: str,
        signing_secret: str | None,
        api_url: str,
        app_token: str | None,
        channels: Sequence[Channel],
        inbox: Inbox,
        clock: Clock,
    ) -> None:
        """`app_token` turns Socket Mode on, `signing_secret` HTTP; without the one or the other it stays off."""
        self._app_token = app_token
        self._channels = channels
        self._inbox = inbox
        self._clock = clock
        self._signed = SignedRequests(signing_secret, clock) if signing_secret else None
        self._client = slack_client(bot_token, api_url)
        self._directory = ChannelDirectory(self._client, clock)
        self._guests = GuestDirectory(self._client, clock)
        self._identity = BotIdentity(self._client)
        self._socket: AsyncSocketModeHandler | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._app = self._listening_app()

    async def handle(self, request: web.Request) -> web.Response:
        """`POST /slack/events`: events, slash commands and interactivity.

        Raises Unauthorized, InputTooLarge, MalformedInput, ChatUnavailable, and what the inbox raises.
        """
        if self._signed is None:
            raise Unauthorized("Slack requests over HTTP are off: set SLACK_SIGNING_SECRET.")
        payload = parse_body(await self._signed.body(request), request.content_type)
        return await to_aiohttp_response(await self._dispatch(payload))

    async def start(self) -> None:
        """Begin to connect to Socket Mode if it is on. It is tried until it works, and again when it is lost."""
        if self._app_token:
            self._socket = AsyncSocketModeHandler(self._app, self._app_token)
            # Not waited for: a bot whose Slack is down still takes webhooks.
            self._connecting = asyncio.create_task(self._socket.connect_async())

    async def close(self) -> None:
        await self._guests.close()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._socket is not None:
            await self._socket.close_async()

    def _listening_app(self) -> AsyncApp:
        app = AsyncApp(
            name="plumbline",
            logger=bolt_logger,
            client=self._client,
            authorize=self._identity,
            request_verification_enabled=False,  # ours answers a broken signature with 401 too, and knows our clock
            process_before_response=True,  # acknowledged only when the inbox has it
            raise_error_for_unhandled_request=True,
        )
        app.event("app_mention")(self._on_message)
        app.event("message")(self._on_message)
        app.command(COMMAND)(self._on_command)
        app.action(re.compile(f"^{ACTION_PREFIX}"))(self._on_button)
        app.error(self._on_error)
        return app

    async def _dispatch(self, payload: dict[str, Any]) -> BoltResponse:
        parse(Envelope, payload)
        # This mode is the one that takes a payload which is parsed already.
        return await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))

    async def _on_message(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        if event.get("subtype") == "message_deleted":
            await self._on_deletion(parse(DeletionEvent, event))
            return
        message = parse(MessageEvent, event)
        bot_user_id = await self._identity.user_id()
        if message.bot_id is not None or message.user is None or message.subtype not in SPOKEN_SUBTYPES:
            return
        if message.channel_type != "im" and not mentions(message.text, bot_user_id):
            return
        asker = Person(Platform.SLACK, message.user)
        place = Place(Platform.SLACK, message.channel, message.thread_ts or message.ts)
        kind = await self._kind(message, shared=bool(body.get("is_ext_shared_channel")))
        await self._inbox.ask(
            Question(
                id=f"slack:{message.channel}:{message.ts}",
                text=plain_text(message.text, bot_user_id),
                asker=asker,
                place=place,
                audience=await self._audience(kind, place, asker),
                asked_at=_moment(message.ts),
            )
        )

    async def _on_deletion(self, deletion: DeletionEvent) -> None:
        thread = deletion.previous_message.thread_ts if deletion.previous_message else None
        place = Place(Platform.SLACK, deletion.channel, thread or deletion.deleted_ts)
        await self._inbox.retract(f"slack:{deletion.channel}:{deletion.deleted_ts}", place)

    async def _audience(self, kind: ChannelKind, place: Place, person: Person) -> Audience:
        """Who reads an answer to this person in this place, guests included."""
        audience = audience_of(kind, place, person, self._channels)
        if PUBLIC not in audience.readers:
            return audience
        is_direct = kind is ChannelKind.DIRECT
        guests = self._guests.is_guest(person.id) if is_direct else self._guests.read_along(place.channel)
        return with_outsiders(audience) if await guests else audience

    async def _kind(self, message: MessageEvent, *, shared: bool) -> ChannelKind:
        """The kind of channel; what Slack says in the event itself needs no question."""
        if shared:
            return ChannelKind.EXTERNAL
        if message.channel_type == "im":
            return ChannelKind.DIRECT
        return await self._directory.kind(message.channel)

    async def _on_command(self, command: dict[str, Any], ack: AsyncAck) -> None:
        slash = parse(SlashCommand, command)
        kind = await self._directory.kind(slash.channel_id)
        if kind is ChannelKind.ABSENT:
            await ack({"response_type": "ephemeral", "text": NOT_HERE})
            return
        asker = Person(Platform.SLACK, slash.user_id, slash.user_name)
        place = Place(Platform.SLACK, slash.channel_id)
        await self._inbox.ask(
            Question(
                id=f"slack:{slash.channel_id}:{slash.trigger_id}",
                text=plain_text(slash.text, await self._identity.user_id()),
                asker=asker,
                place=place,
                audience=await self._audience(kind, place, asker),
                asked_at=self._clock.now(),
            )
        )
        # Shows the command to everybody in the channel, so that the answer does not stand there alone.
        await ack({"response_type": "in_channel"})

    async def _on_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        press = parse(ButtonPress, body)
        channel, message, action = press.channel.id, press.message, press.action
        person = Person(Platform.SLACK, press.user.id, press.user.name or press.user.username)
        place = Place(Platform.SLACK, channel, message.thread_ts or message.ts)
        kind = await self._directory.kind(channel)
        await self._inbox.press(
            Feedback(
                id=f"slack:{channel}:{message.ts}:{action.action_ts}:{press.user.id}",
                verdict=_verdict(action.action_id),
                subject=action.value,
                person=person,
                place=place,
                at=_moment(action.action_ts),
                text=press.typed(INPUT),
                choice=press.picked(PICKER),
                audience=await self._audience(kind, place, person),
            )
        )
        await ack()

    async def _on_error(self, error: Exception) -> BoltResponse:
        """Nothing of ours in it: fine. Anything else goes to the caller, who answers with an error."""
        if isinstance(error, BoltUnhandledRequestError):
            return BoltResponse(status=200)
        raise error


def _verdict(action_id: str) -> Verdict:
    try:
        return Verdict(action_id.removeprefix(ACTION_PREFIX))
    except ValueError:
        raise MalformedInput("The button is none that we know.") from None


def _moment(timestamp: str) -> datetime:
    return datetime.fromtimestamp(float(timestamp), UTC)
