"""Pages of an Azure DevOps wiki, REST API version 7.1.

https://learn.microsoft.com/rest/api/azure/devops/wiki/pages/get-page
https://learn.microsoft.com/rest/api/azure/devops/git/items/list

Each run lists the pages, and the files of the Git repository behind the wiki: the object id of a file, which is the ETag
of its page, tells whether the page changed. Then new and changed pages are read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.http import Http, Moment, basic, source_server
from adapters.section import EnvironmentName, Host, Url
from adapters.sources.parsing import FileOrigin, documents_of
from adapters.sources.section import Entry, Indexed, ListingPart, OnePlace, Position, Readers, SourceSection
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut

VERSION = {"api-version": "7.1"}


class _Wiki(BaseModel):
    repositoryId: str
    branch: str = Field("", validation_alias=AliasPath("versions", 0, "version"))


class _Page(BaseModel):
    path: str
    gitItemPath: str = ""
    remoteUrl: str = ""
    content: str = ""
    subPages: list[_Page] = []

    @property
    def file(self) -> PurePosixPath:
        """Return the path of the page as that of a file."""
        return PurePosixPath(f"{self.path.strip('/')}.md")

    def all(self) -> Iterator[_Page]:
        """Yield this page, unless it is the root, and all pages below it."""
        if self.path != "/":
            yield self
        for page in self.subPages:
            yield from page.all()


class _File(BaseModel):
    path: str
    objectId: str
    changed_at: Moment | None = Field(None, validation_alias=AliasPath("latestProcessedChange", "committer", "date"))


class _Files(BaseModel):
    value: list[_File]


_WIKI, _PAGE, _FILES = TypeAdapter(_Wiki), TypeAdapter(_Page), TypeAdapter(_Files)


class AzureWikiSource(OnePlace):
    """The pages of a wiki. Each names its readers in front matter, or has the `readers` of the source."""

    def __init__(self, name: str, server: Http, project: str, wiki: str, readers: frozenset[str]) -> None:
        self.name = name
        self._server = server
        self._apis = f"{quote(project, safe='')}/_apis"
        self._wiki = f"{self._apis}/wiki/wikis/{quote(wiki, safe='')}"
        self._readers = readers

    async def check(self) -> None:
        await self._pages("oneLevel")

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        pages, files = await self._pages("full"), await self._files()
        entries = list[Entry]()
        for page in pages:
            file, path = files.get(page.gitItemPath), str(page.file)
            read = partial(self._read, page, file)
            entries.append(Entry(path, self._readers, file.objectId if file else "", read, path))
        yield ListingPart(entries, is_whole=True)

    async def _pages(self, recursion: str) -> Sequence[_Page]:
        query = {"path": "/", "recursionLevel": recursion}
        pages = tuple((await self._server.parsed(f"{self._wiki}/pages", _PAGE, query | VERSION)).all())
        if not pages:
            raise SourceUnavailable(f"{self.name}: the wiki has no page, or the token may not read it.")
        return pages

    async def _files(self) -> Mapping[str, _File]:
        wiki = await self._server.parsed(self._wiki, _WIKI, VERSION)
        query = {"recursionLevel": "full", "latestProcessedChange": "true"}
        if wiki.branch:
            query |= {"versionDescriptor.version": wiki.branch, "versionDescriptor.versionType": "branch"}
        address = f"{self._apis}/git/repositories/{quote(wiki.repositoryId, safe='')}/items"
        return {file.path: file for file in (await self._server.parsed(address, _FILES, query | VERSION)).value}

    async def _read(self, page: _Page, file: _File | None) -> list[Document | LeftOut]:
        query = {"path": page.path, "includeContent": "true"}
        content = (await self._server.parsed(f"{self._wiki}/pages", _PAGE, query | VERSION)).content
        changed_at = file.changed_at if file else None
        origin = FileOrigin(self.name, page.file, page.remoteUrl, self._readers, updated_at=changed_at)
        return await documents_of(origin, content.encode())


class AzureWikiSection(SourceSection):
    """A wiki of Azure DevOps. `url` names the organization or collection, `wiki` the wiki by its name or id.

    `token_env` names the variable with a personal access token that may read wikis and code. `readers` are those of pages
    that do not name any in front matter.
    """

    kind: Literal["azure_devops_wiki"]
    url: Url
    project: Annotated[str, Field(min_length=1)]
    wiki: Annotated[str, Field(min_length=1)]
    token_env: EnvironmentName
    readers: Readers

    @property
    def place(self) -> str:
        return f"{self.url} {self.project} {self.wiki}"

    def open(self, host: Host) -> AzureWikiSource:
        token = basic("", host.settings.secret(self.token_env, self.name))
        server = source_server(f"Azure DevOps at {self.url}", self.url, host.session, token)
        return AzureWikiSource(self.name, server, self.project, self.wiki, frozenset(self.readers))
