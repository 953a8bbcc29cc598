"""Whatever a report is filed in, it stands there once: the fake, GitHub, GitLab, Jira and Confluence do the same."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.publishers.section import wiki_markup
from core.model.errors import Unavailable
from core.model.incident import Filed, marker_of
from core.ports import Publisher
from tests.cases import every_case
from tests.contract.publishers import PUBLISHERS, REPORT, SINCE, served, target
from tests.fakes.publisher_servers import (
    FakeJira,
    FakePublisher,
    FakeTracker,
)
from tests.fakes.tool_servers import reached

OTHER = replace(REPORT, marker=marker_of("i2", "ops"), title="Shelf is empty", stem="2026-03-14-shelf-i2")


@asynccontextmanager
async def fake(kind: str) -> AsyncIterator[tuple[Publisher, FakePublisher | FakeTracker]]:
    if kind == "fake":
        yield (memory := FakePublisher()), memory
        return
    async with served(kind) as both:
        yield both


Opened = Callable[[str], AbstractAsyncContextManager[tuple[Publisher, FakePublisher | FakeTracker]]]


@pytest.mark.parametrize("kind", ["fake", *PUBLISHERS])
class TestPublisher:
    async def test_what_is_filed_has_a_name_and_an_address_and_is_found_again(self, kind: str) -> None:
        async with fake(kind) as (publisher, _):
            assert await publisher.find(REPORT) is None
            filed = await publisher.file(REPORT)
            assert filed.key
            assert filed.url.startswith("http")
            assert await publisher.find(REPORT) == filed
            assert await publisher.find(OTHER) is None, "it is told apart from any other report"

    async def test_two_reports_are_two(self, kind: str) -> None:
        async with fake(kind) as (publisher, _):
            first, second = await publisher.file(REPORT), await publisher.file(OTHER)
            assert first != second
            assert (await publisher.find(REPORT), await publisher.find(OTHER)) == (first, second)

    async def test_a_token_that_may_not_write_is_found_out_without_writing(self, kind: str) -> None:
        async with fake(kind) as (publisher, server):
            await publisher.check()
            server.may_write = False
            with pytest.raises(Unavailable):
                await publisher.check()
            assert await publisher.find(REPORT) is None


@every_case("kind", PUBLISHERS)
async def test_a_write_whose_answer_was_lost_is_found_or_completed_and_stands_once(kind: str) -> None:
    async with served(kind) as (publisher, server):
        server.loses_answer = True
        with pytest.raises(Unavailable):
            await publisher.file(REPORT)
        filed: Filed = await publisher.find(REPORT) or await publisher.file(replace(REPORT, text="anew"))
        assert await publisher.find(REPORT) == filed
        assert len(server.items) == len(server.texts) == 1


@every_case("kind", PUBLISHERS)
async def test_the_text_and_the_marker_stand_there_as_they_were_sent(kind: str) -> None:
    async with served(kind) as (publisher, server):
        await publisher.file(REPORT)
        (text,) = server.texts
        for said in ("Summary", "The till was slow.", "https://git.example/4711", REPORT.marker):
            assert said in text.replace("\\", "")
        assert re.search(r"pool_size 4", text.replace("\\", ""))


@every_case("kind", PUBLISHERS)
async def test_a_wrong_token_is_said_to_be_wrong(kind: str) -> None:
    async with served(kind, token="Bearer other") as (publisher, server):
        for attempt in (publisher.check(), publisher.find(REPORT), publisher.file(REPORT)):
            with pytest.raises(Unavailable, match="refuses the token"):
                await attempt
        assert server.items == []


async def test_the_reason_of_a_refusal_is_told() -> None:
    async with reached(FakeJira(cloud=True)) as http:
        publisher = target("jira_issue", "cloud", project="OPS", issue_type="Epic")(http)
        with pytest.raises(Unavailable, match="The issue type selected is invalid"):
            await publisher.file(REPORT)


async def test_an_issue_is_found_among_hundreds_of_later_ones() -> None:
    async with served("github issue") as (publisher, _):
        filed = await publisher.file(REPORT)
        for number in range(150):
            await publisher.file(replace(OTHER, marker=f"other{number}"))
        assert await publisher.find(REPORT) == filed


async def test_a_file_is_proposed_on_a_branch_of_its_own_and_begins_with_its_title() -> None:
    for kind in ("github file", "gitlab file"):
        async with served(kind) as (publisher, server):
            await publisher.file(replace(REPORT, title="Till p99 <img src=x> [latency](x)"))
            ((place, text),) = server.files.items()
            assert place == f"plumbline/{REPORT.marker}:postmortems/2026-03-14-till-i1.md"
            assert text.startswith("# Till p99 \\<img src=x> \\[latency\\](x)\n\n## Summary")
            assert text.endswith(f"{REPORT.footer}\n")


@pytest.mark.parametrize("kind", ["github file", "gitlab file"])
async def test_a_branch_that_is_there_without_its_file_is_completed(kind: str) -> None:
    async with served(kind) as (publisher, server):
        server.branches.add(f"plumbline/{REPORT.marker}")
        await publisher.file(REPORT)
        assert len(server.files) == len(server.items) == 1


async def test_an_issue_is_found_though_the_clock_here_is_fast() -> None:
    async with served("github issue") as (publisher, _):
        filed = await publisher.file(REPORT)
        assert await publisher.find(replace(REPORT, since=SINCE + timedelta(minutes=50))) == filed


def test_markdown_becomes_wiki_markup_in_which_text_stays_text() -> None:
    markdown = "# Till\n\n- **slow** since `x_y`\n  - {panel} [~ada]\n\n> said *so*\n\n[log](https://l.example/a|b)\n"
    assert wiki_markup(markdown).splitlines() == [
        "h1. Till",
        "",
        "* *slow* since {{x_y}}",
        "** \\{panel\\} \\[\\~ada\\]",
        "",
        "",
        "bq. said _so_",
        "",
        "[log|https://l.example/a%7Cb]",
    ]


@every_case(
    ("markdown", "markup"),
    [
        ("[Ada](~accountid:5)", "Ada"),
        ("[file](^secret.txt)", "file"),
        ("payment-gateway -gone- -> \\_it\\_", "payment-gateway \\-gone\\- \\-> \\_it\\_"),
        ("see https://l.example/a-b_c", "see https://l.example/a-b_c"),
        ("```\n{noformat}\n*b*\n```", "{noformat}\n{\u2060noformat}\n*b*\n{noformat}"),
    ],
)
def test_no_link_names_a_person_or_a_file_and_addresses_stay_whole(markdown: str, markup: str) -> None:
    assert wiki_markup(markdown).strip() == markup
