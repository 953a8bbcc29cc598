"""Inbound events of Slack, passed to the inbox by one listener per kind of event, and a person's page (App Home).

HTTP and Socket Mode share one path. An event is acknowledged once the inbox has recorded it; if that fails, Slack gets
an error and sends the event again.

https://docs.slack.dev/surfaces/app-home
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncBoltRequest
from slack_bolt.error import BoltUnhandledRequestError
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock as SlackClock
from slack_sdk.signature import SignatureVerifier
from slack_sdk.web.async_client import AsyncWebClient

from adapters.http import read_body
from adapters.slack.channels import ChannelReaders
from adapters.slack.client import BotIdentity, call, names_of, slack_client
from adapters.slack.interactions import Interactions
from adapters.slack.payloads import Envelope, HomeOpened, parse
from adapters.slack.questions import Questions, SuggestedPrompts
from adapters.slack.render import body_blocks
from core.model.conversation import Channel, MessageReference, Person, Platform
from core.model.errors import InputTooLarge, MalformedInput, PlumblineError, Unauthorized
from core.model.text import json_text, load_json
from core.ports import Clock, Forms, HomeOf, Inbox
from core.views import MAX_INCIDENTS, home_view

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
        bot_token: str,
        signing_secret: str | None,
        api_url: str,
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
        client = slack_client(bot_token, api_url)
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
            Interactions(inbox, forms, self._readers, identity, client, clock),
            HomeTab(client, self._readers, home_of, prompts.offer),
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

logger = logging.getLogger(__name__)


class HomeTab:
    """Shows the page. If it cannot be rendered or shown in time, the previous one stays."""

    def __init__(
        self,
        client: AsyncWebClient,
        readers: ChannelReaders,
        home_of: HomeOf,
        on_messages: Callable[[str], Awaitable[None]],
    ) -> None:
        """Create the listener. `on_messages` is called with the direct message whose tab was opened."""
        self._client = client
        self._readers = readers
        self._home_of = home_of
        self._on_messages = on_messages

    def listen(self, app: AsyncApp) -> None:
        app.event("app_home_opened")(self._on_opened)

    async def _on_opened(self, event: dict[str, Any]) -> None:
        opened = parse(HomeOpened, event)
        if opened.tab == "messages" and opened.channel:
            await self._on_messages(opened.channel)
        if opened.tab != "home":
            return
        try:
            async with asyncio.timeout(HOME_TIMEOUT):
                await self._publish(Person(Platform.SLACK, opened.user))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("a person's home page in Slack was not updated: %s", error or "Slack is too slow")

    async def _publish(self, person: Person) -> None:
        names, audience = await asyncio.gather(names_of(self._client, person.id), self._readers.audience_alone(person))
        home = await self._home_of((person.id, *names), audience)
        shown = (*home.mine[:MAX_INCIDENTS], *home.others[:MAX_INCIDENTS])
        urls = await asyncio.gather(*(self._url(incident.placement.message) for incident in shown))
        page = home_view(home, {incident.id: url for incident, url in zip(shown, urls, strict=True)})
        view = {"type": "home", "blocks": body_blocks(page)}
        await call("views.publish", self._client.views_publish(user_id=person.id, view=view))

    async def _url(self, message: MessageReference | None) -> str:
        """Return the address of the message; empty if it is not in Slack, or Slack does not return one."""
        if message is None or message.place.platform != Platform.SLACK:
            return ""
        where = {"channel": message.place.channel, "message_ts": message.message_id}
        try:
            return (await call("chat.getPermalink", self._client.chat_getPermalink(**where))).get("permalink", "")
        except PlumblineError:
            return ""
