"""Microsoft Teams, as a chat. The SDK is loaded when it is opened, or by the first post of a playground."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, SecretStr

from adapters.chat import Chat, ChatHost, ChatSettings, secret
from adapters.rate_limits import Budget
from core.model.conversation import MessageReference, Platform

# https://learn.microsoft.com/microsoftteams/platform/bots/how-to/rate-limit: per conversation 7 messages per second, 60
# in 30 seconds, and 1 800 per hour, of which the last matters in a storm.
BUDGET = Budget(post=2.0, edit=2.0, burst=7)


class TeamsSettings(ChatSettings):
    """Microsoft Teams: an app registration, or without one the playground on this machine."""

    platform = Platform.TEAMS
    title = "Teams"
    path = "/api/messages"
    required = "TEAMS_APP_ID and TEAMS_APP_PASSWORD"
    has_playground = True

    app_id: str = Field("", validation_alias="TEAMS_APP_ID")
    app_password: SecretStr | None = Field(None, validation_alias="TEAMS_APP_PASSWORD")
    tenant_id: str = Field("", validation_alias="TEAMS_TENANT_ID")
    sdk: Literal["botbuilder", "agents"] = Field("agents", validation_alias="TEAMS_SDK")

    @property
    def tenant_ids(self) -> frozenset[str]:
        """Return the accepted tenants; empty if all are accepted."""
        return frozenset(tenant.strip() for tenant in self.tenant_id.split(",") if tenant.strip())

    @property
    def is_on(self) -> bool:
        return bool(self.app_id)

    async def open(self, host: ChatHost) -> Chat:
        from adapters.store.conversations import SqlTeamsConversations
        from adapters.teams.cloud import PUBLIC_CLOUD, THIS_MACHINE
        from adapters.teams.connector import AccessToken, Connector, TeamsGuests
        from adapters.teams.events import TeamsAudiences
        from adapters.teams.history import PostedMessages, TeamsHistory
        from adapters.teams.inbound import TeamsInbound
        from adapters.teams.messenger import TeamsMessenger
        from adapters.teams.threads import TeamsFiles, TeamsThreads
        from adapters.teams.transport import open_transport

        references = SqlTeamsConversations(host.engine)
        cloud = PUBLIC_CLOUD if self.is_on else THIS_MACHINE
        password, tenant_ids = secret(self.app_password), self.tenant_ids
        token = AccessToken(self.app_id, password, tenant_ids, cloud, host.session) if self.is_on else None
        transport = open_transport(self.sdk, token)
        history = token and TeamsHistory(
            app_id=self.app_id,
            app_password=password,
            tenant_ids=tenant_ids,
            references=references,
            token=token,
            cloud=cloud,
            clock=host.clock,
            session=host.session,
        )
        messenger = TeamsMessenger(
            transport=transport,
            references=references,
            tenant_ids=tenant_ids,
            cloud=cloud,
            posted=history and PostedMessages(history, host.clock),
        )
        host.stack.push_async_callback(messenger.close)
        guests = token and TeamsGuests(Connector(token, host.session), host.clock)
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
            transport.opened if self.is_on else None,  # the playground may never be used
            audiences.at,
            TeamsFiles(host.session),
        )
