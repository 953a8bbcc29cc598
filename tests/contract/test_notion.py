"""Notion over its API: what a page becomes, who may read it, and what changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from adapters.sources import notion
from adapters.sources.document_properties import NOBODY
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import SourceUnavailable
from tests.contract.source_worlds.remote import NotionWorld, SourceReading, notion_world
from tests.fakes.notion_server import block, mention, page_id, text

EVERYBODY = frozenset({PUBLIC})


@pytest.fixture
async def world() -> AsyncIterator[NotionWorld]:
    async with notion_world() as running:
        yield running


async def read(world: NotionWorld) -> SourceReading:
    return await SourceReading().go_on(world)


async def markdown(world: NotionWorld, *blocks: Any) -> str:
    world.put("1", [*blocks])
    (found,) = (await read(world)).texts
    return found


# --- a page ----------------------------------------------------------------------------------------------------------


async def test_page_is_document_with_its_own_address(world: NotionWorld) -> None:
    world.put("1", [block("heading_2", "Drain"), block("paragraph", "Run ", text("drain_node", code=True), ".")])
    (found,) = (await read(world)).documents.values()
    assert found == Document(
        id=f"docs/{page_id('1')}",
        source="docs",
        family="docs",
        title="Page 1",
        text="## Drain\n\nRun `drain_node`.",
        url=f"https://www.notion.so/Page-1-{page_id('1').replace('-', '')}",
        updated_at=datetime(2026, 2, 1, 10, 1, tzinfo=UTC),
        readers=EVERYBODY,
        people=(("Asha Brandt", "a@b.example"),),
    )


async def test_lists_are_nested_and_numbered_as_in_notion(world: NotionWorld) -> None:
    inner = block("bulleted_list_item", "two", inside=[block("code", "df -h", language="bash")])
    found = await markdown(
        world,
        block("bulleted_list_item", "one", inside=[inner]),
        block("bulleted_list_item", "three"),
        block("numbered_list_item", "first"),
        block("numbered_list_item", "second"),
        block("to_do", "done", checked=True),
        block("to_do", "open"),
    )
    assert found == (
        "- one\n  - two\n\n    ```bash\n    df -h\n    ```\n- three\n\n1. first\n2. second\n\n- [x] done\n- [ ] open"
    )


async def test_table_has_the_headers_that_it_declares(world: NotionWorld) -> None:
    cells = (("Alert", "Do"), ("Disk|full", "drain"))
    rows = [block("table_row", cells=[[text(cell)] for cell in row]) for row in cells]
    found = await markdown(world, block("table", inside=rows, table_width=2, has_column_header=True))
    assert [line.replace(" ", "") for line in found.splitlines()] == ["|Alert|Do|", "|---|---|", r"|Disk\|full|drain|"]


async def test_code_keeps_its_language_and_every_character(world: NotionWorld) -> None:
    code = 'if [[ $a < 3 && "$b" != "&amp;" ]]; then\n  kube_pod_status\nfi'
    assert await markdown(world, block("code", code, language="bash")) == f"```bash\n{code}\n```"
    assert await markdown(world, block("code", "x", language="plain text")) == "```\nx\n```"


async def test_text_with_tags_is_text(world: NotionWorld) -> None:
    found = await markdown(world, block("paragraph", "<script>alert(1)</script> & <b>"))
    assert found == "<script>alert(1)</script> & <b>"


async def test_styles_links_and_mentions_are_kept_and_struck_out_text_is_not(world: NotionWorld) -> None:
    found = await markdown(
        world,
        block(
            "paragraph",
            text("Careful", bold=True),
            ": ask ",
            mention("Mateo Silvestri"),
            ", see ",
            text("the freeze", href="/59833787"),
            text(" and never", strikethrough=True),
            text(" click", href="javascript:alert(1)"),
        ),
    )
    assert found == "**Careful**: ask @Mateo Silvestri, see [the freeze](https://www.notion.so/59833787) click"
    (document,) = (await read(world)).documents.values()
    assert document.people == (("Asha Brandt", "a@b.example"), ("Mateo Silvestri",))


async def test_what_holds_other_blocks_gives_their_text(world: NotionWorld) -> None:
    column, unsupported = block("column", inside=[block("paragraph", "left")]), block("unsupported")
    found = await markdown(
        world,
        block("toggle", "More", inside=[block("paragraph", "hidden")]),
        block(
            "callout", "Drain first.", icon={"type": "emoji", "emoji": "⚠️"}, inside=[block("paragraph", "Then cordon.")]
        ),
        block("column_list", inside=[column, block("column", inside=[block("quote", "right")])]),
        block(
            "synced_block", inside=[block("heading_1", "Synced", is_toggleable=True, inside=[block("paragraph", "x")])]
        ),
        block("something_new", "kept", inside=[block("paragraph", "too")]),
        block("divider"),
        unsupported,
        block("equation", expression="e = mc^2"),
        block("image", caption=[text("disk.png")], type="external", external={"url": "https://x.example/secret"}),
        block("bookmark", url="https://x.example", caption=[]),
    )
    assert found.split("\n\n") == [
        "More",
        "hidden",
        "Drain first.",
        "Then cordon.",
        "left",
        "> right",
        "# Synced",
        "x",
        "kept",
        "too",
        f"(Not included here: [a block of the kind unsupported](https://www.notion.so/Page-1-{page_id('1').replace('-', '')}#{unsupported['id'].replace('-', '')}))",
        "```\ne = mc^2\n```",
        "(image: disk.png)",
        "<https://x.example>",
    ]


async def test_page_without_text_is_no_document_and_is_read_once(world: NotionWorld) -> None:
    world.put("1", [])
    reading = await read(world)
    assert reading.documents == {}
    await reading.go_on(world)
    assert not any("/blocks/" in each for each in world.refusals.requests)


# --- what changed ----------------------------------------------------------------------------------------------------


async def test_only_changed_pages_are_read_again(world: NotionWorld) -> None:
    for key in "123":
        world.write(key, f"Drain {key}.")
    reading = await read(world)
    world.write("2", "Cordon.")
    await reading.go_on(world)
    assert reading.read == {f"docs/{page_id('2')}"}
    assert [each for each in world.refusals.requests if "/blocks/" in each] == [
        f"/v1/blocks/{page_id('2')}/children?page_size=100"
    ]


async def test_page_that_was_just_edited_is_read_again_because_times_are_whole_minutes(world: NotionWorld) -> None:
    world.write("1", "Drain.")
    world.server.pages[page_id("1")].edited = "2026-02-28T23:59:00.000Z"
    reading = await read(world)
    world.server.pages[page_id("1")].blocks = [block("paragraph", "Cordon.")]
    assert (await reading.go_on(world)).texts == ["Cordon."]
    world.clock.advance(600)
    await reading.go_on(world)
    assert (await reading.go_on(world)).read == set()


async def test_page_that_no_search_finds_stays_until_it_is_gone(world: NotionWorld) -> None:
    world.write("1", "Drain.")
    reading = await read(world)
    page = world.server.pages[page_id("1")]
    page.is_found = False
    assert (await reading.go_on(world)).texts == ["Drain."]
    page.blocks, page.edited = [], "2026-02-01T11:00:00.000Z"
    assert (await reading.go_on(world)).texts == []
    page.blocks, page.edited = [block("paragraph", "Cordon.")], "2026-02-02T10:00:00.000Z"
    assert (await reading.go_on(world)).texts == ["Cordon."]
    page.in_trash = True
    assert (await reading.go_on(world)).documents == {}


@pytest.mark.parametrize("change", ["trash", "no longer shared"])
async def test_page_in_trash_or_no_longer_shared_goes(world: NotionWorld, change: str) -> None:
    for key in "12":
        world.write(key, f"Drain {key}.")
    reading = await read(world)
    if change == "trash":
        world.server.pages[page_id("2")].in_trash = True
    else:
        world.remove("2")
    assert (await reading.go_on(world)).texts == ["Drain 1."]


async def test_page_within_page_is_read_although_no_search_finds_it(world: NotionWorld) -> None:
    inner = block("child_page", title="Page 2") | {"id": page_id("2"), "has_children": True}
    world.put("1", [block("toggle", "More", inside=[inner])])
    world.write("2", "Drain.")
    world.server.pages[page_id("2")].is_found = False
    reading = await read(world)
    target = page_id("2").replace("-", "")
    assert reading.texts == [f"More\n\n[Page 2](https://www.notion.so/{target})", "Drain."]
    assert len((await reading.go_on(world)).documents) == 2


async def test_integration_without_pages_is_found_by_check(world: NotionWorld) -> None:
    with pytest.raises(SourceUnavailable, match="Share pages with the integration"):
        await world.source.check()


# --- what could not be read ------------------------------------------------------------------------------------------


async def test_page_that_cannot_be_read_is_named_and_stays(world: NotionWorld) -> None:
    for key in "12":
        world.write(key, f"Drain {key}.")
    reading = await read(world)
    world.put("1", [block("paragraph") | {"paragraph": {"rich_text": "none"}}])
    for _ in range(2):
        await reading.go_on(world)
        assert "block of type 'paragraph' in an unexpected format" in reading.reasons["Page 1"]
        assert reading.texts == ["Drain 1.", "Drain 2."]


async def test_page_that_cannot_be_read_goes_if_it_has_fewer_readers_now(world: NotionWorld) -> None:
    world.write("1", "Drain.")
    reading = await read(world)
    world.put("1", [block("paragraph") | {"paragraph": {"rich_text": "none"}}], Readers=options("channel:vault"))
    await reading.go_on(world)
    assert reading.documents == {}
    assert "Page 1" in reading.reasons


async def test_part_that_is_not_shared_is_named_and_the_rest_is_read(world: NotionWorld) -> None:
    synced = block("synced_block", inside=[block("paragraph", "secret")])
    world.server.hidden_blocks.add(synced["id"])
    world.put("1", [block("paragraph", "Drain."), synced])
    reading = await read(world)
    [shown] = reading.texts
    assert shown.startswith("Drain.\n\n(Not included here: [a block of the kind synced_block](https://www.notion.so/")
    assert "secret" not in shown
    assert [(each.path, each.is_indexed) for each in reading.left_out] == [("Page 1", True)]


@pytest.mark.parametrize("limit", ["MAX_BLOCKS", "MAX_DEPTH"])
async def test_endless_page_is_named(world: NotionWorld, limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notion, limit, 3)
    deep = block("toggle", "x")
    for _ in range(5):
        deep = block("toggle", "x", inside=[deep])
    world.put("1", [deep])
    world.write("2", "Drain.")
    reading = await read(world)
    assert reading.texts == ["Drain."]
    assert "3" in reading.reasons["Page 1"]


@pytest.mark.parametrize("hostile", ["../users", "a/b", "", "b55c9c91-384d-452b-81db-d1ef79372001?x=1"])
async def test_hostile_id_becomes_no_part_of_address(world: NotionWorld, hostile: str) -> None:
    world.put("1", [block("toggle", "More", inside=[block("paragraph", "x")]) | {"id": hostile}])
    reading = await read(world)
    assert reading.documents == {}
    assert "unexpected format" in reading.reasons["Page 1"]
    assert not any("users/" in each or "a/b" in each for each in world.refusals.requests)


async def test_names_of_members_are_unknown_without_the_capability(world: NotionWorld) -> None:
    world.server.tells_users = False
    world.write("1", "Drain.")
    assert [each.people for each in (await read(world)).documents.values()] == [()]


# --- who may read it -------------------------------------------------------------------------------------------------


def options(*names: str) -> dict[str, Any]:
    return {"id": "a", "type": "multi_select", "multi_select": [{"id": "1", "name": name} for name in names]}


def option(name: str) -> dict[str, Any]:
    return {"id": "a", "type": "select", "select": {"id": "1", "name": name}}


async def test_page_has_the_declared_readers_and_no_others(world: NotionWorld) -> None:
    async with aiohttp.ClientSession() as session:
        world.source = world.source_with(session, frozenset({"channel:ops", "channel:vault"}))
        world.write("1", "Drain.")
        world.put("2", [block("paragraph", "Unseal.")], Readers=options("channel:vault", "channel:hr"))
        world.put("3", [block("paragraph", "Unseal.")], readers={"type": "rich_text", "rich_text": [text("public")]})
        world.put("4", [block("paragraph", "Unseal.")], Readers=options("channel:hr"))
        found = (await read(world)).documents
    assert {key[-1]: document.readers for key, document in found.items()} == {
        "1": {"channel:ops", "channel:vault"},
        "2": {"channel:vault"},
        "3": {"channel:ops", "channel:vault"},
        "4": {NOBODY},
    }


@pytest.mark.parametrize(
    "properties",
    [
        {"Readers": option("everybody in finance")},
        {"Confidentiality": option("Restricted")},
        {"Access": {"type": "relation", "relation": [{"id": "x"}]}},
        {"Viewers": {"type": "people", "people": [{"object": "user", "id": "u-1", "name": "Asha Brandt"}]}},
        {"Tags": options("runbook", "confidential")},
        {"Public": {"type": "checkbox", "checkbox": False}},
    ],
)
async def test_page_whose_properties_speak_of_access_is_withheld(
    world: NotionWorld, properties: dict[str, Any]
) -> None:
    world.write("1", "Drain.")
    reading = await read(world)
    world.put("1", [block("paragraph", "Drain.")], **properties)
    await reading.go_on(world)
    assert reading.documents == {}
    assert "Page 1" in reading.reasons


async def test_other_properties_state_owner_and_date_and_empty_ones_nothing(world: NotionWorld) -> None:
    world.put(
        "1",
        [block("paragraph", "Drain.")],
        Owner={"type": "people", "people": [{"object": "user", "id": "u-1", "name": "Payments"}]},
        Updated={"type": "date", "date": {"start": "2026-01-31", "end": None}},
        Visibility={"type": "select", "select": None},
        Services=options("ledger", "till"),
        Priority={"type": "number", "number": 3},
        Public={"type": "checkbox", "checkbox": True},
    )
    (found,) = (await read(world)).documents.values()
    assert (found.owner, found.updated_at, found.readers) == ("Payments", datetime(2026, 1, 31, tzinfo=UTC), EVERYBODY)
