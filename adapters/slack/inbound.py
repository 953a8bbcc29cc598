"""Inbound events of Slack, passed to the inbox by one listener per kind of event: questions (mentions, direct messages and
slash commands, with the prompts that are suggested for them), and a person's page (App Home).

HTTP and Socket Mode share one path. An event is acknowledged once the inbox has recorded it; if that fails, Slack gets
an error and sends the event again. The conversation with the app is its Messages tab (`agent_view` in the manifest);
`app_home_opened` says that it was opened.

https://docs.slack.dev/surfaces/app-home
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltRequest
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock as SlackClock
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from adapters.http import read_body
from adapters.posted.slack import posted_of
from adapters.slack.blocks import MAX_LABEL, cut, mentions, one_line, plain_text
from adapters.slack.channels import CALL_TIMEOUT, ChannelKind, ChannelReaders, moment, question_id, shared_files
from adapters.slack.client import BotIdentity, call, names_of
from adapters.slack.interactions import Interactions, Listener
from adapters.slack.messenger import SlackMessenger
from adapters.slack.payloads import ChangeEvent, DeletionEvent, Envelope, HomeOpened, MessageEvent, SlashCommand, parse
from adapters.slack.render import body_blocks
from core.incidents.incident_questions import CommandName
from core.model.conversation import (
    Audience,
    Channel,
    MessageReference,
    Person,
    Place,
    Platform,
    Question,
    Speaker,
    Turn,
)
from core.model.errors import (
    ChatUnavailable,
    InputTooLarge,
    MalformedInput,
    MessageNotFound,
    PlumblineError,
    Unauthorized,
)
from core.model.text import json_text, load_json
from core.ports import Clock, Forms, HomeOf, Inbox
from core.views import MAX_INCIDENTS, home_view

NAME_TIMEOUT = 1.0  # seconds for a name; Slack waits for the acknowledgement of its event
COMMAND = "/plumbline"
SPOKEN_SUBTYPES = frozenset({None, "file_share", "thread_broadcast"})  # of messages written by a person

JOINED = frozenset({"channel_join", "group_join"})  # subtypes of a message about a new member

NOT_HERE = "I’m not in this conversation. Add me with /invite, or send me a direct message."


class Questions(Listener):
    """Passes to the inbox messages that address the bot, and messages in threads, which may be remarks on an incident."""

    def listen(self, app: AsyncApp) -> None:
        app.event("app_mention")(self._on_message)
        app.event("message")(self._on_message)
        app.command(COMMAND)(self._on_command)

    async def _on_message(self, event: dict[str, Any], body: dict[str, Any]) -> None:
        shared = bool(body.get("is_ext_shared_channel"))
        match event.get("subtype"):
            case "message_deleted":
                await self._on_deletion(parse(DeletionEvent, event))
            case "message_changed":
                await self._on_change(parse(ChangeEvent, event), shared=shared)
                await self._on_posted(event["message"], event["channel"], await self.identity())
            case _:
                message = parse(MessageEvent, event)
                own = await self.identity()
                if message.subtype in JOINED and message.user == own.bot_user_id:
                    await self.inbox.join(Place(Platform.SLACK, message.channel))
                await self._on_posted(event, message.channel, own)
                if message.bot_id is not None or message.subtype not in SPOKEN_SUBTYPES:  # not by a person
                    return
                if await self._is_addressed(message.text, message.channel, message.channel_type):
                    await self._ask(message, shared=shared)
                elif message.user is not None and message.thread_ts not in (None, message.ts):
                    await self._overhear(message, Person(Platform.SLACK, message.user))

    async def _on_posted(self, message: dict[str, Any], channel: str, own: AuthorizeResult) -> None:
        """Pass on what another bot posted. Our own messages may carry only one of our ids."""
        is_own = own.bot_id is not None and message.get("bot_id") == own.bot_id
        if not is_own and (posted := posted_of(message, channel, own.bot_user_id or "")) is not None:
            await self.inbox.post(posted)

    async def _ask(self, message: MessageEvent, *, shared: bool, revision: str = "") -> None:
        if message.user is None:
            return
        asker = Person(Platform.SLACK, message.user)
        place = Place(Platform.SLACK, message.channel, message.thread_ts or message.ts)
        kind = await self.readers.kind(message.channel, message.channel_type, shared=shared)
        bot = await self.identity.user_id()
        typed, attached = plain_text(message.text, bot), plain_text(message.attached, bot)
        await self.inbox.ask(
            Question(
                id=question_id(message.channel, message.ts),
                # An attachment is never a command.
                text=typed or (attached and f"{CommandName.ASK} {attached}"),
                asker=asker,
                place=place,
                audience=await self.readers.audience(kind, place, asker),
                asked_at=moment(message.ts),
                revision=revision,
                history=(Turn(Speaker.PERSON, attached),) if typed and attached else (),
                files=shared_files(message.files),
            )
        )

    async def _overhear(self, message: MessageEvent, speaker: Person) -> None:
        """Pass on a message in a thread. The inbox keeps only remarks about an incident's cause."""
        remark = Question(
            id=question_id(message.channel, message.ts),
            text=plain_text(message.text, await self.identity.user_id()),
            asker=speaker,
            place=Place(Platform.SLACK, message.channel, message.thread_ts),
            audience=Audience(),
            asked_at=moment(message.ts),
        )
        await self.inbox.overhear(remark, lambda: self._name(speaker))

    async def _name(self, person: Person) -> str:
        """Return a person's displayed name; empty if Slack does not answer in time."""
        with suppress(ChatUnavailable, MessageNotFound, TimeoutError):
            async with asyncio.timeout(NAME_TIMEOUT):
                return next(iter(await names_of(self.client, person.id)), "")
        return ""

    async def _on_change(self, change: ChangeEvent, *, shared: bool) -> None:
        now, before = change.message, change.previous_message
        place = Place(Platform.SLACK, change.channel, now.thread_ts or now.ts)
        if change.is_deletion:
            await self.inbox.retract(question_id(change.channel, now.ts), place)
        elif change.is_edit and now.edited is not None:
            if await self._is_addressed(now.text, change.channel, change.channel_type):
                kind = _type(change.channel, change.channel_type)
                message = MessageEvent(**now.model_dump(), channel=change.channel, channel_type=kind)
                await self._ask(message, shared=shared, revision=now.edited.ts)
            elif before is not None and mentions(before.text, await self.identity.user_id()):
                await self.inbox.retract(question_id(change.channel, now.ts), place)

    async def _on_deletion(self, deletion: DeletionEvent) -> None:
        gone = deletion.previous_message
        if gone is not None and (
            gone.bot_id is not None or not await self._is_addressed(gone.text, deletion.channel, deletion.channel_type)
        ):
            return
        place = Place(Platform.SLACK, deletion.channel, (gone.thread_ts if gone else None) or deletion.deleted_ts)
        await self.inbox.retract(question_id(deletion.channel, deletion.deleted_ts), place)

    async def _is_addressed(self, text: str, channel: str, channel_type: str) -> bool:
        return _type(channel, channel_type) == "im" or mentions(text, await self.identity.user_id())

    async def _on_command(self, command: dict[str, Any], ack: AsyncAck) -> None:
        slash = parse(SlashCommand, command)
        kind = await self.readers.kind(slash.channel_id)
        if kind is ChannelKind.ABSENT:
            await ack({"response_type": "ephemeral", "text": NOT_HERE})
            return
        asker = Person(Platform.SLACK, slash.user_id, slash.user_name)
        place = Place(Platform.SLACK, slash.channel_id)
        await self.inbox.ask(
            Question(
                id=question_id(slash.channel_id, slash.trigger_id),
                text=plain_text(slash.text, await self.identity.user_id()),
                asker=asker,
                place=place,
                audience=await self.readers.audience(kind, place, asker),
                asked_at=self.clock.now(),
            )
        )
        # Shows the command to everybody in the channel, as context for the answer.
        await ack({"response_type": "in_channel"})


