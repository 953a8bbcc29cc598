"""Worlds behind a server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Self

import aiohttp

from adapters.http import Retries, Token, basic, source_server
from adapters.microsoft import graph_credentials
from adapters.slack.client import slack_client
from adapters.sources.azure_wiki import AzureWikiSource
from adapters.sources.confluence import Access, ConfluenceSource
from adapters.sources.notion import HEADERS, NotionSource
from adapters.sources.sharepoint import SharePointSource
from adapters.sources.slack_history import SlackChannelsSource
from adapters.sources.teams_history import TeamsChannelsSource
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.ports import LeftOut
from tests.contract.source_worlds.world import CHANNEL, TEAM, TEAMS_CHANNEL
from tests.fakes import (
    azure_wiki_server,
    confluence_server,
    graph_server,
    notion_server,
    sharepoint_server,
    slack_history_server,
)
from tests.fakes.azure_wiki_server import FakeAzureWiki
from tests.fakes.clock import FakeClock
from tests.fakes.confluence_server import FakeConfluence, Page
from tests.fakes.graph_server import FakeGraph
from tests.fakes.notion_server import FakeNotion, block, page_id
from tests.fakes.notion_server import StoredPage as NotionPage
from tests.fakes.notion_server import text as rich
from tests.fakes.sharepoint_server import KEEPERS, FakeSharePoint, StoredPage, canvas_of, granted, text_part
from tests.fakes.slack_history_server import FakeSlackHistory

READABLE = {"site-group:Ops Visitors": frozenset({PUBLIC})}


class ConfluenceWorld:
    def __init__(self, server: FakeConfluence, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self._changes = 0
        self.source = self.source_with(session, Access(frozenset({PUBLIC})))

    def source_with(self, session: aiohttp.ClientSession, access: Access) -> ConfluenceSource:
        token = Token(f"Bearer {confluence_server.TOKEN}")
        rest = source_server("Confluence", self.server.url, session, token, _recorded(self.pauses))
        return ConfluenceSource("docs", rest, self.server.url, ["OPS"], access)

    def write(self, key: str, text: str) -> None:
        self._changes += 1
        when = f"2026-02-01T10:{self._changes:02}:00.000+02:00"
        self.server.pages[f"10{key}"] = Page(f"10{key}", f"Page {key}", f"<p>{text}</p>", when)

    def remove(self, key: str) -> None:
        del self.server.pages[f"10{key}"]

    def hide(self, key: str) -> None:
        self.server.pages[f"10{key}"].groups = ("vault-keepers",)

    def expire_token(self) -> None:
        self.server.token = "another"


class AzureWikiWorld:
    def __init__(self, server: FakeAzureWiki, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        rest = source_server("Azure", server.url, session, basic("", azure_wiki_server.TOKEN), _recorded(self.pauses))
        self.source = AzureWikiSource("docs", rest, "Shop floor", "Shop.wiki", frozenset({PUBLIC}))

    def write(self, key: str, text: str) -> None:
        self.server.pages[f"/Runbooks/Page {key}"] = text

    def remove(self, key: str) -> None:
        del self.server.pages[f"/Runbooks/Page {key}"]

    def hide(self, key: str) -> None:
        path = f"/Runbooks/Page {key}"
        self.server.pages[path] = f"---\nreaders: [channel:vault]\n---\n{self.server.pages[path]}"

    def expire_token(self) -> None:
        self.server.token = "another"


class SlackWorld:
    def __init__(self, server: FakeSlackHistory, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock()
        server.user("U1", "Asha Brandt", "asha.brandt", "asha@marigold.example")
        server.user("U2", "Mateo Silvestri", "msilvestri")
        server.channel(CHANNEL, "ci-cd", members=("U1", "U2"))
        pauses = _recorded(self.pauses)
        client = slack_client(slack_history_server.TOKEN, server.url, session, pauses, only_reads=True)
        self.source = SlackChannelsSource("docs", client, [CHANNEL], self.clock)

    def write(self, key: str, text: str) -> None:
        ts = self.ts(key)
        if ts in self.server.messages[CHANNEL]:
            self.server.edit(CHANNEL, ts, text, f"{self.clock.now().timestamp():.6f}")
        else:
            self.server.post(CHANNEL, ts, text)

    def remove(self, key: str) -> None:
        self.server.delete(CHANNEL, self.ts(key))

    def hide(self, key: str) -> None:
        self.server.channels[CHANNEL]["is_private"] = True

    def expire_token(self) -> None:
        self.server.token = "another"

    @staticmethod
    def ts(key: str) -> str:
        return f"17699{key}0000.000100"


class TeamsWorld:
    def __init__(self, server: FakeGraph, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock()
        server.team(TEAM)
        server.channel(TEAM, TEAMS_CHANNEL, "ci-cd")
        server.member(TEAMS_CHANNEL, "u-1", "Asha Brandt", "asha@marigold.example")
        secrets = (graph_server.TENANT, graph_server.CLIENT_ID, graph_server.CLIENT_SECRET)
        credentials = graph_credentials(*secrets, session, server.login_url)
        rest = source_server("Graph", server.url, session, credentials, _recorded(self.pauses))
        self.source = TeamsChannelsSource("docs", rest, {TEAM: ()}, self.clock)

    def write(self, key: str, text: str) -> None:
        if self.id(key) in self.server.messages[TEAMS_CHANNEL]:
            self.server.edit(TEAMS_CHANNEL, self.id(key), f"<p>{text}</p>")
        else:
            self.server.post(TEAMS_CHANNEL, self.id(key), f"<p>{text}</p>")

    def remove(self, key: str) -> None:
        self.server.delete(TEAMS_CHANNEL, self.id(key))

    def hide(self, key: str) -> None:
        self.server.channels[TEAM][TEAMS_CHANNEL]["membershipType"] = "private"

    def expire_token(self) -> None:
        self.server.secret = "another"
        self.server.expire_tokens()

    @staticmethod
    def id(key: str) -> str:
        return f"17699{key}0000000"


class SharePointWorld:
    """A library, or the pages of a site."""

    def __init__(self, server: FakeSharePoint, session: aiohttp.ClientSession, *, pages: bool) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock()
        self.has_pages = pages
        if pages:
            server.libraries.clear()
        self.source = self.source_with(session)

    def source_with(
        self,
        session: aiohttp.ClientSession,
        identities: Mapping[str, frozenset[str]] = READABLE,
        libraries: Sequence[str] = (),
        page_readers: frozenset[str] = frozenset({PUBLIC}),
    ) -> SharePointSource:
        secrets = (graph_server.TENANT, graph_server.CLIENT_ID, graph_server.CLIENT_SECRET)
        credentials = graph_credentials(*secrets, session, self.server.login_url)
        rest = source_server("Microsoft Graph", self.server.url, session, credentials, _recorded(self.pauses))
        return SharePointSource(
            "docs",
            replace(rest, elsewhere=frozenset({self.server.download_host})),
            [sharepoint_server.ADDRESS],
            self.clock,
            libraries=libraries,
            page_readers=page_readers if self.has_pages else frozenset(),
            identities=identities,
        )

    def write(self, key: str, text: str) -> None:
        if not self.has_pages:
            self.server.put(f"01FILE{key}", f"Page {key}.md", f"# Page {key}\n\n{text}" if text else "")
            return
        before = self.server.pages.get(f"p-{key}")
        canvas = canvas_of([text_part(f"<p>{text}</p>")])
        self.server.pages[f"p-{key}"] = StoredPage(f"Page {key}", canvas, version=before.version + 1 if before else 1)

    def remove(self, key: str) -> None:
        if self.has_pages:
            del self.server.pages[f"p-{key}"]
        else:
            self.server.drop(f"01FILE{key}")

    def hide(self, key: str) -> None:
        if self.has_pages:
            self.remove(key)  # Graph does not say who may read a page
        else:
            self.server.files[f"01FILE{key}"].permissions = [granted(KEEPERS)]

    def expire_token(self) -> None:
        self.server.secret = "another"
        self.server.expire_tokens()


class NotionWorld:
    def __init__(self, server: FakeNotion, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
        self._edits = 0
        self.source = self.source_with(session, frozenset({PUBLIC}))

    def source_with(self, session: aiohttp.ClientSession, readers: frozenset[str]) -> NotionSource:
        token = Token(f"Bearer {notion_server.TOKEN}")
        rest = source_server("Notion", self.server.url, session, token, _recorded(self.pauses))
        return NotionSource("docs", replace(rest, headers=HEADERS), readers, self.clock)

    def write(self, key: str, text: str) -> None:
        """Make a page of a paragraph, of which the parts between two pairs of tildes are struck out."""
        runs = [rich(part, strikethrough=bool(number % 2)) for number, part in enumerate(text.split("~~")) if part]
        self.put(key, [block("paragraph", *runs)] if text else [])

    def put(self, key: str, blocks: list[Any], **properties: Any) -> None:
        self._edits += 1
        edited = f"2026-02-01T10:{self._edits:02}:00.000Z"
        self.server.pages[page_id(key)] = NotionPage(f"Page {key}", blocks, edited, properties)

    def remove(self, key: str) -> None:
        del self.server.pages[page_id(key)]

    def hide(self, key: str) -> None:
        readers = {"id": "%3BBw", "type": "multi_select", "multi_select": [{"name": "channel:vault"}]}
        self.put(key, self.server.pages[page_id(key)].blocks, Readers=readers)

    def expire_token(self) -> None:
        self.server.token = "another"


def _recorded(pauses: list[float]) -> Retries:
    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    return Retries(sleep=pause)


class SourceReading:
    """The documents of a source, with its changes applied as the index does."""

    def __init__(self) -> None:
        self.documents: dict[str, Document] = {}
        self.cursor = ""
        self.left_out: list[LeftOut] = []
        self.read = set[str]()

    async def go_on(self, world: AzureWikiWorld | SharePointWorld | NotionWorld) -> Self:
        """Read what changed. `read` are the ids of the documents that came, `left_out` what did not."""
        world.refusals.requests.clear()
        self.left_out, self.read = [], set()
        async for part in world.source.changes(self.cursor, frozenset(self.documents)):
            self.documents |= {document.id: document for document in part.documents}
            self.read |= {document.id for document in part.documents}
            for gone in part.removed_ids:
                del self.documents[gone]
            self.cursor = part.cursor
            self.left_out += part.left_out
        return self

    @property
    def texts(self) -> list[str]:
        return [document.text for document in self.documents.values()]

    @property
    def reasons(self) -> dict[str, str]:
        return {each.path: each.reason for each in self.left_out}


@asynccontextmanager
async def confluence_world(*, cloud: bool) -> AsyncIterator[ConfluenceWorld]:
    async with FakeConfluence(cloud=cloud) as server, aiohttp.ClientSession() as session:
        yield ConfluenceWorld(server, session)


@asynccontextmanager
async def azure_wiki_world() -> AsyncIterator[AzureWikiWorld]:
    async with FakeAzureWiki() as server, aiohttp.ClientSession() as session:
        yield AzureWikiWorld(server, session)


@asynccontextmanager
async def slack_world() -> AsyncIterator[SlackWorld]:
    async with FakeSlackHistory() as server, aiohttp.ClientSession() as session:
        yield SlackWorld(server, session)


@asynccontextmanager
async def teams_world() -> AsyncIterator[TeamsWorld]:
    async with FakeGraph() as server, aiohttp.ClientSession() as session:
        yield TeamsWorld(server, session)


@asynccontextmanager
async def sharepoint_world(*, pages: bool = False) -> AsyncIterator[SharePointWorld]:
    async with FakeSharePoint() as server, aiohttp.ClientSession() as session:
        yield SharePointWorld(server, session, pages=pages)


@asynccontextmanager
async def notion_world() -> AsyncIterator[NotionWorld]:
    async with FakeNotion() as server, aiohttp.ClientSession() as session:
        yield NotionWorld(server, session)
