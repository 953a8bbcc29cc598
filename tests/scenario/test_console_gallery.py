"""The gallery: every message as each chat is sent it, with every text as text."""

from __future__ import annotations

import aiohttp
import pytest
from bs4 import BeautifulSoup

from adapters.console.document import render_mrkdwn
from core.samples import SAMPLES
from tests.fakes.console_site import Site
from tests.scenario.console import site

__all__ = ["site"]  # the fixture


async def page(site: Site, sample: str = "") -> BeautifulSoup:
    params = {"sample": sample} if sample else {}
    async with aiohttp.ClientSession() as http, http.get(f"{site.address}/gallery", params=params) as response:
        assert response.status == 200, await response.text()
        return BeautifulSoup(await response.text(), "html.parser")


@pytest.mark.parametrize("name", SAMPLES)
async def test_every_message_is_shown_as_each_chat_is_sent_it(site: Site, name: str) -> None:
    html = await page(site, name)
    for chat in ("slack", "teams", "local"):
        shown = html.select_one(f"#{chat} .kit")
        assert shown is not None
        assert shown.get_text().strip()
        assert not shown.select("script, style, iframe, [style]")
    local = html.select_one("#local .kit")
    assert local is not None
    assert local.has_attr("inert")  # no button of a sample does anything


def test_slack_s_markup_is_drawn_and_nothing_else_becomes_markup() -> None:
    drawn = BeautifulSoup(
        render_mrkdwn("*Owner*  a_b_c `x -&gt; *y*` <https://a.example|page> _aside_\n&gt; said"), "html.parser"
    )
    assert [each.get_text() for each in drawn.select("strong, code, a, em, blockquote")] == [
        "Owner",
        "x -> *y*",
        "page",
        "aside",
        "said",
    ]
    for hostile in ("<script>1</script>", "&lt;img src=x&gt;", "<javascript:alert(1)|x>", "`<b>`", "*<i>*"):
        assert not BeautifulSoup(render_mrkdwn(hostile), "html.parser").select("script, img, a, b, i")


async def test_the_gallery_names_all_of_them(site: Site) -> None:
    names = [link.get_text().lower() for link in (await page(site)).select(".gallery-names a")]
    assert names == [name.lower() for name in SAMPLES]


async def test_a_sample_that_does_not_exist_is_not_found(site: Site) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{site.address}/gallery?sample=none") as response:
        assert response.status == 404
