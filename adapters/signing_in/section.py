"""The section `sign_in` of plumbline.yaml: the provider with which people sign in, and what its groups may see and do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from adapters.section import EnvironmentName, Section, Url
from core.incidents.readable import readable
from core.model.conversation import Audience, Channel, Person, Place, channel_audience
from core.model.incident import Incident, may_see_incident

Role = Literal["viewer", "responder", "operator"]
"""A viewer reads. A responder also asks, and presses buttons. An operator also sees sources, predictions, dead letters and
the audit log, and retries."""

ROLES: tuple[Role, ...] = get_args(Role)  # each includes those before it


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person at the local page. Without an `audience`, everything is shown, as to those who hold the console token."""

    person: Person
    role: Role
    audience: Audience | None = None

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def sees(self, place: Place, channels: Sequence[Channel]) -> bool:
        """Return whether the person may read a place. Here and below, `channels` are the channels as they are now."""
        return self.audience is None or self.audience.may_read(channel_audience(place, channels).disclosed_to)

    def shown(self, incident: Incident, channels: Sequence[Channel]) -> Incident | None:
        """Return an incident as far as the person may read it; None if the person may not see it."""
        if self.audience is None:
            return incident
        return (
            readable(incident, self.audience, channels) if may_see_incident(self.audience, incident, channels) else None
        )


Name = Annotated[str, Field(min_length=1)]


class GroupSection(Section):
    """The rights of a group: a role, and the private channels whose texts it may read, beside what everybody may."""

    role: Role = "viewer"
    channels: tuple[str, ...] = ()


class SignInSection(Section):
    """An OpenID provider, such as Entra ID, Okta or Keycloak, where Plumbline is registered as a confidential client.

    `groups` are the values of `groups_claim`; who is in none of them is not let in. `id_claim` is what identifies a person:
    `oid` with Entra ID, which Teams knows too. With `managed_addresses`, an address counts although the provider does not
    call it verified, because only administrators set it. `client_certificate` is a PEM file with a certificate and its
    private RSA key, in place of `client_secret_env` (RFC 7523, `private_key_jwt`, signed with PS256). `agents_audience` is the audience of the access tokens with which
    agents may call `/mcp`; the address of `/mcp` unless it is given.
    """

    issuer: Url
    client_id: Name
    client_secret_env: EnvironmentName = "PLUMBLINE_SIGN_IN_SECRET"  # noqa: S105 -- the name of a variable
    client_certificate: Path | None = None
    groups: Annotated[dict[Name, GroupSection], Field(min_length=1)]
    scopes: tuple[Name, ...] = ("openid", "profile", "email")
    groups_claim: Name = "groups"
    id_claim: Name = "sub"
    managed_addresses: bool = False
    agents_audience: str = ""