def _type(channel: str, channel_type: str) -> str:
    """Return the channel's type.

    Events without a type are direct messages, because those we receive are with the bot.
    """
    return channel_type or ("im" if channel.startswith("D") else "")


MAX_PROMPTS = 4

PROMPTS_TITLE = "For example"
WHAT_IS_OPEN = {"title": "What is open, and what do you know?", "message": "status"}

logger = logging.getLogger(__name__)


class SuggestedPrompts:
    """Offers prompts in the Messages tab of the app, where a conversation begins.

    It begins without prompts too, so a failure to set them is only logged.
    """

    def __init__(self, client: AsyncWebClient, examples: Sequence[str]) -> None:
        self._client = client
        shown = [{"title": cut(one_line(each, MAX_LABEL), MAX_LABEL), "message": each} for each in examples]
        self._prompts = [*shown[: MAX_PROMPTS - 1], WHAT_IS_OPEN]

    async def offer(self, channel: str) -> None:
        """Offer prompts in the direct message `channel`."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await call(
                    "assistant.threads.setSuggestedPrompts",
                    self._client.assistant_threads_setSuggestedPrompts(
                        channel_id=channel, title=PROMPTS_TITLE, prompts=self._prompts
                    ),
                )
        except (PlumblineError, TimeoutError) as error:
            logger.warning("a conversation has no prompts: %s", error or "Slack is too slow")


# Bolt's warnings are hints for developers; what operators need to know is raised.
bolt_logger = logging.getLogger("adapters.slack.bolt")
bolt_logger.setLevel(logging.ERROR)

MAX_BODY = 1024 * 1024  # bytes; Slack's own payloads stay far below
MAX_TIMESTAMP_DIGITS = 12
MAX_FIELDS = 100  # per form


class SlackInbound:
    """Receives the events of one Slack workspace."""

    def __init__(
        self,
        *,
        client: AsyncWebClient,
        signing_secret: str | None,
        app_token: str | None,
        channels: Sequence[Channel],
        inbox: Inbox,
        forms: Forms,
        home_of: HomeOf,
        examples: Sequence[str],
        clock: Clock,
    ) -> None:
        """Create the listener. `app_token` enables Socket Mode, `signing_secret` enables HTTP."""
        self._app_token = app_token
        self._signed = SignedRequests(signing_secret, clock) if signing_secret else None
        identity = BotIdentity(client)
        self._readers = ChannelReaders(client, channels, clock)
        self.audience_at = self._readers.audience_at
        prompts = SuggestedPrompts(client, examples)
        self._app = AsyncApp(
            name="plumbline",
            logger=bolt_logger,
            client=client,
            authorize=identity,
            # Our own verification answers an invalid signature with 401, and uses our clock.
            request_verification_enabled=False,
            process_before_response=True,  # acknowledged only after the inbox has recorded it
            raise_error_for_unhandled_request=True,
            ignoring_self_events_enabled=False,  # that we joined a channel is an event of ours
        )
        for listener in (
            Questions(inbox, self._readers, identity, client, clock),
            Interactions(inbox, self._readers, identity, client, clock, forms),
            HomeTab(client, self._readers, home_of, prompts.offer, SlackMessenger(client).link),
        ):
            listener.listen(self._app)
        self._app.error(_on_error)
        self._socket: AsyncSocketModeHandler | None = None
        self._connecting: asyncio.Task[None] | None = None

    async def handle(self, request: web.Request) -> web.Response:
        """Handle `POST /slack/events`: events, slash commands and interactivity.

        Raises Unauthorized, InputTooLarge, MalformedInput, ChatUnavailable, and the errors of the inbox.
        """
        if self._signed is None:
            raise Unauthorized("Slack requests over HTTP are off: set SLACK_SIGNING_SECRET.")
        payload = parse_body(await self._signed.body(request), request.content_type)
        parse(Envelope, payload)
        # Only this mode accepts a parsed payload.
        answered = await self._app.async_dispatch(AsyncBoltRequest(mode="socket_mode", body=payload))
        return await to_aiohttp_response(answered)

    async def start(self) -> None:
        """Start connecting to Socket Mode, if enabled.

        The connection is retried until it works, and when it is lost.
        """
        if self._app_token:
            self._socket = AsyncSocketModeHandler(self._app, self._app_token, proxy=self._app.client.proxy)
            accept = self._socket.client.enqueue_message

            async def enqueue(message: str) -> None:  # the SDK drops what its own parser refuses
                await accept(json_text(message))

            self._socket.client.enqueue_message = enqueue
            # Not awaited, so that the bot accepts webhooks while Slack is down.
            self._connecting = asyncio.create_task(self._socket.connect_async())

    async def close(self) -> None:
        await self._readers.close()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._socket is not None:
            await self._socket.close_async()


async def _on_error(error: Exception) -> BoltResponse:
    """Ignore events without a listener, such as `app_context_changed`: the audience of an answer does not depend on what
    the person looks at. Other errors go to the caller, who answers with an error.
    """
    if isinstance(error, BoltUnhandledRequestError):
        return BoltResponse(status=200)
    raise error


class SignedRequests:
    """Reads the bodies of requests signed by Slack."""

    def __init__(self, signing_secret: str, clock: Clock) -> None:
        self._verifier = SignatureVerifier(signing_secret, _SlackClock(clock))

    async def body(self, request: web.Request) -> str:
        """Return the body as text.

        Raises InputTooLarge, MalformedInput if it is not UTF-8, and Unauthorized if the signature is missing, wrong or
        more than five minutes old.
        """
        too_large = InputTooLarge(f"The body is larger than {MAX_BODY // 1024 // 1024} MiB.")
        raw = await read_body(request.content, MAX_BODY, too_large)
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        # The SDK's verifier raises other errors for these.
        readable = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_TIMESTAMP_DIGITS
        if not readable or not signature.isascii():
            raise Unauthorized(
                "The Slack signature is missing or unreadable: send X-Slack-Signature and its timestamp."
            )
        try:
            body = raw.decode()
        except UnicodeDecodeError:
            raise MalformedInput("The body is not UTF-8.") from None
        if not self._verifier.is_valid(body, timestamp, signature):
            raise Unauthorized("The Slack signature is wrong or too old: check SLACK_SIGNING_SECRET and the clock.")
        return body


def parse_body(body: str, content_type: str) -> dict[str, Any]:
    """Return the payload: a JSON object, a form's fields, or the JSON object in a form's `payload`. Raises
    MalformedInput.

    Bolt's own parser loses every slash command whose text contains the word "payload".
    """
    if content_type != "application/x-www-form-urlencoded":
        return _object(body)
    try:
        form = parse_qs(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise MalformedInput(f"The form has more than {MAX_FIELDS} fields.") from None
    return _object(form["payload"][-1]) if "payload" in form else {name: values[-1] for name, values in form.items()}


def _object(text: str) -> dict[str, Any]:
    try:
        value = load_json(text)
    except ValueError:
        raise MalformedInput("The body is not JSON.") from None
    if not isinstance(value, dict):
        raise MalformedInput("The body is not a JSON object.")
    return value


class _SlackClock(SlackClock):
    """Adapts our clock to the SDK."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now().timestamp()


