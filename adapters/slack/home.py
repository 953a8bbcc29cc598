"""A person's page in Slack (App Home), rendered when it is opened.

https://docs.slack.dev/surfaces/app-home
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.channels import ChannelReaders
from adapters.slack.client import call, names_of
from adapters.slack.payloads import HomeOpened, parse
from adapters.slack.render import body_blocks
from core.model.conversation import MessageReference, Person, Platform
from core.model.errors import PlumblineError
from core.ports import HomeOf
from core.views.home_view import MAX_INCIDENTS, home_view

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
