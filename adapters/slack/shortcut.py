"""The “Ask Plumbline about this” entry in the menu of Slack messages."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.channels import ChannelKind, Readers
from adapters.slack.client import call
from adapters.slack.forms import ASK, FORM_PREFIX, INPUT, Origin, origin, question_form
from adapters.slack.identity import BotIdentity
from adapters.slack.judgements import TRIGGER_LIFETIME
from adapters.slack.mrkdwn import plain_text
from adapters.slack.payloads import MessageShortcut, Submission, parse
from adapters.slack.questions import question_id
from core.incidents.command import CommandName
from core.model.conversation import Person, Place, Platform, Question, Speaker, Turn
from core.model.errors import PlumblineError
from core.ports import Clock, Inbox

SHORTCUT = "ask_about_message"
MAX_QUOTED = 600  # characters of the message; at six bytes each, they fit into Slack's 3 000 for a form

logger = logging.getLogger(__name__)


class MessageShortcuts:
    """Opens a form for the question. If Slack opens it too late, the message itself is the question.

    The answer is posted in the message's thread, or as a direct message if the bot is not in the conversation.
    """

    def __init__(
        self, inbox: Inbox, readers: Readers, identity: BotIdentity, client: AsyncWebClient, clock: Clock
    ) -> None:
        self._inbox = inbox
        self._readers = readers
        self._identity = identity
        self._client = client
        self._clock = clock

    def listen(self, app: AsyncApp) -> None:
        app.message_shortcut(SHORTCUT)(self._on_shortcut)
        app.view(f"{FORM_PREFIX}{ASK}")(self._on_form)

    async def _on_shortcut(self, body: dict[str, Any], ack: AsyncAck) -> None:
        chosen = parse(MessageShortcut, body)
        message = chosen.message
        quoted = plain_text(message.text, await self._identity.user_id())
        about = Origin(channel=chosen.channel.id, ts=message.thread_ts or message.ts, quoted=quoted[:MAX_QUOTED])
        try:
            async with asyncio.timeout(TRIGGER_LIFETIME):
                # Looked up in advance, while the person is typing.
                absent = await self._readers.kind(about.channel) is ChannelKind.ABSENT
                about = about.model_copy(update={"in_person": absent})
                view = question_form(about)
                await call("views.open", self._client.views_open(trigger_id=chosen.trigger_id, view=view))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("Slack opened no form, so the message itself is taken as the question: %s", error or "slow")
            person = Person(Platform.SLACK, chosen.user.id, chosen.user.name or chosen.user.username)
            await self._ask(chosen.trigger_id, person, "", about)
        await ack()

    async def _on_form(self, body: dict[str, Any], ack: AsyncAck) -> None:
        submission = parse(Submission, body)
        person = Person(Platform.SLACK, submission.user.id, submission.user.name or submission.user.username)
        about = origin(submission.view.private_metadata)
        await self._ask(submission.view.id, person, submission.typed(INPUT), about)
        await ack()

    async def _ask(self, event: str, person: Person, typed: str, about: Origin) -> None:
        text = plain_text(typed, await self._identity.user_id())
        asked = (text or about.quoted).strip()
        kind = ChannelKind.ABSENT if about.in_person else await self._readers.kind(about.channel)
        place = Place(Platform.SLACK, about.channel, about.ts)
        if kind is ChannelKind.ABSENT:
            # Opens the direct message with this person.
            kind, place = ChannelKind.DIRECT, Place(Platform.SLACK, person.id)
        question = Question(
            id=question_id(about.channel, event),
            text=f"{CommandName.ASK} {asked}"
            if asked
            else "",  # prefixed, so that the text is never taken for another command
            asker=person,
            place=place,
            audience=await self._readers.audience(kind, place, person),
            asked_at=self._clock.now(),
        )
        if text and about.quoted:
            question = replace(question, history=(Turn(Speaker.PERSON, about.quoted),))
        await self._inbox.ask(question)
