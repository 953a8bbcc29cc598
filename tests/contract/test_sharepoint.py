"""SharePoint over Graph: what files and pages become, who may read them, and what a delta brings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest

from adapters.sources.chat_threads import MAX_MEMBERS
from adapters.sources.document_properties import NOBODY, narrowed
from adapters.sources.formats import MAX_BYTES
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import SourceUnavailable
from core.ports import LeftOut
from tests.cases import every_case
from tests.contract.source_worlds.remote import SharePointWorld, SourceReading, sharepoint_world
from tests.fakes.sharepoint_server import (
    ADDRESS,
    DRIVE,
    KEEPERS,
    SITE,
    VISITORS,
    FakeSharePoint,
    StoredPage,
    canvas_of,
    granted,
    text_part,
)

EVERYBODY = frozenset({PUBLIC})
DAY = 24 * 60 * 60
TEAM = "02bd9fd6-8f93-4758-87c3-1fb73740a315"


@pytest.fixture
async def files() -> AsyncIterator[SharePointWorld]:
    async with sharepoint_world() as world:
        yield world


@pytest.fixture
async def pages() -> AsyncIterator[SharePointWorld]:
    async with sharepoint_world(pages=True) as world:
        yield world


class Reading(SourceReading):
    def readers(self, item: str = "01A") -> frozenset[str]:
        return self.documents[f"docs/{DRIVE}/{item}"].readers


async def read(world: SharePointWorld) -> Reading:
    return await Reading().go_on(world)


# --- a file ----------------------------------------------------------------------------------------------------------


async def test_file_is_document_of_its_site_with_its_own_address(files: SharePointWorld) -> None:
    files.server.put("01A", "Drain.md", "# Drain a node\n\nRun `drain_node`. See [this](../Freeze.md).")
    (found,) = (await read(files)).documents.values()
    address = f"{ADDRESS}/Shared%20Documents/Drain.md"
    assert found == Document(
        id=f"docs/{DRIVE}/01A",
        source="docs",
        family="Operations",
        title="Drain a node",
        text=f"# Drain a node\n\nRun `drain_node`. See [this]({ADDRESS}/Freeze.md).",
        url=address,
        updated_at=datetime(2026, 2, 1, 10, 1, tzinfo=UTC),
        readers=EVERYBODY,
        people=(("Rahul Mittal", "rahmit@contoso.example"),),
    )


async def test_file_without_heading_has_its_name_as_title(files: SharePointWorld) -> None:
    files.server.put("01A", "README.md", "Drain the node.")
    assert [each.title for each in (await read(files)).documents.values()] == ["README"]


async def test_renamed_file_is_same_document(files: SharePointWorld) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.put("01A", "b.txt", "Drain the node.")
    await reading.go_on(files)
    assert [each.url for each in reading.documents.values()] == [f"{ADDRESS}/Shared%20Documents/b.txt"]
    files.server.put("01A", "b.xlsx", b"PK")
    assert (await reading.go_on(files)).documents == {}


async def test_other_files_are_counted_and_large_ones_not_downloaded(files: SharePointWorld) -> None:
    files.server.put("01A", "Drain.xlsx", b"PK")
    files.server.put("01B", "Huge.md", "x", size=MAX_BYTES + 1)
    files.server.put("01C", "\x1b[2J.md", "x")
    reading = await read(files)
    for _ in range(2):
        assert reading.reasons == {
            "*.xlsx": "1 file of a format that is not read.",
            "Huge.md": f"The file is larger than {MAX_BYTES} bytes.",
            r"'\x1b[2J.md'": "The file's name contains characters that cannot be shown.",
        }
        assert not any("/content" in request for request in files.refusals.requests)
        await reading.go_on(files)


async def test_withheld_file_leaves_index_and_is_named_in_every_reading(files: SharePointWorld) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.put("01A", "a.md", "readers = payments\n\nDrain the node.")
    for _ in range(2):
        await reading.go_on(files)
        assert reading.documents == {}
        assert "a.md" in reading.reasons


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("javascript:alert(1)", ""),
        ("https://c.example/a b>|<x\x00%20(1).md", "https://c.example/a%20b%3E%7C%3Cx%00%20(1).md"),
    ],
)
async def test_address_is_one_that_a_link_may_contain(files: SharePointWorld, given: str, address: str) -> None:
    files.server.put("01A", "a.md", "Drain.", webUrl=given)
    assert [each.url for each in (await read(files)).documents.values()] == [address]


# --- what changed ----------------------------------------------------------------------------------------------------


async def test_delta_brings_only_what_changed(files: SharePointWorld) -> None:
    for item in ("01A", "01B", "01C"):
        files.server.put(item, f"{item}.md", "Drain the node.")
    reading = await read(files)
    files.server.put("01B", "01B.md", "Cordon the node.")
    files.server.drop("01C")
    await reading.go_on(files)
    assert reading.read == {f"docs/{DRIVE}/01B"}
    assert set(reading.documents) == {f"docs/{DRIVE}/01A", f"docs/{DRIVE}/01B"}
    assert [each for each in files.refusals.requests if "/content" in each] == [
        f"/v1.0/drives/{DRIVE}/items/01B/content"
    ]


async def test_deletion_that_delta_does_not_name_is_seen(files: SharePointWorld) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.drop("01A")
    files.server.forget_deletions()
    assert (await reading.go_on(files)).documents == {}


async def test_library_is_read_completely_if_link_expired_or_month_passed(files: SharePointWorld) -> None:
    for item in ("01A", "01B"):
        files.server.put(item, f"{item}.md", "Drain the node.")
    reading = await read(files)
    files.server.put("01B", "01B.md", "Cordon the node.")
    files.server.oldest_delta = 100
    await reading.go_on(files)
    assert reading.read == {f"docs/{DRIVE}/01B"}

    files.server.oldest_delta = 0
    await reading.go_on(files)
    files.clock.advance(31 * DAY)
    await reading.go_on(files)
    assert any("/root/delta?$select" in each for each in files.refusals.requests)
    assert reading.read == set()


async def test_library_that_is_missing_is_named_and_others_are_read(
    files: SharePointWorld, session: aiohttp.ClientSession
) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    files.source = files.source_with(session, libraries=["Documents", "Policies"])
    reading = Reading()
    with pytest.raises(SourceUnavailable, match="has no library 'Policies'"):
        await reading.go_on(files)
    assert len(reading.documents) == 1
    with pytest.raises(SourceUnavailable, match="has no library 'Policies'"):
        await files.source.check()


async def test_library_that_is_no_longer_wanted_leaves_index(files: SharePointWorld) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.libraries = {}
    assert (await reading.go_on(files)).documents == {}


# --- what could not be read ------------------------------------------------------------------------------------------


async def test_download_elsewhere_is_not_followed_and_file_stays(files: SharePointWorld) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    async with FakeSharePoint() as inner:
        files.server.put("01A", "a.md", "Cordon the node.")
        files.server.elsewhere = f"http://localhost:{inner.download_host.partition(':')[2]}"
        for _ in range(2):
            await reading.go_on(files)
            assert "redirects to localhost" in reading.reasons["a.md"]
        assert inner.refusals.requests == []
    assert [each.text for each in reading.documents.values()] == ["Drain the node."]
    files.server.elsewhere = ""
    await reading.go_on(files)
    assert [each.text for each in reading.documents.values()] == ["Cordon the node."]


async def test_file_that_cannot_be_read_goes_if_others_may_read_it_now(files: SharePointWorld) -> None:
    stored = files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.elsewhere, stored.permissions = "http://localhost:1", [granted(KEEPERS)]
    assert (await reading.go_on(files)).documents == {}


@pytest.mark.parametrize("hostile", ["../../me", "a/b", "..", ""])
async def test_hostile_id_becomes_no_part_of_address(files: SharePointWorld, hostile: str) -> None:
    files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    files.server.put("01B", "b.md", "Drain the node.", id=hostile)
    with pytest.raises(SourceUnavailable, match="in an unexpected format"):
        await reading.go_on(files)
    assert not any("me/" in each for each in files.refusals.requests)
    assert len(reading.documents) == 1


# --- who may read a file ---------------------------------------------------------------------------------------------


def person(user: str, name: str = "Misty Suarez") -> dict[str, Any]:
    return {"user": {"id": user, "displayName": name}, "siteUser": {"id": "1", "displayName": name}}


@pytest.mark.parametrize(
    ("permissions", "expected"),
    [
        ([granted(person("u-1"))], {"person:teams:u-1"}),
        ([granted(VISITORS), granted(person("u-1"))], {PUBLIC, "person:teams:u-1"}),
        ([granted(KEEPERS)], {NOBODY}),
        ([granted({"siteUser": {"id": "1", "displayName": "Ops Visitors"}})], {NOBODY}),
        ([granted({"application": {"id": "a", "displayName": "Time Manager"}})], {NOBODY}),
        ([granted(scope="organization")], {NOBODY}),
        ([granted(scope="anonymous")], {NOBODY}),
        ([granted(person("u-1"), person("u-2"), scope="users")], {"person:teams:u-1", "person:teams:u-2"}),
        ([{"id": "1", "roles": ["read"], "invitation": {"email": "jd@contoso.example"}}], {NOBODY}),
        ([granted(person("u-7"))], {"person:teams:u-7", "person:slack:U7"}),
        ([], {NOBODY}),
    ],
    ids=[
        "person",
        "mapped group of the site",
        "unmapped group of the site",
        "somebody who calls themselves like a mapped group",
        "application",
        "link for the organisation",
        "link for anybody",
        "link for two people",
        "invitation",
        "mapped person",
        "nobody",
    ],
)
async def test_readers_are_those_who_are_granted_something(
    files: SharePointWorld, session: aiohttp.ClientSession, permissions: list[dict[str, Any]], expected: set[str]
) -> None:
    files.server.put("01A", "a.md", "Drain the node.").permissions = permissions
    identities = {"site-group:Ops Visitors": EVERYBODY, "user:u-7": frozenset({"person:slack:U7"})}
    files.source = files.source_with(session, identities)
    assert (await read(files)).readers() == expected


async def test_group_is_its_members_and_standard_channels_of_its_team(files: SharePointWorld) -> None:
    files.server.team(TEAM)
    files.server.channel(TEAM, "19:general", "General")
    files.server.channel(TEAM, "19:secret", "Secret", "private")
    files.server.groups[TEAM] = [
        {"@odata.type": "#microsoft.graph.user", "id": "u-1", "displayName": "Misty Suarez", "mail": "misty@c.example"},
        {"@odata.type": "#microsoft.graph.group", "id": "g-2", "displayName": "Nested"},
        {"@odata.type": "#microsoft.graph.user", "id": "u-2", "displayName": "Judith Clemons"},
    ]
    for item in ("01A", "01B"):
        files.server.put(item, f"{item}.md", "Ask Misty.").permissions = [granted({"group": {"id": TEAM}})]
    reading = await read(files)
    assert reading.readers() == {"person:teams:u-1", "person:teams:u-2", "channel:teams:19:general"}
    assert ("Misty Suarez", "misty@c.example") in reading.documents[f"docs/{DRIVE}/01A"].people
    assert sum("transitiveMembers" in each for each in files.refusals.requests) == 2  # pages, once for both files


async def test_large_group_is_its_channels(files: SharePointWorld) -> None:
    files.server.team(TEAM)
    files.server.channel(TEAM, "19:general", "General")
    files.server.page_size = 1_000
    files.server.groups[TEAM] = [
        {"@odata.type": "#microsoft.graph.user", "id": f"u-{number}"} for number in range(MAX_MEMBERS + 1)
    ]
    files.server.put("01A", "a.md", "Drain.").permissions = [granted({"group": {"id": TEAM}})]
    assert (await read(files)).readers() == {"channel:teams:19:general"}


async def test_group_whose_members_are_hidden_reads_nothing_and_is_named_unless_it_is_mapped(
    files: SharePointWorld, session: aiohttp.ClientSession
) -> None:
    group = {"group": {"id": TEAM, "displayName": "Operations"}}
    files.server.put("01A", "a.md", "Drain.").permissions = [granted(group)]
    reading = await read(files)
    assert reading.readers() == {NOBODY}
    assert f"`group:{TEAM}`" in reading.reasons["group Operations"]
    files.source = files.source_with(session, {f"group:{TEAM}": frozenset({"channel:ops"})})
    await reading.go_on(files)
    assert reading.readers() == {"channel:ops"}
    assert reading.reasons == {}


async def test_group_of_site_that_is_not_mapped_is_named_once(
    files: SharePointWorld, session: aiohttp.ClientSession
) -> None:
    for item in ("01A", "01B"):
        files.server.put(item, f"{item}.md", "Drain.").permissions = [granted(VISITORS), granted(KEEPERS)]
    assert [each.path for each in (await read(files)).left_out] == ["group Vault Keepers"]
    nobody = {"site-group:Ops Visitors": EVERYBODY, "site-group:Vault Keepers": frozenset[str]()}
    files.source = files.source_with(session, nobody)
    assert (await read(files)).left_out == []


@pytest.mark.parametrize("status", [400, 403])
async def test_nobody_reads_file_whose_permissions_are_not_told(files: SharePointWorld, status: int) -> None:
    stored = files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    stored.tells_permissions = status
    await reading.go_on(files)
    assert reading.readers() == {NOBODY}
    assert reading.left_out == [
        LeftOut("a.md", f"Graph does not say who may read it (HTTP status {status}), so nobody does.", is_indexed=True)
    ]


async def test_permission_that_comes_or_goes_is_seen_although_delta_is_empty(files: SharePointWorld) -> None:
    stored = files.server.put("01A", "a.md", "Drain the node.")
    reading = await read(files)
    for permissions, expected in (([granted(KEEPERS)], {NOBODY}), ([granted(VISITORS)], EVERYBODY)):
        stored.permissions = permissions
        await reading.go_on(files)
        assert reading.readers() == expected
    assert (await reading.go_on(files)).read == set()


async def test_members_who_come_or_go_are_seen(files: SharePointWorld) -> None:
    files.server.groups[TEAM] = [{"@odata.type": "#microsoft.graph.user", "id": "u-1"}]
    files.server.put("01A", "a.md", "Drain.").permissions = [granted({"group": {"id": TEAM}})]
    reading = await read(files)
    files.server.groups[TEAM] = [{"@odata.type": "#microsoft.graph.user", "id": "u-2"}]
    assert (await reading.go_on(files)).readers() == {"person:teams:u-2"}


@every_case(
    ("rights", "stated", "expected"),
    [
        ({"channel:ops"}, {PUBLIC}, {"channel:ops"}),
        ({PUBLIC}, {"channel:vault"}, {"channel:vault"}),
        ({"channel:ops", "channel:vault"}, {"channel:vault", "channel:hr"}, {"channel:vault"}),
        ({"channel:ops"}, {"channel:vault"}, {NOBODY}),
        ({NOBODY}, {"channel:vault"}, {NOBODY}),
    ],
)
def test_stated_readers_never_widen_rights(rights: set[str], stated: set[str], expected: set[str]) -> None:
    assert narrowed(frozenset(rights), frozenset(stated)) == expected


async def test_readers_in_front_matter_restrict_a_file(files: SharePointWorld) -> None:
    text = "---\nreaders: [channel:vault]\n---\nUnseal."
    files.server.put("01A", "a.md", text)
    files.server.put("01B", "b.md", text.replace("channel:vault", "public")).permissions = [granted(KEEPERS)]
    reading = await read(files)
    assert (reading.readers("01A"), reading.readers("01B")) == ({"channel:vault"}, {NOBODY})


# --- a page ----------------------------------------------------------------------------------------------------------


def snippet(key: str, value: str) -> dict[str, Any]:
    content = {"htmlStrings": [], "searchablePlainTexts": [{"key": key, "value": value}], "links": []}
    return {
        "@odata.type": "#microsoft.graph.standardWebPart",
        "id": "99f59f91",
        "webPartType": "d1d91016-032f-456d-98a4-721247c305e8",
        "data": {"title": "Part", "properties": {}, "serverProcessedContent": content},
    }


async def test_page_is_text_of_its_parts_in_order(pages: SharePointWorld) -> None:
    table = "<table><tr><th>Alert</th><th>Do</th></tr><tr><td>Disk</td><td>drain</td></tr></table>"
    canvas = canvas_of(
        [text_part("<h2>Drain</h2><p>Run <b>this</b>:</p>"), snippet("code", "if [[ $a < 3 ]]; then\n  drain\nfi")],
        [text_part(f"<ul><li>one<ul><li>two</li></ul></li></ul>{table}"), snippet("title", "A & B")],
        vertical=[text_part('<p>See <a href="/sites/ops/SitePages/Freeze.aspx">the freeze</a>.</p>')],
    )
    pages.server.pages["p-1"] = StoredPage("Drain a node", canvas)
    (found,) = (await read(pages)).documents.values()
    assert (found.id, found.family, found.title) == (f"docs/{SITE}/p-1", "Operations", "Drain a node")
    assert found.url == f"{ADDRESS}/SitePages/Drain%20a%20node.aspx"
    assert found.text == (
        "## Drain\n\nRun **this**:\n\n```\nif [[ $a < 3 ]]; then\n  drain\nfi\n```\n\n- one\n  - two\n\n"
        "| Alert | Do |\n| --- | --- |\n| Disk | drain |\n\nA & B\n\n"
        "See [the freeze](https://contoso.sharepoint.com/sites/ops/SitePages/Freeze.aspx)."
    )


async def test_draft_is_not_read_and_published_text_stays_while_it_is_edited(pages: SharePointWorld) -> None:
    pages.write("1", "Drain the node.")
    reading = await read(pages)
    pages.write("1", "Explode the node.")
    pages.write("2", "A secret draft.")
    for key in ("p-1", "p-2"):
        pages.server.pages[key].level = "draft"
    await reading.go_on(pages)
    assert [each.text for each in reading.documents.values()] == ["Drain the node."]
    assert reading.reasons == {"Page 2.aspx": "It is not published, so only its editors see it."}
    pages.server.pages["p-1"].level = "published"
    await reading.go_on(pages)
    assert [each.text for each in reading.documents.values()] == ["Explode the node."]


async def test_page_that_is_not_listed_stays_if_it_is_there(pages: SharePointWorld) -> None:
    pages.write("1", "Drain the node.")
    reading = await read(pages)
    pages.server.shows_pages = False
    assert len((await reading.go_on(pages)).documents) == 1
    pages.remove("1")
    assert (await reading.go_on(pages)).documents == {}


async def test_page_in_unexpected_format_is_named_and_stays(pages: SharePointWorld) -> None:
    pages.write("1", "Drain the node.")
    reading = await read(pages)
    pages.write("1", "Cordon.")
    pages.server.pages["p-1"].canvas = {"horizontalSections": "none"}
    await reading.go_on(pages)
    assert [each.text for each in reading.documents.values()] == ["Drain the node."]
    assert "unexpected format" in reading.reasons["Page 1.aspx"]


async def test_without_declared_readers_no_page_is_read_and_those_read_before_go(
    pages: SharePointWorld, session: aiohttp.ClientSession
) -> None:
    pages.write("1", "Drain the node.")
    reading = await read(pages)
    pages.source = pages.source_with(session, page_readers=frozenset[str]())
    assert (await reading.go_on(pages)).documents == {}
    assert not any("/pages" in each for each in pages.refusals.requests)
