"""What a source drops is named: in every kind of source a part is made unreadable, and the ingestion says so.

In all of them the rest is read, and the next ingestion, which may read nothing again, still names what a page lacks.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.config.section import SOURCES
from core.model.conversation import PUBLIC
from core.ports import LeftOut
from handlers.knowledge.ingest_knowledge import IngestReport, ingest_knowledge
from tests.contract.source_worlds.kinds import LOCAL, REMOTE, world
from tests.contract.source_worlds.world import CHANNEL, TEAMS_CHANNEL
from tests.fakes.notion_server import block
from tests.fakes.passage_index import FakeEncoderStore, FakePassageIndex
from tests.fakes.sharepoint_server import StoredPage, canvas_of, text_part
from tests.fakes.store import InMemoryStore

KEYS = "123"
INCLUDED = 'The word is heliotrope2.\n\n1. Announce it.\n2. {{% include "drain.md" %}}\n3. Start it.'
MACRO = (
    'The word is heliotrope2.</p><ac:structured-macro ac:name="excerpt-include"><ac:parameter ac:name=""><ac:link>'
    '<ri:page ri:content-title="Drain steps"/></ac:link></ac:parameter></ac:structured-macro><p>Start it.'
)


def a_line(spoiled: Any) -> None:
    with spoiled.path.open("a", encoding="utf-8") as file:
        file.write('\n{"id": "4", "text": 3}')


def a_message_of_the_slack_export(spoiled: Any) -> None:
    with zipfile.ZipFile(spoiled.path, "a") as archive:
        archive.writestr("ci-cd/2026-02-02.json", json.dumps([{"type": "message", "text": "no time"}]))


def a_message_of_slack(spoiled: Any) -> None:
    spoiled.server.post(CHANNEL, spoiled.ts("4"), "x")
    spoiled.server.messages[CHANNEL][spoiled.ts("4")]["edited"] = {"ts": "yesterday"}


def a_message_of_teams(spoiled: Any) -> None:
    spoiled.server.post(TEAMS_CHANNEL, spoiled.id("4"), "x")
    spoiled.server.messages[TEAMS_CHANNEL][spoiled.id("4")]["createdDateTime"] = "yesterday"


def a_web_part(spoiled: Any) -> None:
    part = {"@odata.type": "#microsoft.graph.standardWebPart", "webPartType": "c70391ea-0b10-4ee9-b2b4-006d3fcad0cd"}
    canvas = canvas_of([text_part("<p>The word is heliotrope2.</p>"), part | {"data": {"title": "Quick links"}}])
    spoiled.server.pages["p-2"] = StoredPage("Page 2", canvas, version=2)


def a_block(spoiled: Any) -> None:
    spoiled.put("2", [block("paragraph", "The word is heliotrope2."), block("meeting_notes", title=["Review"])])


def an_include(spoiled: Any) -> None:
    spoiled.write("2", INCLUDED)


def a_macro(spoiled: Any) -> None:
    spoiled.write("2", MACRO)


SPOILED: dict[str, tuple[str, Callable[[Any], None], str]] = {
    "folder": ("folder", an_include, "drain.md"),
    "threads": ("chat_threads", a_line, "`channel`"),
    "incidents": ("past_incidents", a_line, "`title`"),
    "slack export": ("slack_export", a_message_of_the_slack_export, "1 message"),
    "git clone": ("git_repository", an_include, "drain.md"),
    "git url": ("git_repository", an_include, "drain.md"),
    "confluence cloud": ("confluence", a_macro, "Drain steps"),
    "confluence data center": ("confluence", a_macro, "Drain steps"),
    "azure wiki": ("azure_devops_wiki", an_include, "drain.md"),
    "slack": ("slack_channels", a_message_of_slack, "1 message"),
    "teams": ("teams_channels", a_message_of_teams, "1 message"),
    "notion": ("notion", a_block, "meeting_notes"),
    "sharepoint files": ("sharepoint", an_include, "drain.md"),
    "sharepoint pages": ("sharepoint", a_web_part, "Quick links"),
}
"""The kind of each world, what is spoiled in it, and what the ingestion must name."""


def test_every_declared_kind_of_source_is_tried() -> None:
    assert SPOILED.keys() == {*LOCAL, *REMOTE}
    assert {kind for kind, _, _ in SPOILED.values()} == set(SOURCES.all())


@pytest.mark.parametrize("name", SPOILED)
async def test_what_a_source_drops_is_named_and_the_rest_is_read(name: str, tmp_path: Path) -> None:
    kind, spoil, named = SPOILED[name]
    index, encoders, store = FakePassageIndex(), FakeEncoderStore(), InMemoryStore()

    async def ingested() -> IngestReport:
        return await ingest_knowledge([source_world.source], index, encoders, store=store)

    async with world(name, tmp_path) as source_world:
        for key in KEYS:
            source_world.write(key, f"The word of {key} is heliotrope{key}.")
        assert (await ingested()).left_out == {}
        spoil(source_world)
        reports = [await ingested() for _ in range(2)]
    texts = " ".join(point.passage.text for point in index.points.values())
    assert all(f"heliotrope{key}" in texts for key in KEYS)
    is_live = kind in ("slack_channels", "teams_channels")  # which read again only what has changed
    for report in reports[: 1 if is_live else 2]:
        assert report.failed == {}
        [left_out] = report.left_out["docs"]
        assert named in left_out.reason, left_out


async def test_the_parts_that_a_page_lacks_are_on_each_of_its_passages(tmp_path: Path) -> None:
    index = FakePassageIndex()
    async with world("folder", tmp_path) as source_world:
        source_world.write("1", f"{INCLUDED}\n\n## Later\n\n{'word ' * 900}\n\n## Last\n\nDone.")
        report = await ingest_knowledge([source_world.source], index, FakeEncoderStore(), store=InMemoryStore())
    passages = [point.passage for point in index.points.values()]
    assert len(passages) > 1
    assert {passage.missing for passage in passages} == {("[drain.md](drain.md)",)}
    assert {PUBLIC} == set[str]().union(*(passage.readers for passage in passages))
    assert report.left_out["docs"] == [LeftOut("1.md", "Parts are not included: drain.md.", is_indexed=True)]
