"""The settings of Microsoft Teams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, SecretStr

from adapters.chat import ChatSettings, secret
from adapters.section import Host
from core.model.conversation import Platform

if TYPE_CHECKING:
    from adapters.teams.connector import AccessToken
    from adapters.teams.history import TeamsHistory
    from adapters.teams.references import Cloud, ConversationReferences


class TeamsSettings(ChatSettings):
    """Microsoft Teams: an app registration, or without one the playground on this machine."""

    platform = Platform.TEAMS
    title = "Teams"
    path = "/api/messages"
    required = ("TEAMS_APP_ID", "TEAMS_APP_PASSWORD")
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

    def token(self, cloud: Cloud, host: Host) -> AccessToken:
        """Return the token of requests to the connector service."""
        from adapters.teams.connector import AccessToken

        return AccessToken(self.app_id, secret(self.app_password), self.tenant_ids, cloud, host.session)

    def history(self, token: AccessToken, references: ConversationReferences, cloud: Cloud, host: Host) -> TeamsHistory:
        """Return the reader of messages in Microsoft Graph."""
        from adapters.teams.history import TeamsHistory

        return TeamsHistory(
            app_id=self.app_id,
            app_password=secret(self.app_password),
            tenant_ids=self.tenant_ids,
            references=references,
            token=token,
            cloud=cloud,
            clock=host.clock,
            session=host.session,
        )
