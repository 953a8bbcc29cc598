"""The settings of Microsoft Teams."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, SecretStr

from adapters.chat import ChatSettings, secret
from adapters.microsoft import (
    METADATA_URL,
    ClientLogin,
    Login,
    ManagedIdentity,
    first_proof,
)
from adapters.section import Host
from core.model.conversation import Platform
from core.model.errors import ConfigurationError

if TYPE_CHECKING:
    from adapters.teams.connector import AccessToken, Cloud, Connector, ConversationReferences
    from adapters.teams.history import TeamsHistory


CREDENTIALS = ("TEAMS_APP_PASSWORD", "TEAMS_APP_CERTIFICATE", "AZURE_FEDERATED_TOKEN_FILE", "TEAMS_MANAGED_IDENTITY")


class TeamsSettings(ChatSettings):
    """Microsoft Teams: an app registration, or without one the playground on this machine."""

    platform = Platform.TEAMS
    title = "Teams"
    path = "/api/messages"
    required = ("TEAMS_APP_ID", "TEAMS_APP_PASSWORD")
    has_playground = True

    app_id: str = Field("", validation_alias="TEAMS_APP_ID")
    app_password: SecretStr | None = Field(None, validation_alias="TEAMS_APP_PASSWORD")
    certificate: Path | None = Field(None, validation_alias="TEAMS_APP_CERTIFICATE")  # a PEM file, with its private key
    federated_token: Path | None = Field(
        None, validation_alias="AZURE_FEDERATED_TOKEN_FILE"
    )  # of a workload in a cluster
    has_managed_identity: bool = Field(False, validation_alias="TEAMS_MANAGED_IDENTITY")
    identity_endpoint: str = Field(METADATA_URL, validation_alias="IDENTITY_ENDPOINT")
    identity_key: SecretStr | None = Field(None, validation_alias="IDENTITY_HEADER")
    tenant_id: str = Field("", validation_alias="TEAMS_TENANT_ID")
    sdk: Literal["botbuilder", "builtin"] = Field("builtin", validation_alias="TEAMS_SDK")

    @property
    def tenant_ids(self) -> frozenset[str]:
        """Return the accepted tenants; empty if all are accepted."""
        return frozenset(tenant.strip() for tenant in self.tenant_id.split(",") if tenant.strip())

    @property
    def is_on(self) -> bool:
        return bool(self.app_id)

    def check(self) -> None:
        given = (self.app_password, self.certificate, self.federated_token, self.has_managed_identity)
        if self.is_on and not any(given):
            raise ConfigurationError(f"TEAMS_APP_ID is set: set one of {', '.join(CREDENTIALS)} as well.")

    def login(self, cloud: Cloud, tenant: str) -> Login:
        """Return the way to a token in a tenant."""
        machine = ManagedIdentity(self.app_id, self.identity_endpoint, secret(self.identity_key))
        proof = first_proof(secret(self.app_password), self.certificate, self.federated_token)
        return ClientLogin(cloud.login_url, tenant, self.app_id, proof) if proof else machine

    def token(self, cloud: Cloud, host: Host) -> AccessToken:
        """Return the token of requests to the connector service."""
        from adapters.teams.connector import MULTI_TENANT, AccessToken

        tenant = next(iter(self.tenant_ids)) if len(self.tenant_ids) == 1 else MULTI_TENANT
        return AccessToken(self.login(cloud, tenant), host.session)

    def history(
        self, connector: Connector, references: ConversationReferences, cloud: Cloud, host: Host
    ) -> TeamsHistory:
        """Return the reader of messages in Microsoft Graph."""
        from adapters.teams.history import TeamsHistory

        return TeamsHistory(
            app_id=self.app_id,
            login=partial(self.login, cloud),
            tenant_ids=self.tenant_ids,
            references=references,
            connector=connector,
            cloud=cloud,
            clock=host.clock,
            session=host.session,
        )
