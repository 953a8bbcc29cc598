"""The draft of a postmortem on the local page, and as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest

from tests import samples as messages
from tests.fakes.console_site import Site, console_site
from tests.scenario.console import http, page

__all__ = ["http"]  # the fixture

EVIL = "<script>alert(1)</script> [x](https://evil.example)"
RESOLVED = replace(messages.resolved_incident(), id="inc-9", title=f"Slow {EVIL}")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with console_site() as served:
        served.happen(RESOLVED)
        served.happen(messages.explained_incident(id="open"))
        yield served


async def test_the_page_shows_the_draft_with_links_to_its_evidence(http: aiohttp.ClientSession) -> None:
    html = await page(http, "/incidents/inc-9/postmortem")
    main = html.select_one("main")
    assert main is not None
    headings = [heading.get_text() for heading in main.select(".prose h2")]
    assert headings[:3] == ["Summary", "Timeline", "Impact"]
    targets = {str(link["href"]) for link in main.select(".prose a")}
    anchors = {f"#{heading['id']}" for heading in main.select(".prose h3")}
    assert {target for target in targets if target.startswith("#")} == anchors
    assert not [target for target in targets if "evil.example" in target]
    assert not main.select("script")


async def test_it_can_be_kept_as_a_file(http: aiohttp.ClientSession) -> None:
    async with http.get("/incidents/inc-9/postmortem.md") as response:
        assert response.status == 200
        assert response.content_type == "text/markdown"
        assert response.headers["Content-Disposition"] == 'attachment; filename="postmortem-inc-9.md"'
        assert (await response.text()).startswith("# Postmortem: Slow ")


async def test_the_incident_s_page_leads_there_once_it_is_over(http: aiohttp.ClientSession) -> None:
    over, still_open = await page(http, "/incidents/inc-9"), await page(http, "/incidents/open")
    assert over.select_one('a[href="/incidents/inc-9/postmortem"]') is not None
    assert still_open.select_one('a[href$="/postmortem"]') is None


@pytest.mark.parametrize("path", ["/incidents/open/postmortem", "/incidents/gone/postmortem.md"])
async def test_there_is_none_before_the_end(path: str, http: aiohttp.ClientSession) -> None:
    async with http.get(path) as response:
        assert response.status == 404
