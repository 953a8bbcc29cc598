"""Microsoft Teams, as a chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from adapters.chat import Budget, Chat, ChatHost, CheckResult
from adapters.section import Host
from adapters.teams.settings import TeamsSettings
from core.model.conversation import Channel, MessageReference, Platform
from core.ports import OpenToAll

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

# https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit: per conversation 7 messages per second, 60
# in 30 seconds, and 1 800 per hour, of which the last matters in a storm.
BUDGET = Budget(post=2.0, edit=2.0, burst=7)


class TeamsChat(TeamsSettings):
    """Microsoft Teams, with these settings."""

    def findings(self, host: Host, channels: Sequence[Channel]) -> AsyncIterator[CheckResult]:
        from adapters.teams.doctor import check_teams

        return check_teams(self, host, channels)

    def openness(self, host: Host, engine: AsyncEngine) -> OpenToAll:
        from adapters.store.conversations import SqlTeamsConversations
        from adapters.teams.connector import PUBLIC_CLOUD, Connector, TeamGroups

        connector = Connector(self.token(PUBLIC_CLOUD, host), host.session)
        return TeamGroups(SqlTeamsConversations(engine), connector).is_open

    async def open(self, host: ChatHost) -> Chat:
        from adapters.posted.teams import TeamsPosted
        from adapters.store.conversations import SqlTeamsConversations
        from adapters.teams.activity import TeamsAudiences
        from adapters.teams.connector import PUBLIC_CLOUD, THIS_MACHINE, TeamsGuests
        from adapters.teams.history import PostedMessages, TeamsFiles, TeamsThreads
        from adapters.teams.inbound import TeamsInbound
        from adapters.teams.messenger import TeamsMessenger, open_connector

        references = SqlTeamsConversations(host.engine)
        cloud = PUBLIC_CLOUD if self.is_on else THIS_MACHINE
        tenant_ids = self.tenant_ids
        token = self.token(cloud, host) if self.is_on else None
        connector = open_connector(self.sdk, token, host.session)
        history = self.history(connector, references, cloud, host) if self.is_on else None
        messenger = TeamsMessenger(
            connector=connector,
            references=references,
            tenant_ids=tenant_ids,
            cloud=cloud,
            posted=history and PostedMessages(history, host.clock),
        )
        host.stack.push_async_callback(messenger.close)
        posted = history and TeamsPosted(history, host.clock, host.inbox)
        if posted:
            host.stack.callback(asyncio.create_task(posted.follow(host.adopting)).cancel)
        guests = TeamsGuests(connector, host.clock) if self.is_on else None
        audiences = TeamsAudiences(host.channels, guests, references)

        async def link(reference: MessageReference) -> str:
            return await messenger.link(reference) if reference.place.platform == Platform.TEAMS else ""

        inbound = TeamsInbound(
            app_id=self.app_id,
            tenant_ids=tenant_ids,
            anonymous=not self.is_on,
            audiences=audiences,
            inbox=host.inbox,
            forms=host.forms,
            refresher=host.refresher_of(link, audiences.at),
            references=references,
            clock=host.clock,
            session=host.session,
            cloud=cloud,
        )
        return Chat(
            messenger,
            inbound.handle,
            BUDGET,
            history and TeamsThreads(history, host.clock),
            audiences.at,
            TeamsFiles(host.session),
            posted,
        )
