"""Read a message of another bot in Teams, as Microsoft Graph returns it: its text, and its cards of both kinds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog

from adapters.microsoft import GraphMessage, text_of
from adapters.posted.cards import Shown
from adapters.teams.history import TeamsHistory, Unreadable, valid_messages
from core.incidents.posted_alerts import AWAITED
from core.model.alert import Posted
from core.model.conversation import Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, Unavailable
from core.model.text import load_json
from core.ports import Clock, Inbox

PAUSE = AWAITED.total_seconds()  # between two looks at a channel; Graph allows an app 60 requests a minute in a tenant
RECENT = timedelta(hours=1)  # older messages are not new, whenever the bot was started
MAX_LATEST = 2_000  # messages remembered

log = structlog.get_logger()

_OURS = re.compile(r'"id"\s*+:\s*+"plumbline-[0-9a-f]{32}"')
_LINK = re.compile(r"\[(?P<text>[^\[\]]*)\]\((?P<address>https?://[^()\s]*)\)")


class TeamsPosted:
    """Implements `core.ports.ChannelReader`, and asks for what is new, because events bring only what addresses the bot."""

    def __init__(self, history: TeamsHistory, clock: Clock, inbox: Inbox) -> None:
        self._history = history
        self._clock = clock
        self._inbox = inbox
        self._looking = asyncio.Lock()
        self._looked: dict[Place, datetime] = {}
        self._latest: dict[tuple[Place, str], str] = {}  # the revision of each message that was passed on

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        messages = list[GraphMessage]()
        async for page in self._newest(place):
            messages += page
            if len(messages) >= limit:
                break
        return len(messages[:limit]), tuple(filter(None, (self._posted(each, place) for each in messages[:limit])))

    async def _newest(self, place: Place) -> AsyncIterator[list[GraphMessage]]:
        try:
            async for page in self._history.newest(place):
                yield page
        except (Unreadable, MessageNotFound) as error:
            raise ChatUnavailable(str(error)) from None

    async def first(self, place: Place) -> Posted | None:
        try:
            message = await self._history.root(place)
        except (Unreadable, MessageNotFound):
            return None
        return self._posted(message, place) if message is not None else None

    async def follow(self, adopting: Callable[[], Awaitable[Collection[Place]]]) -> None:
        """Pass on what bots post or edit in the adopting channels, until cancelled. What is passed on twice is kept once."""
        while True:
            for place in await adopting():
                if place.platform == Platform.TEAMS:
                    await self.look(place, self._clock.now())
            await asyncio.sleep(PAUSE)

    async def look(self, place: Place, since: datetime) -> bool:
        async with self._looking:
            if place not in self._looked or self._looked[place] < since:
                self._looked[place] = self._clock.now()
                try:
                    return await self.pass_on(place)
                except Unavailable as error:
                    log.warning("alerts of a channel wait", place=place.channel, reason=str(error))
        return False

    async def pass_on(self, place: Place) -> bool:
        """Pass on what is new among the messages and their replies, oldest first. Returns whether any is. Raises Unavailable.

        Pages are read until one has nothing new. An edit or a reply further back is not seen.
        """
        since, new = self._clock.now() - RECENT, list[Posted]()
        try:
            async for page in self._newest(place):
                replies = valid_messages(reply for root in page for reply in root.replies or ())
                posted = filter(None, (self._posted(each, place) for each in (*page, *replies)))
                fresh = [
                    each
                    for each in posted
                    if each.at >= since and self._latest.get((place, each.message_id)) != each.revision
                ]
                new += fresh
                if not fresh:
                    break
        finally:  # an alert does not wait for a page that fails, and that page is read at the next look
            for each in sorted(new, key=lambda each: (each.at, each.message_id)):
                await self._inbox.post(each)
        self._latest = dict(
            [*self._latest.items(), *(((place, each.message_id), each.revision) for each in new)][-MAX_LATEST:]
        )
        return bool(new)

    def _posted(self, message: GraphMessage, place: Place) -> Posted | None:
        is_ours = message.application_id == self._history.app_id or _OURS.search(str(message.attachments)) is not None
        return None if is_ours else posted_of(message, place.channel)


def posted_of(message: GraphMessage, channel: str) -> Posted | None:
    """Return the message of a bot or connector as its channel shows it; None for anything else."""
    application = message.sender.application if message.sender else None
    if application is None or not application.id or not message.is_said:
        return None
    shown = Shown(_LINK)
    shown.add_text(text_of(message.model_copy(update={"attachments": None})))
    for attachment in message.attachments or ():
        if isinstance(card := _card(attachment.content), Mapping):
            shown.read(card)
    return Posted(
        place=Place(Platform.TEAMS, channel, message.replyToId),
        message_id=message.id,
        sender=application.id,
        sender_name=application.displayName or "",
        at=message.lastEditedDateTime or message.createdDateTime,
        lines=tuple(dict.fromkeys(shown.lines)),
        fields=tuple(shown.fields),
        links=tuple(dict.fromkeys(shown.links)),
        colours=tuple(shown.colours),
        revision=message.lastEditedDateTime.isoformat() if message.lastEditedDateTime else "",
    )


def _card(content: Any) -> Any:
    with suppress(ValueError, TypeError):
        return load_json(content) if isinstance(content, str) else content
    return None
