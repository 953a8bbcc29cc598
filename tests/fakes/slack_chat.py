"""Slack for the messenger contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import MessageReference, Person, Place, Platform
from tests.fakes.block_kit import texts
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PERSON, FakeSlack


class SlackChat:
    """Implements `tests.fakes.chats.Chat`."""

    finds = True
    targets = True
    member = Person(Platform.SLACK, PERSON)
    place = Place(Platform.SLACK, CHANNEL)

    def __init__(self, slack: FakeSlack, messenger: SlackMessenger, successor: SlackMessenger) -> None:
        self.messenger = messenger
        self.successor = successor
        self._slack = slack

    def shown(self, reference: MessageReference) -> str:
        return "\n".join(texts(self._slack.message(reference.place.channel, reference.message_id)["blocks"]))

    def count(self) -> int:
        return len(self._slack.messages)

    def only_for(self, reference: MessageReference) -> str | None:
        return self._slack.message(reference.place.channel, reference.message_id).get("only_for")

    def thread_of(self, reference: MessageReference) -> str | None:
        return self._slack.message(reference.place.channel, reference.message_id).get("thread_ts")

    async def delete(self, reference: MessageReference) -> None:
        self._slack.delete(reference.place.channel, reference.message_id)

    def break_down(self) -> None:
        self._slack.refuse(503, "down for maintenance")

    def ask_to_wait(self, seconds: int) -> None:
        self._slack.refuse(429, '{"ok": false, "error": "ratelimited"}', headers={"Retry-After": str(seconds)})


@asynccontextmanager
async def slack_chat() -> AsyncIterator[SlackChat]:
    async with FakeSlack() as slack, aiohttp.ClientSession() as session:
        client = slack_client(BOT_TOKEN, slack.url, session)
        yield SlackChat(slack, SlackMessenger(client), SlackMessenger(client))
