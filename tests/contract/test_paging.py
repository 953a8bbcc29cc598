"""Sources whose server never comes to an end: some send whoever follows their links round in a circle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from adapters.rest import Rest
from adapters.sources.confluence import ConfluenceSource
from adapters.sources.confluence_pages import Access
from adapters.sources.slack_channels import SlackChannelsSource
from adapters.sources.teams_channels import TeamsChannelsSource
from core.model.conversation import PUBLIC
from core.model.errors import SourceUnavailable
from core.ports import ChangingSource
from tests.fakes.clock import FakeClock

PATIENCE = 20  # requests


class Circle:
    """Answers everything with the same page, which leads to itself."""

    def __init__(self, page: Mapping[str, Any]) -> None:
        self.page = page
        self.asked = 0

    async def get(self, address: str, parameters: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        self.asked += 1
        assert self.asked < PATIENCE, "nobody follows a circle for ever"
        return self.page


def source(make: Callable[[Rest], ChangingSource], page: Mapping[str, Any]) -> ChangingSource:
    return make(cast("Rest", Circle(page)))


MESSAGE = {"ts": "1773480600.000100", "text": "The till is slow."}
CIRCLES: dict[str, ChangingSource] = {
    "confluence": source(
        lambda rest: ConfluenceSource("docs", rest, "https://wiki.example", ["OPS"], Access(frozenset({PUBLIC}))),
        {"results": [], "_links": {"next": "/rest/api/content/search?cursor=1"}},
    ),
    "teams": source(
        lambda rest: TeamsChannelsSource("docs", rest, {"team-1": ()}, FakeClock()),
        {"value": [], "@odata.nextLink": "https://graph.example/teams?$skip=1"},
    ),
    "slack people": source(
        lambda rest: SlackChannelsSource("docs", rest, ["C1"], FakeClock()),
        {"ok": True, "response_metadata": {"next_cursor": "1"}},
    ),
    "slack history": source(
        lambda rest: SlackChannelsSource("docs", rest, ["C1"], FakeClock()),
        {"ok": True, "messages": [MESSAGE], "has_more": True},
    ),
}


async def read(endless: ChangingSource, removed: set[str]) -> None:
    async for part in endless.changes("", frozenset({"docs/C1/1.1"})):
        removed |= part.removed_ids


@pytest.mark.parametrize("kind", CIRCLES)
async def test_a_server_that_goes_on_for_ever_is_unavailable_and_loses_nothing(kind: str) -> None:
    removed = set[str]()
    with pytest.raises(SourceUnavailable):
        await read(CIRCLES[kind], removed)
    assert removed == set()
