"""Sources whose server never comes to an end: some send whoever follows their links round in a circle."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from pydantic import TypeAdapter

from adapters.http import HttpAnswer
from adapters.readers.pages import _link
from adapters.sources.confluence import Access, ConfluenceSource
from adapters.sources.notion import NotionSource
from adapters.sources.sharepoint import SharePointSource
from adapters.sources.slack_history import SlackChannelsSource
from adapters.sources.teams_history import TeamsChannelsSource
from core.model.conversation import PUBLIC
from core.model.errors import SourceUnavailable
from core.ports import ChangingSource
from tests.cases import every_case
from tests.fakes.clock import FakeClock

T = TypeVar("T")

MAX_REQUESTS = 20  # requests


class Circle:
    """Answers everything with the same page, which leads to itself."""

    system = "The server"

    def __init__(self, page: Mapping[str, Any]) -> None:
        self.page = page
        self.asked = 0

    async def api_call(self, method: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(data=await self.get(method))

    async def answer(self, address: str, *, value: object) -> SimpleNamespace:
        return SimpleNamespace(body=json.dumps(await self.get(address)))

    async def get(self, address: str, parameters: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        self.asked += 1
        assert self.asked < MAX_REQUESTS, "nobody follows a circle for ever"
        return self.page

    async def parsed(
        self, address: str, kind: TypeAdapter[T], parameters: Mapping[str, str] | None = None, *, value: object = None
    ) -> T:
        return kind.validate_python(await self.get(address, parameters))

    def listed(self, answer: Mapping[str, Any], name: str, kind: TypeAdapter[list[T]]) -> list[T]:
        return kind.validate_python(answer[name])


def source(make: Callable[[Any], ChangingSource], page: Mapping[str, Any]) -> ChangingSource:
    return make(Circle(page))


MESSAGE = {"ts": "1773480600.000100", "text": "The till is slow."}
CIRCLES: dict[str, ChangingSource] = {
    "confluence": source(
        lambda server: ConfluenceSource("docs", server, "https://wiki.example", ["OPS"], Access(frozenset({PUBLIC}))),
        {"results": [], "_links": {"next": "/rest/api/content/search?cursor=1"}},
    ),
    "teams": source(
        lambda server: TeamsChannelsSource("docs", server, {"team-1": ()}, FakeClock()),
        {"value": [], "@odata.nextLink": "https://graph.example/teams?$skip=1"},
    ),
    "sharepoint": source(
        lambda server: SharePointSource("docs", server, ["https://c.example/sites/ops"], FakeClock(), identities={}),
        {"id": "site", "value": [], "@odata.nextLink": "https://graph.example/sites/site/drives?$skip=1"},
    ),
    "notion": source(
        lambda server: NotionSource("docs", server, frozenset({PUBLIC}), FakeClock()),
        {"results": [], "next_cursor": "1", "has_more": True},
    ),
    "slack people": source(
        lambda server: SlackChannelsSource("docs", server, ["C1"], FakeClock()),
        {"ok": True, "response_metadata": {"next_cursor": "1"}},
    ),
    "slack history": source(
        lambda server: SlackChannelsSource("docs", server, ["C1"], FakeClock()),
        {"ok": True, "messages": [MESSAGE], "has_more": True},
    ),
}


async def read(endless: ChangingSource, removed: set[str]) -> None:
    async for part in endless.changes("", frozenset({"docs/C1/1.1"})):
        removed |= part.removed_ids


@every_case("kind", CIRCLES)
async def test_a_server_that_goes_on_for_ever_is_unavailable_and_loses_nothing(kind: str) -> None:
    removed = set[str]()
    with pytest.raises(SourceUnavailable):
        await read(CIRCLES[kind], removed)
    assert removed == set()


@every_case(
    ("header", "following"),
    [
        ('<https://x.example/1>; rel="prev", <https://x.example/2>; rel="next"', "https://x.example/2"),
        ('<https://x.example/2?q=größe>; rel="next"', "https://x.example/2?q=größe"),
        ('<https://x.example/v;b=1?page=2&of=a;b>; rel="next"', "https://x.example/v;b=1?page=2&of=a;b"),
        ('<https://x.example/2>; title="page=2"; rel="next"', "https://x.example/2"),
        ("<https://x.example/2>;rel=next", "https://x.example/2"),
        ("<https://x.example/2>; rel='last next'", "https://x.example/2"),
        ('<https://x.example/2>; rel="next"; results="false"', ""),
        ('<https://x.example/2>; rel="next-archive"', ""),
        ("", ""),
    ],
)
def test_the_next_page_is_the_one_that_the_header_names(header: str, following: str) -> None:
    assert _link(HttpAnswer(200, {"Link": header}, b"")) == following
