"""Confluence: what a page becomes, and who may read it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import aiohttp
import pytest

from adapters.http import Token, source_server
from adapters.sources.confluence import Access, ConfluenceSource, ListedPage
from adapters.sources.confluence_storage import to_markdown
from adapters.sources.document_properties import NOBODY
from core.knowledge.markdown import BlockKind, blocks
from core.model.conversation import PUBLIC
from core.model.document import AnchorStyle, Document
from core.model.errors import ConfigurationError, SourceUnavailable
from tests.cases import every_case
from tests.contract.source_worlds.remote import ConfluenceWorld
from tests.fakes.confluence_server import TOKEN, FakeConfluence, Page

EVERYBODY = frozenset({PUBLIC})
MAPPED = Access(
    EVERYBODY,
    {
        "group:payments": frozenset({"channel:payments-private"}),
        "group:platform": frozenset({"channel:platform-private", "channel:payments-private"}),
        "user:5b10ruth": frozenset({"person:slack:U7"}),
    },
)


@pytest.fixture(params=[True, False], ids=["cloud", "data center"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[FakeConfluence]:
    async with FakeConfluence(cloud=request.param) as running:
        yield running


def page(server: FakeConfluence, page_id: str, storage: str = "<p>text</p>", **fields: object) -> None:
    server.pages[page_id] = Page(page_id, f"Page {page_id}", storage, **fields)  # pyright: ignore[reportArgumentType]


async def read(
    server: FakeConfluence, session: aiohttp.ClientSession, access: Access = MAPPED, cursor: str = ""
) -> dict[str, Document]:
    source = ConfluenceWorld(server, session).source_with(session, access)
    documents = [document async for part in source.changes(cursor, frozenset()) for document in part.documents]
    assert len(documents) == len({document.id for document in documents})
    return {document.id.removeprefix("docs/"): document for document in documents}


async def readers(server: FakeConfluence, session: aiohttp.ClientSession) -> dict[str, frozenset[str]]:
    return {key: document.readers for key, document in (await read(server, session)).items()}


# --- a page ----------------------------------------------------------------------------------------------------------


async def test_a_page_is_a_document_with_its_space_as_family_and_its_own_address(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "11", "<h1>Drain</h1><p>Run <code>drain_node</code>.</p>", when="2026-02-01T12:00:00.000+02:00")
    (found,) = (await read(server, session)).values()
    assert found == Document(
        id="docs/11",
        source="docs",
        family="OPS",
        title="Page 11",
        text="# Drain\n\nRun `drain_node`.",
        url=f"{server.url}/spaces/OPS/pages/11",
        updated_at=datetime(2026, 2, 1, 10, tzinfo=UTC),
        readers=EVERYBODY,
        people=(("Asha Brandt", "5b10asha"),),
        anchors=AnchorStyle.WITH_TITLE,
    )


async def test_who_is_mentioned_has_a_name_if_it_wrote_in_the_space(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    mention = '<p>Ask <ac:link><ri:user ri:account-id="{}" /></ac:link></p>'
    page(server, "11", mention.format("5b10asha"))
    page(server, "12", mention.format("unknown"))
    found = await read(server, session)
    assert found["11"].text == "Ask @Asha Brandt"
    assert found["12"].text == "Ask @somebody"


async def test_relative_links_lead_where_they_do_on_the_page(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "11", '<p>See <a href="/wiki/spaces/OPS/pages/12">the freeze</a> and <a href="#now">now</a>.</p>')
    host = server.url.rpartition("/")[0]  # without the context path
    (found,) = (await read(server, session)).values()
    assert found.text == f"See [the freeze]({host}/wiki/spaces/OPS/pages/12) and [now]({found.url}#now)."


async def test_only_pages_of_the_spaces_are_read(server: FakeConfluence, session: aiohttp.ClientSession) -> None:
    page(server, "11")
    page(server, "12", space="HR")
    page(server, "13", type="blogpost")
    assert set(await read(server, session)) == {"11"}


async def test_a_page_that_is_deleted_while_others_are_listed_takes_none_of_them_along(
    server: FakeConfluence, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20, 30):
        page(server, str(number))
    source = ConfluenceWorld(server, session).source
    known = frozenset(f"docs/{number}" for number in range(20, 30))

    # The first answer is on its way when its first page is deleted: the others move up.
    listed = source._listed

    async def listed_during_deletion(ids: Sequence[str] = ()) -> AsyncIterator[ListedPage]:
        async for each in listed(ids):
            yield each
            server.pages.pop("20", None)

    monkeypatch.setattr(source, "_listed", listed_during_deletion)
    parts = [part async for part in source.changes("", known)]
    assert frozenset[str]().union(*(part.removed_ids for part in parts)) == {"docs/20"}


async def test_spaces_that_show_nothing_any_more_lose_nothing(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    source = ConfluenceWorld(server, session).source
    with pytest.raises(SourceUnavailable, match="no longer shows a page of OPS"):
        await anext(source.changes("", frozenset({"docs/11"})))


async def test_the_key_of_a_space_cannot_become_part_of_the_query(session: aiohttp.ClientSession) -> None:
    rest = source_server("Confluence", "http://localhost/wiki", session, Token(""))
    with pytest.raises(ConfigurationError, match="not the key"):
        ConfluenceSource("docs", rest, "http://localhost/wiki", ['OPS") or space = ("HR'], MAPPED)


async def test_a_link_to_another_server_is_not_followed_with_our_token(session: aiohttp.ClientSession) -> None:
    async with FakeConfluence(cloud=True) as ours, FakeConfluence(cloud=True) as theirs:
        rest = source_server("Confluence", ours.url, session, Token(f"Bearer {TOKEN}"))
        with pytest.raises(SourceUnavailable, match="another server"):
            await rest.get(f"{theirs.url.replace('127.0.0.1', 'localhost')}/rest/api/content/search")
        assert theirs.refusals.requests == []


# --- who may read it -------------------------------------------------------------------------------------------------


async def test_a_group_or_a_person_that_is_mapped_reads_a_restricted_page(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "11", groups=("payments",))
    page(server, "12", users=("5b10ruth",), groups=("payments",))
    assert await readers(server, session) == {
        "11": {"channel:payments-private"},
        "12": {"channel:payments-private", "person:slack:U7"},
    }


async def test_nobody_reads_a_page_that_is_restricted_to_whom_we_do_not_know(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "11", groups=("board",))
    page(server, "12", users=("5b10boss",))
    page(server, "13", hidden_users=1)
    assert await readers(server, session) == {"11": {NOBODY}, "12": {NOBODY}, "13": {NOBODY}}


async def test_nobody_reads_a_page_whose_restrictions_were_not_told(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "11", tells_restrictions=False)
    assert await readers(server, session) == {"11": {NOBODY}}


async def test_restrictions_are_inherited_from_every_page_above(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "1", groups=("platform",))
    page(server, "2", ancestors=("1",))
    page(server, "3", ancestors=("1", "2"), groups=("payments",))
    page(server, "4", ancestors=("1", "2"), users=("5b10ruth",))
    assert await readers(server, session) == {
        "1": {"channel:platform-private", "channel:payments-private"},
        "2": {"channel:platform-private", "channel:payments-private"},
        "3": {"channel:payments-private"},
        "4": {NOBODY},
    }


async def test_restrictions_of_a_page_above_that_is_not_listed_count_too(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "1", space="HR", groups=("payments",))
    page(server, "2", ancestors=("1",))
    page(server, "3", ancestors=("404",))
    assert await readers(server, session) == {"2": {"channel:payments-private"}, "3": {NOBODY}}


async def test_a_restriction_that_comes_or_goes_is_seen_although_the_page_did_not_change(
    server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "1")
    page(server, "2", ancestors=("1",))
    page(server, "3")
    source = ConfluenceWorld(server, session).source_with(session, MAPPED)
    known = frozenset({"docs/1", "docs/2", "docs/3"})
    cursor = [part.cursor async for part in source.changes("", frozenset())][-1]
    for groups, expected in ((("payments",), {"channel:payments-private"}), ((), EVERYBODY)):
        server.pages["1"].groups = groups
        parts = [part async for part in source.changes(cursor, known)]
        found = {document.id: document.readers for part in parts for document in part.documents}
        assert found["docs/1"] == found["docs/2"] == expected
        cursor = parts[-1].cursor


async def test_another_setting_reads_everything_anew(server: FakeConfluence, session: aiohttp.ClientSession) -> None:
    page(server, "1", when="2026-01-01T10:00:00.000Z")
    page(server, "2")
    known = frozenset({"docs/1", "docs/2"})
    source = ConfluenceWorld(server, session).source_with(session, MAPPED)
    cursor = [part.cursor async for part in source.changes("", frozenset())][-1]
    narrow = ConfluenceWorld(server, session).source_with(session, Access(frozenset({"channel:ops"})))
    found = [document.readers async for part in narrow.changes(cursor, known) for document in part.documents]
    assert found == [{"channel:ops"}, {"channel:ops"}]


@pytest.mark.parametrize(
    "storage",
    [
        "<h1>Vault</h1><p><strong>CONFIDENTIAL</strong></p><p>Unseal.</p>",
        (
            '<ac:structured-macro ac:name="details"><ac:rich-text-body><table><tr><th>Owner</th><td>x</td></tr><tr>'
            "<th>Visibility</th><td>leads</td></tr></table></ac:rich-text-body></ac:structured-macro><p>Unseal.</p>"
        ),
    ],
)
async def test_a_page_that_says_that_not_everybody_may_read_it_is_withheld_named_and_removed(
    storage: str, server: FakeConfluence, session: aiohttp.ClientSession
) -> None:
    page(server, "1")
    page(server, "2")
    server.pages["2"].storage = storage
    source = ConfluenceWorld(server, session).source_with(session, MAPPED)
    parts = [part async for part in source.changes("", frozenset({"docs/1", "docs/2"}))]
    assert [document.id for part in parts for document in part.documents] == ["docs/1"]
    assert frozenset().union(*(part.removed_ids for part in parts)) == {"docs/2"}
    assert [each.path for part in parts for each in part.left_out] == ["page 2"]


# --- the storage format ----------------------------------------------------------------------------------------------


def markdown(storage: str) -> str:
    return to_markdown(storage, lambda space, title: f"https://wiki/{space}/{title}", lambda user: user)


def macro(name: str, body: str = "", **parameters: str) -> str:
    given = "".join(f'<ac:parameter ac:name="{key}">{value}</ac:parameter>' for key, value in parameters.items())
    return f'<ac:structured-macro ac:name="{name}">{given}{body}</ac:structured-macro>'


def plain(text: str) -> str:
    return f"<ac:plain-text-body><![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]></ac:plain-text-body>"


def rich(html: str) -> str:
    return f"<ac:rich-text-body>{html}</ac:rich-text-body>"


def test_code_keeps_its_language_title_and_every_character() -> None:
    code = 'if [[ $a < 3 && "$b" != "&amp;" ]]>x\n  kube_pod_status'
    found = markdown(macro("code", plain(code), language="bash", title="drain.sh"))
    assert found == f"**drain.sh**\n\n```bash\n{code}\n```"


def test_panels_and_expands_have_their_kind_and_title_before_their_text() -> None:
    panel = macro("warning", rich(f"<p>Drain first.</p>{macro('code', plain('drain'))}"), title="Careful")
    assert markdown(panel) == "**Warning: Careful**\n\nDrain first.\n\n```\ndrain\n```"
    assert markdown(macro("expand", rich("<ul><li>a</li></ul>"), title="More")) == "**More**\n\n- a"
    assert markdown(macro("info", rich("<p>x</p>"))) == "**Info**\n\nx"


def test_a_table_is_a_table_with_each_row_on_one_line() -> None:
    row = f"<tr><td><p>Disk|full</p></td><td>{macro('code', plain('df -h'))}</td><td>{macro('status', title='DONE')}</td></tr>"
    html = f"<table><tbody><tr><th>Alert</th><th>Do</th><th>State</th></tr>{row}</tbody></table>"
    found = markdown(html).splitlines()
    assert [line.replace(" ", "") for line in found] == [
        "|Alert|Do|State|",
        "|---|---|---|",
        r"|Disk\|full|`df-h`|DONE|",
    ]


def rows(html: str) -> list[str]:
    return [line.replace(" ", "") for line in markdown(f"<table><tbody>{html}</tbody></table>").splitlines()]


def test_a_cell_that_reaches_over_rows_stands_in_each_of_them() -> None:
    found = rows(
        "<tr><th>Service</th><th>Region</th><th>Limit</th></tr>"
        '<tr><td rowspan="2">ledger</td><td>eu</td><td>50</td></tr><tr><td>us</td><td>80</td></tr>'
        '<tr><td>till</td><td rowspan="0" colspan="2">any</td></tr><tr><td>quay</td></tr>'
    )
    assert found[2:] == ["|ledger|eu|50|", "|ledger|us|80|", "|till|any||", "|quay|any||"]


def test_a_table_whose_rows_are_named_by_their_first_cell_has_an_empty_header() -> None:
    assert rows("<tr><th>Owner</th><td>Ledger</td></tr><tr><th>Port</th><td>8080</td></tr>") == [
        "|||",
        "|---|---|",
        "|Owner|Ledger|",
        "|Port|8080|",
    ]


def test_cells_that_reach_far_make_no_page_large() -> None:
    wide = '<td rowspan="60000">' + "x" * 50 + "</td>"
    assert len(markdown(f"<table><tr>{wide * 100}</tr>{'<tr><td>y</td></tr>' * 500}</table>")) < 1_000_000


def test_a_table_within_a_cell_stands_on_the_line_of_its_row() -> None:
    inner = "<table><tr><th>Port</th><th>Use</th></tr><tr><td>5432</td><td>reads</td></tr></table>"
    assert rows(f"<table><tr><th>A</th><th>B</th></tr><tr><td>pg</td><td>{inner}</td></tr></table>")[2:] == [
        "|pg|Port,Use;5432,reads|"
    ]


def test_tables_within_tables_make_no_page_large() -> None:
    assert len(markdown("<table><tr><td>x" * 100)) < 1_000


def test_a_sign_that_is_all_that_a_cell_says_is_said() -> None:
    cell = "<td>{}</td>".format
    signs = ('ac:name="tick"', 'ac:name="cross" ac:emoji-fallback=":cross_mark:"', 'ac:name="blue-star"')
    cells = "".join(cell(f"<ac:emoticon {sign}/>") for sign in signs)
    assert rows(f"<table><tr><th>x</th><th>y</th><th>z</th></tr><tr>{cells}</tr></table>")[2:] == ["|✔|✘||"]


def test_code_with_fences_of_its_own_ends_where_it_ends() -> None:
    code = markdown(macro("code", plain("```\nls\n```\nls -l")))
    assert code == "````\n```\nls\n```\nls -l\n````"
    assert [block.kind for block in blocks(code)] == [BlockKind.CODE]


def test_lines_of_code_end_where_they_end() -> None:
    assert markdown("<pre>drain \\<br/>  n7</pre>") == "```\ndrain \\\n  n7\n```"


def test_what_its_authors_struck_out_is_not_said() -> None:
    assert markdown("<p><s>Use drain.</s> Use cordon.</p><p><del>Old.</del></p>") == "Use cordon."


def test_links_lead_to_pages_and_attachments_and_pictures_are_there_by_name() -> None:
    link = '<ac:link><ri:page ri:space-key="OPS" ri:content-title="Freeze" /><ac:link-body>the <b>freeze</b></ac:link-body></ac:link>'
    file = '<ac:link><ri:attachment ri:filename="plan.pdf" /></ac:link>'
    image = '<ac:image><ri:attachment ri:filename="disk.png" /></ac:image>'
    found = markdown(f'<p>{link}, {file}, {image}, <a href="https://x.example">x</a></p>')
    assert found == "[the freeze](https://wiki/OPS/Freeze), plan.pdf, (image: disk.png), [x](https://x.example)"


def test_tasks_dates_layouts_and_unknown_macros_leave_their_text() -> None:
    task = "<ac:task><ac:task-id>1</ac:task-id><ac:task-status>complete</ac:task-status><ac:task-body>did it</ac:task-body></ac:task>"
    assert markdown(f"<ac:task-list>{task}</ac:task-list>") == "- [x] did it"
    layout = '<ac:layout><ac:layout-section><ac:layout-cell><p>on <time datetime="2026-03-01" /></p></ac:layout-cell></ac:layout-section></ac:layout>'
    assert markdown(layout) == "on 2026-03-01"
    assert markdown(macro("toc") + macro("something-new", rich("<p>kept</p>"))) == "kept"


def inner(name: str, content: str) -> str:
    return f'<ac:parameter ac:name="{name}">{content}</ac:parameter>'


PAGE = '<ac:link><ri:page ri:space-key="OPS" ri:content-title="Drain steps" /></ac:link>'
LINKED = "(Not included here: [Drain steps](https://wiki/OPS/Drain%20steps))"


@every_case(
    ("written", "read"),
    [
        (macro("include", inner("", PAGE)), LINKED),
        (macro("excerpt-include", inner("", PAGE) + inner("nopanel", "true")), LINKED),
        (macro("multiexcerpt-include-macro", inner("PageWithExcerpt", PAGE)), LINKED),
        (macro("include", inner("", "OPS:Drain steps")), "(Not included here: include: OPS:Drain steps)"),
        (
            macro("view-file", inner("name", '<ri:attachment ri:filename="steps.pdf" />')),
            "(Not included here: steps.pdf)",
        ),
        (macro("drawio", inner("diagramName", "Seats")), "(Not included here: drawio)"),
        (macro("jira", inner("jqlQuery", "project = OPS")), "(Not included here: jira)"),
        (macro("jira", inner("key", "OPS-7")), "OPS-7"),
    ],
)
def test_what_a_macro_shows_from_elsewhere_is_named_in_its_place(written: str, read: str) -> None:
    assert markdown(f"<ol><li>Announce it.</li><li>{written}</li><li>Start it.</li></ol>") == (
        f"1. Announce it.\n2. {read}".rstrip() + "\n3. Start it."
    )


@every_case("storage", ["", "<p>un<b>closed", "<ac:link>", "<![CDATA[", "a & b < c", "<ac:structured-macro>"])
def test_what_is_no_storage_format_does_no_harm(storage: str) -> None:
    assert isinstance(markdown(storage), str)
