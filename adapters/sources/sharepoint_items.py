"""Sites, libraries, files and pages of SharePoint as Microsoft Graph returns them, their readers, and a page's HTML.

https://learn.microsoft.com/graph/api/resources/site · https://learn.microsoft.com/graph/api/resources/driveitem
https://learn.microsoft.com/graph/api/resources/sitepage · https://learn.microsoft.com/graph/api/resources/canvaslayout
https://learn.microsoft.com/graph/api/resources/standardwebpart

https://learn.microsoft.com/graph/api/driveitem-list-permissions · https://learn.microsoft.com/graph/api/resources/permission
https://learn.microsoft.com/graph/api/group-list-transitivemembers · https://learn.microsoft.com/graph/api/channel-list
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from adapters.edge import Moment
from adapters.http import Http, Refused
from adapters.microsoft_graph import graph_values
from adapters.sources.formats import has_format, web_address
from adapters.sources.front_matter import NOBODY
from adapters.sources.teams_channels import MAX_MEMBERS
from core.model.text import missing_part
from core.ports import LeftOut

ID = r"^[\w!-]+$"
SILENT = frozenset(
    {
        "2161a1c6-db61-4731-b97c-3cdb303f7cbb",  # divider
        "8654b779-4886-46d4-8ffb-b5ed960ee986",  # spacer
        "d1d91016-032f-456d-98a4-721247c305e8",  # image
        "6410b3b6-d440-4663-8744-378976dc041e",  # link preview
    }
)
"""Types of web parts that hold no text: https://learn.microsoft.com/graph/api/resources/standardwebpart"""
CODE = "code"  # the key of the text of a code snippet and of Markdown


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Site(_Model):
    id: str = Field(pattern=r"^[\w!-][\w.,!-]*$")
    name: str = ""
    displayName: str = ""


class Library(_Model):
    id: str = Field(pattern=ID)
    name: str = ""


class Item(_Model):
    """The properties that files and pages share."""

    id: str = Field(pattern=ID)
    name: str = ""
    eTag: str | None = None
    webUrl: str = ""
    lastModifiedDateTime: Moment | None = None
    author: Identity | None = Field(None, validation_alias=AliasPath("createdBy", "user"))
    editor: Identity | None = Field(None, validation_alias=AliasPath("lastModifiedBy", "user"))

    @property
    def version(self) -> str:
        """Return a text that changes with the item; empty if there is none."""
        return self.eTag or (self.lastModifiedDateTime.isoformat() if self.lastModifiedDateTime else "")

    @property
    def url(self) -> str:
        return web_address(self.webUrl)

    @property
    def people(self) -> Iterator[tuple[str, ...]]:
        return (each.names for each in (self.author, self.editor) if each and each.names)


class File(Item):
    """An item of a library: a file, a folder, or what was deleted."""

    size: int = 0
    file: dict[str, Any] | None = None
    deleted: dict[str, Any] | None = None

    @property
    def is_there(self) -> bool:
        return self.file is not None and self.deleted is None

    @property
    def path(self) -> PurePosixPath:
        return PurePosixPath(PurePosixPath(self.name).name)

    @property
    def is_document(self) -> bool:
        return self.is_there and has_format(self.path)


class _Pair(_Model):
    key: str = ""
    value: str = ""


class _WebPart(_Model):
    """A text with HTML, or another part with what SharePoint's own search indexes of it."""

    innerHtml: str | None = None
    webPartType: str | None = None
    title: str | None = Field(None, validation_alias=AliasPath("data", "title"))
    html: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "htmlStrings"))
    texts: list[_Pair] = Field([], validation_alias=AliasPath("data", "serverProcessedContent", "searchablePlainTexts"))

    @property
    def content(self) -> str:
        if self.innerHtml:
            return self.innerHtml
        parts = [pair.value for pair in self.html]
        if not any(parts):
            parts = [_text(pair) for pair in self.texts if pair.value]
        if not any(parts) and self.webPartType and self.webPartType.lower() not in SILENT:
            parts = [f"<p>{escape(missing_part(self.title or 'a web part'))}</p>"]
        return "".join(parts)


class _Column(_Model):
    webparts: list[_WebPart] = []


class _Section(_Model):
    columns: list[_Column] = []


class _Canvas(_Model):
    horizontalSections: list[_Section] = []
    verticalSection: _Column | None = None


class SitePage(Item):
    title: str = ""
    level: str = Field("", validation_alias=AliasPath("publishingState", "level"))
    canvasLayout: _Canvas | None = None

    @property
    def is_published(self) -> bool:
        """Return whether the newest version is published; Graph returns drafts, which only editors see."""
        return self.level == "published"

    @property
    def html(self) -> str:
        """Return the content from left to right and from top to bottom."""
        canvas = self.canvasLayout or _Canvas()
        columns = [column for section in canvas.horizontalSections for column in section.columns]
        if canvas.verticalSection:
            columns.append(canvas.verticalSection)
        return "".join(f"<div>{part.content}</div>" for column in columns for part in column.webparts)


def _text(pair: _Pair) -> str:
    return f"<pre>{escape(pair.value)}</pre>" if pair.key == CODE else f"<p>{escape(pair.value)}</p>"


RAISED = frozenset({401, 404, 410})  # HTTP status codes: the token is refused, or the file is gone
MEMBERS = {"$select": "id,displayName,mail,userPrincipalName", "$top": "999"}

UNRESOLVED = "Its members are unknown ({}), so it reads nothing: give the app GroupMember.Read.All, or add `group:{}` to `identities`."
UNMAPPED = (
    "Graph does not give the members of a site's own group, so it reads nothing: add `site-group:{}` to `identities`."
)
UNTOLD = "Graph does not say who may read it ({}), so nobody does."


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

    def noted(self) -> list[LeftOut]:
        """Return the notes, once."""
        noted, self.notes = self.notes, []
        return noted

    def _note(self, name: str, reason: str) -> None:
        self.notes.append(LeftOut(name, reason, is_indexed=True))


def _person(user_id: str) -> str:
    return f"person:teams:{user_id}"
