"""Inbound questions in Slack: mentions, direct messages and slash commands, and the prompts that are suggested for them.

The conversation with the app is its Messages tab (`agent_view` in the manifest). `app_home_opened` says that it was opened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from adapters.posted.slack import posted_of
from adapters.slack.blocks import cut, mentions, one_line, plain_text
from adapters.slack.channels import ChannelKind, ChannelReaders, shared_files
from adapters.slack.client import BotIdentity, call, names_of
from adapters.slack.payloads import ChangeEvent, DeletionEvent, MessageEvent, SlashCommand, parse
from core.incidents.incident_questions import CommandName
from core.model.conversation import Audience, Person, Place, Platform, Question, Speaker, Turn
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError
from core.ports import Clock, Inbox

NAME_TIMEOUT = 1.0  # seconds for a name; Slack waits for the acknowledgement of its event
COMMAND = "/plumbline"
SPOKEN_SUBTYPES = frozenset({None, "file_share", "thread_broadcast"})  # of messages written by a person

JOINED = frozenset({"channel_join", "group_join"})  # subtypes of a message about a new member

NOT_HERE = "I’m not in this conversation. Add me with /invite, or send me a direct message."


class Questions:
    """Passes to the inbox messages that address the bot, and messages in threads, which may be remarks on an incident."""

    def __init__(
        self,
        inbox: Inbox,
        readers: ChannelReaders,
        identity: BotIdentity,
        client: AsyncWebClient,
        clock: Clock,
    ) -> None:
        self._inbox = inbox
        self._readers = readers
        self._identity = identity
        self._client = client
        self._clock = clock

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
                await self._on_posted(event["message"], event["channel"], await self._identity())
            case _:
                message = parse(MessageEvent, event)
                own = await self._identity()
                if message.subtype in JOINED and message.user == own.bot_user_id:
                    await self._inbox.join(Place(Platform.SLACK, message.channel))
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
            await self._inbox.post(posted)

    async def _ask(self, message: MessageEvent, *, shared: bool, revision: str = "") -> None:
        if message.user is None:
            return
        asker = Person(Platform.SLACK, message.user)
        place = Place(Platform.SLACK, message.channel, message.thread_ts or message.ts)
        kind = await self._readers.kind(message.channel, message.channel_type, shared=shared)
        bot = await self._identity.user_id()
        typed, attached = plain_text(message.text, bot), plain_text(message.attached, bot)
        await self._inbox.ask(
            Question(
                id=question_id(message.channel, message.ts),
                # An attachment is never a command.
                text=typed or (attached and f"{CommandName.ASK} {attached}"),
                asker=asker,
                place=place,
                audience=await self._readers.audience(kind, place, asker),
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
            text=plain_text(message.text, await self._identity.user_id()),
            asker=speaker,
            place=Place(Platform.SLACK, message.channel, message.thread_ts),
            audience=Audience(),
            asked_at=moment(message.ts),
        )
        await self._inbox.overhear(remark, lambda: self._name(speaker))

    async def _name(self, person: Person) -> str:
        """Return a person's displayed name; empty if Slack does not answer in time."""
        with suppress(ChatUnavailable, MessageNotFound, TimeoutError):
            async with asyncio.timeout(NAME_TIMEOUT):
                return next(iter(await names_of(self._client, person.id)), "")
        return ""

    async def _on_change(self, change: ChangeEvent, *, shared: bool) -> None:
        now, before = change.message, change.previous_message
        place = Place(Platform.SLACK, change.channel, now.thread_ts or now.ts)
        if change.is_deletion:
            await self._inbox.retract(question_id(change.channel, now.ts), place)
        elif change.is_edit and now.edited is not None:
            if await self._is_addressed(now.text, change.channel, change.channel_type):
                kind = _type(change.channel, change.channel_type)
                message = MessageEvent(**now.model_dump(), channel=change.channel, channel_type=kind)
                await self._ask(message, shared=shared, revision=now.edited.ts)
            elif before is not None and mentions(before.text, await self._identity.user_id()):
                await self._inbox.retract(question_id(change.channel, now.ts), place)

    async def _on_deletion(self, deletion: DeletionEvent) -> None:
        gone = deletion.previous_message
        if gone is not None and (
            gone.bot_id is not None or not await self._is_addressed(gone.text, deletion.channel, deletion.channel_type)
        ):
            return
        place = Place(Platform.SLACK, deletion.channel, (gone.thread_ts if gone else None) or deletion.deleted_ts)
        await self._inbox.retract(question_id(deletion.channel, deletion.deleted_ts), place)

    async def _is_addressed(self, text: str, channel: str, channel_type: str) -> bool:
        return _type(channel, channel_type) == "im" or mentions(text, await self._identity.user_id())

    async def _on_command(self, command: dict[str, Any], ack: AsyncAck) -> None:
        slash = parse(SlashCommand, command)
        kind = await self._readers.kind(slash.channel_id)
        if kind is ChannelKind.ABSENT:
            await ack({"response_type": "ephemeral", "text": NOT_HERE})
            return
        asker = Person(Platform.SLACK, slash.user_id, slash.user_name)
        place = Place(Platform.SLACK, slash.channel_id)
        await self._inbox.ask(
            Question(
                id=question_id(slash.channel_id, slash.trigger_id),
                text=plain_text(slash.text, await self._identity.user_id()),
                asker=asker,
                place=place,
                audience=await self._readers.audience(kind, place, asker),
                asked_at=self._clock.now(),
            )
        )
        # Shows the command to everybody in the channel, as context for the answer.
        await ack({"response_type": "in_channel"})


def _type(channel: str, channel_type: str) -> str:
    """Return the channel's type.

    Events without a type are direct messages, because those we receive are with the bot.
    """
    return channel_type or ("im" if channel.startswith("D") else "")


def question_id(channel: str, event: str) -> str:
    return f"slack:{channel}:{event}"


def moment(timestamp: str) -> datetime:
    return datetime.fromtimestamp(float(timestamp), UTC)


MAX_PROMPTS = 4
MAX_TITLE = 75  # characters of a prompt's title
CALL_TIMEOUT = 1.5  # seconds; Slack waits for the acknowledgement of its event

PROMPTS_TITLE = "For example"
WHAT_IS_OPEN = {"title": "What is open, and what do you know?", "message": "status"}

logger = logging.getLogger(__name__)


class SuggestedPrompts:
    """Offers prompts in the Messages tab of the app, where a conversation begins.

    It begins without prompts too, so a failure to set them is only logged.
    """

    def __init__(self, client: AsyncWebClient, examples: Sequence[str]) -> None:
        self._client = client
        shown = [{"title": cut(one_line(each, MAX_TITLE), MAX_TITLE), "message": each} for each in examples]
        self._prompts = [*shown[: MAX_PROMPTS - 1], WHAT_IS_OPEN]

    async def offer(self, channel: str) -> None:
        """Offer prompts in the direct message `channel`."""
        method = "assistant.threads.setSuggestedPrompts"
        setting = self._client.assistant_threads_setSuggestedPrompts(
            channel_id=channel, title=PROMPTS_TITLE, prompts=self._prompts
        )
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                await call(method, setting)
        except (PlumblineError, TimeoutError) as error:
            logger.warning("a conversation has no prompts: %s", error or f"{method} was too slow")
