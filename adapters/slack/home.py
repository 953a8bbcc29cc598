"""A person's page in Slack (App Home), rendered when it is opened.

https://docs.slack.dev/surfaces/app-home
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack import blocks
from adapters.slack.blocks import LINE, NAME, Block, badge, dotted, minute, small_text
from adapters.slack.channels import ChannelReaders
from adapters.slack.client import call, names_of
from adapters.slack.incidents import ICONS
from adapters.slack.mrkdwn import bold, escape, link, prose
from adapters.slack.payloads import HomeOpened, parse
from core.incidents.incident_layout import Mood
from core.incidents.incident_view import format_owner, is_claimed
from core.model.conversation import Audience, MessageReference, Person, Platform
from core.model.errors import PlumblineError
from core.model.incident import Incident
from core.model.layout import counted
from core.model.messages import Home, KnownSource

MAX_SHOWN = 10  # incidents per list
MAX_SOURCES = 40
MAX_SETTINGS = 20
SECTION = 2_900  # characters
HOME_TIMEOUT = 2.0  # seconds in total; Slack waits for the acknowledgement of its event

MINE = "Your open incidents"
NONE_OF_MINE = "You and your team have no open incidents."
OTHERS = "Other open incidents"
KNOWN = "What I know"
SETTINGS = "Settings"
CAN = "What you can say to me"
NOT_YOURS = "Only members of this workspace can see my sources and settings."

HomeOf = Callable[[Sequence[str], Audience], Awaitable[Home]]

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
        shown = (*home.mine[:MAX_SHOWN], *home.others[:MAX_SHOWN])
        urls = await asyncio.gather(*(self._url(incident.message) for incident in shown))
        view = home_view(home, {incident.id: url for incident, url in zip(shown, urls, strict=True)})
        await call("views.publish", self._client.views_publish(user_id=person.id, view=view))

    async def _url(self, message: MessageReference | None) -> str:
        """Return the address of the message; empty if it is not in Slack, or Slack does not return one."""
        if message is None or message.place.platform is not Platform.SLACK:
            return ""
        where = {"channel": message.place.channel, "message_ts": message.message_id}
        try:
            return (await call("chat.getPermalink", self._client.chat_getPermalink(**where))).get("permalink", "")
        except PlumblineError:
            return ""


def home_view(home: Home, urls: dict[str, str]) -> Block:
    """Return the page. `urls` maps an incident's id to the address of its message."""
    mine = [_incident(each, urls.get(each.id, "")) for each in home.mine[:MAX_SHOWN]]
    others = [_incident(each, urls.get(each.id, "")) for each in home.others[:MAX_SHOWN]]
    return {
        "type": "home",
        "blocks": [
            *_chapter(MINE, mine or [NONE_OF_MINE], len(home.mine) - len(mine), "incidents"),
            *_chapter(OTHERS, others, len(home.others) - len(others), "incidents"),
            *_knowledge(home),
            *_chapter(SETTINGS, [_setting(*each) for each in home.settings[:MAX_SETTINGS]], 0, "settings"),
            *_chapter(CAN, [f"• {prose(line, LINE)}" for line in home.can], 0, "lines"),
        ],
    }


def _chapter(title: str, lines: Sequence[str], missing: int, noun: str) -> list[Block]:
    if not lines:
        return []
    shown = [*lines, *([f"_and {missing} more {noun}_"] if missing > 0 else [])]
    return [blocks.header(title), blocks.section(blocks.listing(shown, noun, SECTION))]


def _incident(incident: Incident, url: str) -> str:
    taken = f"taken by {escape(incident.taken_by, NAME)}" if incident.taken_by else ""
    named = f"owner {bold(format_owner(incident), NAME)}" if incident.owner is not None else ""
    shown = badge(incident.owner.badge) if incident.owner is not None and is_claimed(incident) else ""
    icon = ICONS[Mood(incident.severity)]
    title = f"{icon} {incident.severity.capitalize()}: {link(url, incident.title, LINE * 2)}"
    return f"• {dotted(title, taken or named, '' if taken else shown, minute(incident.started_at))}"


def _knowledge(home: Home) -> list[Block]:
    if not home.sources and not home.passages:
        return small_text(NOT_YOURS) if not home.settings else []
    lines = [f"{counted(home.passages, 'passage')} indexed.", *map(_source, home.sources[:MAX_SOURCES])]
    return _chapter(KNOWN, lines, len(home.sources) - MAX_SOURCES, "sources")


def _source(source: KnownSource) -> str:
    failed = "" if source.is_read else "⚠️ could not be read since"
    read = f"read {minute(source.read_at)}" if source.read_at is not None else "first import in progress"
    return f"• {dotted(bold(source.name, NAME), counted(source.documents, 'document'), read, failed)}"


def _setting(name: str, value: str) -> str:
    return f"• {escape(name, NAME)}: {escape(value, LINE)}"
