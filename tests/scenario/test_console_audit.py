"""Who saw and did what on the local page, and who may look that up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import aiohttp
import pytest
from bs4 import BeautifulSoup

from core.model.audit import Act, AuditEntry, audit_entry
from core.model.conversation import Person, Platform
from core.model.document import Document
from tests import samples as messages
from tests.fakes.console_site import Site, console_site

TOKEN = "a-long-console-token"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with console_site(token=TOKEN) as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[aiohttp.ClientSession]:
    """Somebody who knows the token."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with aiohttp.ClientSession(site.address, headers=headers) as session:
        yield session


def recorded(site: Site) -> list[AuditEntry]:
    return [each.entry for each in site.store.audit.entries]


async def page(http: aiohttp.ClientSession, path: str) -> BeautifulSoup:
    async with http.get(path) as response:
        assert response.status == 200, await response.text()
        return BeautifulSoup(await response.text(), "html.parser")


async def test_a_page_that_was_shown_is_recorded_with_the_document_and_the_channel(
    site: Site, http: aiohttp.ClientSession
) -> None:
    await site.file(Document("handbook/a.md", "handbook", "handbook", "Rolling back", "Run it."))
    await page(http, "/documents/handbook/a.md?channel=help&quote=secret+words")
    (entry,) = recorded(site)
    assert (entry.act, entry.actor, entry.documents) == (Act.VIEWED, "console:operator", ("handbook/a.md",))
    assert (entry.subject, entry.detail) == ("/documents/handbook/a.md?channel=help", "127.0.0.1")


@pytest.mark.parametrize("path", ["/", "/incidents", "/predictions", "/audit"])
async def test_every_page_with_content_is_recorded(site: Site, http: aiohttp.ClientSession, path: str) -> None:
    await page(http, path)
    assert [(entry.act, entry.subject) for entry in recorded(site)] == [(Act.VIEWED, path)]


async def test_what_is_not_shown_is_not_recorded_as_seen(site: Site, http: aiohttp.ClientSession) -> None:
    async with http.get("/incidents/none") as response:
        assert response.status == 404
    assert recorded(site) == []


async def test_what_leaves_the_page_as_a_file_is_recorded_as_exported(site: Site, http: aiohttp.ClientSession) -> None:
    site.store.incidents["i1"] = replace(messages.resolved_incident(), id="i1")
    await page(http, "/incidents/i1/postmortem.md")
    async with http.get("/console/messages.json?channel=help") as response:
        assert response.status == 200
    assert [(entry.act, entry.subject) for entry in recorded(site)] == [
        (Act.EXPORTED, "/incidents/i1/postmortem.md"),
        (Act.EXPORTED, "/console/messages.json?channel=help"),
    ]


async def test_a_login_and_a_wrong_token_are_recorded_without_the_token(site: Site) -> None:
    async with aiohttp.ClientSession(site.address) as http:
        for token in ("a-guess", TOKEN):
            async with http.post("/console/login", data={"token": token}, allow_redirects=False):
                pass
        async with http.get("/incidents", headers={"Authorization": "Bearer another-guess"}):
            pass
    entries = recorded(site)
    assert [entry.act for entry in entries] == [Act.REFUSED, Act.LOGGED_IN, Act.REFUSED]
    assert "guess" not in str(entries)
    assert TOKEN not in str(entries)


async def test_the_operator_reads_who_did_what_newest_first(site: Site, http: aiohttp.ClientSession) -> None:
    somebody = Person(Platform.SLACK, "<script>alert(1)</script>", "Ada")
    asked = audit_entry("k", site.clock.now(), Act.ANSWERED, somebody, "q1", documents=("handbook/a.md",))
    await site.store.audit.add(asked)
    await site.store.audit.add(replace(asked, key="k2", act=Act.PRESSED, detail="wrong"))
    html = await page(http, "/audit")
    rows = [" ".join(row.get_text(" ").split()) for row in html.select("tbody tr")]
    assert rows[0].startswith("pressed wrong slack:<script>alert(1)</script>")
    assert "handbook/a.md" in rows[1]
    assert html.select_one("main script") is None


async def test_the_log_is_read_page_by_page_and_by_act(site: Site, http: aiohttp.ClientSession) -> None:
    for number in range(150):
        at = site.clock.now() + timedelta(seconds=number)
        act = Act.ASKED if number % 2 else Act.ANSWERED
        await site.store.audit.add(audit_entry(f"k{number}", at, act, "slack:U1", f"q{number}"))
    html = await page(http, "/audit?act=asked")
    assert len(html.select("tbody tr")) == 75
    assert html.select_one(".older a") is None
    html = await page(http, "/audit")
    older = html.select_one(".older a")
    assert older is not None
    html = await page(http, str(older["href"]))
    assert html.select("tbody code")[-1].get_text() == "q0"


@pytest.mark.parametrize("query", ["act=nonsense", "before=x", "before=-1", f"before={'9' * 30}"])
async def test_a_made_up_filter_is_refused(http: aiohttp.ClientSession, query: str) -> None:
    async with http.get(f"/audit?{query}") as response:
        assert response.status in {400, 404}


async def test_nobody_reads_it_without_the_token(site: Site) -> None:
    async with aiohttp.ClientSession(site.address) as http, http.get("/audit") as response:
        assert response.status == 401