HOME_TIMEOUT = 2.0  # seconds in total; Slack waits for the acknowledgement of its event


@dataclass(frozen=True, slots=True)
class HomeTab:
    """Shows the page. If it cannot be rendered or shown in time, the previous one stays.

    `on_messages` is called with the direct message whose tab was opened.
    """

    client: AsyncWebClient
    readers: ChannelReaders
    home_of: HomeOf
    on_messages: Callable[[str], Awaitable[None]]
    link: Callable[[MessageReference], Awaitable[str]]

    def listen(self, app: AsyncApp) -> None:
        app.event("app_home_opened")(self._on_opened)

    async def _on_opened(self, event: dict[str, Any]) -> None:
        opened = parse(HomeOpened, event)
        if opened.tab == "messages" and opened.channel:
            await self.on_messages(opened.channel)
        if opened.tab != "home":
            return
        try:
            async with asyncio.timeout(HOME_TIMEOUT):
                await self._publish(Person(Platform.SLACK, opened.user))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("a person's home page in Slack was not updated: %s", error or "Slack is too slow")

    async def _publish(self, person: Person) -> None:
        alone = self.readers.audience(ChannelKind.DIRECT, Place(Platform.SLACK, person.id), person)
        names, audience = await asyncio.gather(names_of(self.client, person.id), alone)
        home = await self.home_of((person.id, *names), audience)
        shown = (*home.mine[:MAX_INCIDENTS], *home.others[:MAX_INCIDENTS])
        urls = await asyncio.gather(*(self._url(incident.placement.message) for incident in shown))
        page = home_view(home, {incident.id: url for incident, url in zip(shown, urls, strict=True)})
        view = {"type": "home", "blocks": body_blocks(page)}
        await call("views.publish", self.client.views_publish(user_id=person.id, view=view))

    async def _url(self, message: MessageReference | None) -> str:
        """Return the address of the message; empty if it is not in Slack, or Slack does not return one."""
        return await self.link(message) if message is not None and message.place.platform == Platform.SLACK else ""
