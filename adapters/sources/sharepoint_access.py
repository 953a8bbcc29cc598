"""The readers of files in SharePoint: permissions, whose people and groups are resolved as people and channels of Teams.

https://learn.microsoft.com/graph/api/driveitem-list-permissions · https://learn.microsoft.com/graph/api/resources/permission
https://learn.microsoft.com/graph/api/group-list-transitivemembers · https://learn.microsoft.com/graph/api/channel-list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapters.http import Http, Refused
from adapters.microsoft_graph.credentials import graph_values
from adapters.sources.front_matter import NOBODY
from adapters.sources.teams_messages import MAX_MEMBERS
from core.ports import LeftOut

RAISED = frozenset({401, 404, 410})  # HTTP status codes: the token is refused, or the file is gone
MEMBERS = {"$select": "id,displayName,mail,userPrincipalName", "$top": "999"}

UNRESOLVED = "Its members are unknown ({}), so it reads nothing: give the app GroupMember.Read.All, or add `group:{}` to `identities`."
UNMAPPED = (
    "Graph does not give the members of a site's own group, so it reads nothing: add `site-group:{}` to `identities`."
)
UNTOLD = "Graph does not say who may read it ({}), so nobody does."


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Identity(_Model):
    id: str | None = None
    displayName: str | None = None
    email: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.displayName, self.email))) if self.displayName else ()


class _Identities(_Model):
    """The one who is granted something: a person, a group of the tenant, or a group of the site."""

    user: Identity | None = None
    group: Identity | None = None
    siteGroup: Identity | None = None


class _Permission(_Model):
    """A permission. Whoever has used or was sent a link is in `grantedToIdentitiesV2`; nobody else is a reader by it."""

    roles: list[str] = Field(min_length=1)
    grantedToV2: _Identities | None = None
    grantedToIdentitiesV2: list[_Identities] = []

    @property
    def granted(self) -> Iterator[_Identities]:
        yield from (each for each in (self.grantedToV2, *self.grantedToIdentitiesV2) if each)


class _Member(_Model):
    kind: str = Field("", alias="@odata.type")
    id: str
    displayName: str | None = None
    mail: str | None = None
    userPrincipalName: str | None = None


_PERMISSIONS, _MEMBERS = TypeAdapter(list[_Permission]), TypeAdapter(list[_Member])


class SharePointAccess:
    """The readers of files, as Graph gives them during one run.

    `identities` maps a group of a site, a group or a person, as `site-group:NAME`, `group:ID` or `user:ID`, to reader
    names. People and groups of the tenant are resolved without it; groups of a site, whose members Graph does not give,
    are not. `people` are the names of all who may read something, and `notes` says who could not be resolved.
    """

    def __init__(self, server: Http, identities: Mapping[str, frozenset[str]]) -> None:
        self._server = server
        self._identities = identities
        self._groups: dict[str, frozenset[str]] = {}
        self.people: set[tuple[str, ...]] = set()
        self.notes: list[LeftOut] = []

    async def readers_of(self, drive_id: str, item_id: str, name: str) -> frozenset[str]:
        """Return the readers of a file; nobody if Graph does not give them. Raises Refused if it is gone."""
        address = f"drives/{quote(drive_id)}/items/{quote(item_id)}/permissions"
        try:
            permissions = _PERMISSIONS.validate_python(await graph_values(self._server, address))
        except Refused as error:
            if error.status in RAISED:
                raise
            self._note(name, UNTOLD.format(f"HTTP status {error.status}"))
            return frozenset({NOBODY})
        except ValidationError:
            self._note(name, UNTOLD.format("its answer has an unexpected format"))
            return frozenset({NOBODY})
        granted = [each for permission in permissions for each in permission.granted]
        readers = [reader for identities in granted for reader in await self._readers(identities)]
        return frozenset(readers) or frozenset({NOBODY})

    async def _readers(self, granted: _Identities) -> frozenset[str]:
        readers = frozenset[str]()
        if granted.user and granted.user.id:
            self.people |= {names for names in (granted.user.names,) if names}
            readers |= {_person(granted.user.id), *self._mapped(f"user:{granted.user.id}")}
        if granted.group and granted.group.id:
            readers |= await self._group(granted.group.id, granted.group.displayName or granted.group.id)
        if granted.siteGroup and granted.siteGroup.displayName:
            readers |= self._site_group(granted.siteGroup.displayName)
        return readers

    def _site_group(self, name: str) -> frozenset[str]:
        key = f"site-group:{name}"
        if key not in self._identities and key not in self._groups:
            self._note(f"group {name}", UNMAPPED.format(name))
        self._groups[key] = self._mapped(key)
        return self._groups[key]

    async def _group(self, group_id: str, name: str) -> frozenset[str]:
        """Return the members of a group, the channels that all members of its team read, and what it is mapped to."""
        if group_id not in self._groups:
            key = f"group:{group_id}"
            try:
                values = await graph_values(
                    self._server, f"groups/{quote(group_id, safe='')}/transitiveMembers", MEMBERS
                )
                members = [each for each in _MEMBERS.validate_python(values) if each.kind.endswith(".user")]
            except (Refused, ValidationError) as error:
                reason = f"HTTP status {error.status}" if isinstance(error, Refused) else "an unexpected answer"
                if key not in self._identities:
                    self._note(f"group {name}", UNRESOLVED.format(reason, group_id))
                members = []
            self.people |= {
                tuple(filter(None, (each.displayName, each.mail, each.userPrincipalName)))
                for each in members
                if each.displayName
            }
            persons = [_person(each.id) for each in members] if len(members) <= MAX_MEMBERS else []
            self._groups[group_id] = frozenset(
                {*self._mapped(key), *persons, *(await self._channels(group_id) if members else ())}
            )
        return self._groups[group_id]

    async def _channels(self, group_id: str) -> list[str]:
        """Return the standard channels of the team with the same members as a group; none for a group without a team."""
        try:
            values = await graph_values(self._server, f"teams/{quote(group_id, safe='')}/channels")
        except Refused:
            return []
        return [f"channel:teams:{value['id']}" for value in values if value.get("membershipType") == "standard"]

    def _mapped(self, identity: str) -> frozenset[str]:
        return self._identities.get(identity, frozenset())

    def _note(self, name: str, reason: str) -> None:
        self.notes.append(LeftOut(name, reason, is_indexed=True))


def _person(user_id: str) -> str:
    return f"person:teams:{user_id}"
