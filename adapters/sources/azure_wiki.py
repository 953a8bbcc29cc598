"""Pages of an Azure DevOps wiki, REST API version 7.1.

https://learn.microsoft.com/rest/api/azure/devops/wiki/pages/get-page
https://learn.microsoft.com/rest/api/azure/devops/git/items/list

Each run lists the pages, and the files of the Git repository behind the wiki: the object id of a file, which is the ETag
of its page, tells whether the page changed. Then new and changed pages are read.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Annotated, Literal
from urllib.parse import quote

from pydantic import AliasPath, BaseModel, Field, TypeAdapter

from adapters.edge import Moment
from adapters.http import Gone, Http, basic, source_server
from adapters.section import EnvironmentName, Host, Url
from adapters.sources.parsing import FileOrigin, documents_of
from adapters.sources.section import Readers, SourceSection, positions_of
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut, SourceChanges

PAGES = 25  # per batch
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


_WIKI, _PAGE, _FILES, _CURSOR = TypeAdapter(_Wiki), TypeAdapter(_Page), TypeAdapter(_Files), TypeAdapter(dict[str, str])


class AzureWikiSource:
    """The pages of a wiki. Each names its readers in front matter, or has the `readers` of the source."""

    def __init__(self, name: str, server: Http, project: str, wiki: str, readers: frozenset[str]) -> None:
        self.name = name
        self._server = server
        self._apis = f"{quote(project, safe='')}/_apis"
        self._wiki = f"{self._apis}/wiki/wikis/{quote(wiki, safe='')}"
        self._readers = readers

    async def check(self) -> None:
        await self._pages("oneLevel")

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        pages, files = await self._pages("full"), await self._files()
        versions = {page.path: files[page.gitItemPath].objectId for page in pages if page.gitItemPath in files}
        done = {path: version for path, version in positions_of(cursor, _CURSOR).items() if path in versions}
        due = [
            page
            for page in pages
            if self._id(page) not in known_ids or done.get(page.path, "") != versions.get(page.path)
        ]
        kept = known_ids & ({self._id(page) for page in pages} - {self._id(page) for page in due})
        for start in range(0, len(due), PAGES):
            batch = due[start : start + PAGES]
            parts = [each for page in batch for each in await self._documents(page, files)]
            documents = tuple(each for each in parts if isinstance(each, Document) and each.text.strip())
            kept |= {document.id for document in documents}
            done |= {page.path: versions[page.path] for page in batch if page.path in versions}
            left_out = tuple(each for each in parts if isinstance(each, LeftOut))
            yield SourceChanges(documents, frozenset(), json.dumps(done), left_out)
        yield SourceChanges((), known_ids - kept, json.dumps(done))

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

    async def _documents(self, page: _Page, files: Mapping[str, _File]) -> list[Document | LeftOut]:
        """Return the document of a page; none for one that was deleted meanwhile."""
        query = {"path": page.path, "includeContent": "true"}
        try:
            content = (await self._server.parsed(f"{self._wiki}/pages", _PAGE, query | VERSION)).content
        except Gone:
            return []
        path = PurePosixPath(f"{page.path.strip('/')}.md")
        parts = await documents_of(FileOrigin(self.name, path, page.remoteUrl, self._readers), content.encode())
        file = files.get(page.gitItemPath)
        return [
            replace(each, updated_at=each.updated_at or (file.changed_at if file else None))
            if isinstance(each, Document)
            else each
            for each in parts
        ]

    def _id(self, page: _Page) -> str:
        return f"{self.name}/{page.path.strip('/')}.md"


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
