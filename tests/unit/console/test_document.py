"""Passages → Markdown → HTML."""

from __future__ import annotations

import re
from dataclasses import replace

from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from adapters.console.document import document_url, joined, render_document, render_inline, render_statement
from core.knowledge.markdown import blocks, slug
from core.knowledge.passages import passages_of
from core.model.document import Document
from tests.cases import every_case

LONG_SECTION = "\n\n".join(
    f"## Step {n}\n\nDo number {n}. " + "It takes a while and some care. " * 20 for n in range(30)
)
ANY_TEXT = st.text(alphabet="ab`*_<>&#[]()!|-~ \n\"'1.:/\\", max_size=120)


def passages(text: str):
    return passages_of(Document("handbook/guide.md", "handbook", "guides", "Guide", text))


def html_of(text: str, **options: str) -> BeautifulSoup:
    return BeautifulSoup(render_document(text, **({"title": "Guide"} | options)).html, "html.parser")


def test_a_document_of_one_passage_is_that_passage() -> None:
    assert joined(passages("# Guide\n\nText.")) == "# Guide\n\nText."


def test_what_passages_repeat_is_said_once() -> None:
    several = passages(LONG_SECTION)
    assert len(several) > 2
    assert [block.text for block in blocks(joined(several))] == [block.text for block in blocks(LONG_SECTION)]


def test_passages_without_an_overlap_follow_each_other() -> None:
    first, second = passages("One.")[0], replace(passages("Two.")[0], number=2)
    assert joined([first, second]) == "One.\n\nTwo."


def test_headings_carry_the_link_targets_of_citations() -> None:
    rendered = render_document("## When the *cache* is full\n\ntext\n\n## `OOMKilled`, what now?", title="Guide")
    assert [heading.anchor for heading in rendered.headings] == [
        slug("When the *cache* is full"),
        slug("`OOMKilled`, what now?"),
    ]
    assert 'id="when-the-cache-is-full"' in rendered.html
    assert [heading.text for heading in rendered.headings] == ["When the cache is full", "OOMKilled, what now?"]


def test_a_heading_that_comes_twice_has_two_link_targets_and_the_first_is_the_plain_one() -> None:
    rendered = render_document("## Fix\n\na\n\n## Fix\n\nb", title="Guide")
    assert [heading.anchor for heading in rendered.headings] == ["fix", "fix-1"]


def test_a_first_heading_that_repeats_the_title_is_left_out() -> None:
    assert html_of("# Guide\n\ntext", title="The Guide").find("h1") is None
    assert html_of("# Another\n\ntext", title="The Guide").find("h1") is not None


@every_case(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[click](javascript:alert(1))",
        "[click](JaVaScRiPt:alert(1))",
        "[click](data:text/html,<script>alert(1)</script>)",
        "[click](vbscript:x)",
        '## <b onmouseover="x">head</b>',
        '```html"><script>alert(1)</script>\n```',
        "![x](https://tracker.example/pixel.gif)",
        '<iframe src="https://evil.example"></iframe>',
        "<javascript:alert(1)>",
    ],
)
def test_a_hostile_document_becomes_text(hostile: str) -> None:
    for html in (html_of(hostile), BeautifulSoup(render_statement(hostile), "html.parser")):
        assert html.find(["script", "img", "iframe", "b"]) is None
        hrefs = [str(link["href"]) for link in html.find_all("a")]
        assert all(href.startswith("https://") for href in hrefs)
        assert not any(name.startswith("on") for tag in html.find_all(True) for name in tag.attrs)


def test_a_picture_is_a_link_to_it() -> None:
    link = html_of("![The mast](https://pictures.example/mast.png)").find("a")
    assert link is not None
    assert (link.get_text(), link["href"]) == ("The mast", "https://pictures.example/mast.png")


def test_links_to_other_documents_keep_the_channel_and_others_do_not_get_it() -> None:
    html = html_of("[a](other.md#top) [b](https://x.example/y) [c](#here) [d](/abs)", channel="ci cd")
    assert [a["href"] for a in html.find_all("a")] == [
        "other.md?channel=ci+cd#top",
        "https://x.example/y",
        "#here",
        "/abs",
    ]


def test_the_quote_is_marked() -> None:
    cases: list[tuple[str, str, str]] = [
        ("First. Second one here. Third.", "Second one here.", "Second one here."),
        ("It wraps over\ntwo lines. End.", "It wraps over two lines.", "It wraps over\ntwo lines."),
        ("Run `slipway rollback` now. Then rest.", "Run `slipway rollback` now.", "Run slipway rollback now."),
        ("**Bold start** of a sentence.", "**Bold start** of a sentence.", "Bold start of a sentence."),
        ("- first item\n- second item", "first item\nsecond item", "first itemsecond item"),
        ("text\n\n```\nrm -rf build\n```", "```\nrm -rf build\n```", "rm -rf build"),
        ("A <tag> & more.", "A <tag> & more.", "A <tag> & more."),
        ("**Note:** mind the gap.", "**Note:**", "Note:"),
        ("See [the runbook](a.md) first. Then go.", "See [the runbook](a.md) first.", "See the runbook first."),
        ("The beginning of something long.", "The beginning of…", "The beginning of"),
    ]
    for text, quote, marked in cases:
        rendered = render_document(text, title="Guide", quote=quote)
        assert rendered.highlighted, (text, quote, marked)
        marks = BeautifulSoup(rendered.html, "html.parser").find_all("mark")
        assert "".join(mark.get_text() for mark in marks) == marked, (text, quote, marked)


@every_case("quote", ["", "not in there at all", "a", "```", "   "])
def test_a_quote_that_is_not_there_marks_nothing(quote: str) -> None:
    rendered = render_document("Some a text.", title="Guide", quote=quote)
    assert not rendered.highlighted
    assert "<mark>" not in rendered.html


@given(text=ANY_TEXT, start=st.integers(0, 120), length=st.integers(1, 120))
def test_a_mark_changes_no_text_and_cuts_no_element(text: str, start: int, length: int) -> None:
    plain = str(render_document(text, title="Guide").html)
    marked = str(render_document(text, title="Guide", quote=text[start : start + length]).html)
    assert re.sub("<mark>([^<]*)</mark>", r"\1", marked) == plain


def test_a_statement_shows_code_and_emphasis_and_nothing_else() -> None:
    html = str(render_inline("Use `a<b` and **this**, not [that](https://x.example) or snake_case_names."))
    assert html == (
        "Use <code>a&lt;b</code> and <strong>this</strong>, not [that](https://x.example) or snake_case_names."
    )


def test_a_statement_with_a_block_of_code_shows_it_as_one() -> None:
    html = BeautifulSoup(
        render_statement("Do one run without the cache:\n```\ndrydock retry --all\n```"), "html.parser"
    )
    code = html.find("pre")
    assert code is not None
    assert code.get_text().strip() == "drydock retry --all"


def test_a_document_address_survives_odd_names() -> None:
    url = document_url("chat/what? #1&2.md", "ask/me", "100 % & more", "größe")
    assert url == "/documents/chat/what%3F%20%231%262.md?channel=ask%2Fme&quote=100+%25+%26+more#gr%C3%B6%C3%9Fe"
