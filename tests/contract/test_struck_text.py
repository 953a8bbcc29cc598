"""Text that no longer holds, because it is struck out or hidden, is left out of files of every format and of messages."""

from __future__ import annotations

import pytest

from adapters.microsoft import GraphMessage, text_of
from adapters.slack.payloads import Content
from adapters.sources.formats import PAGES, SUFFIXES, parse
from adapters.teams.activity import plain_text
from tests.cases import every_case
from tests.fakes.documents import WORD, word

MARKDOWN = (
    "Wait. ~~Run amaranth.~~ Drain.",
    "Wait. ~~Run `amaranth ~ now`\nor amaranth~~ Drain.",
    "Wait. <s>Run `amaranth`.</s> Drain.",
    "Wait. <DEL datetime='2026-02-01'>amaranth</DEL> Drain.",
    "Wait. <span style='color: red; text-decoration: line-through'>amaranth</span> Drain.",
    "Wait. <span hidden>amaranth</span> Drain.",
    "Wait.\n\n1. ~~Run amaranth.~~\n2. Drain.",
    "Wait.\n\n| Step |\n| --- |\n| ~~amaranth~~ |\n\nDrain.",
    "Wait.\n\n<div style='display: none'>\namaranth\n</div>\n\nDrain.",
)
HTML = (
    "<s>amaranth</s>",
    "<strike>amaranth</strike>",
    "<del>amaranth</del>",
    '<span style="text-decoration: line-through">amaranth</span>',
    '<span style="TEXT-DECORATION-LINE:underline line-through red">amaranth</span>',
    '<span class="line-through">amaranth</span>',
    '<b class="is-old strikethrough">amaranth</b>',
    "<span hidden>amaranth</span>",
    '<span style="display:none">amaranth</span>',
    "<code><s>amaranth</s></code>",
)


def paragraph(*runs: str, style: str = "") -> str:
    return f"<w:p><w:pPr>{style}</w:pPr>{''.join(runs)}</w:p>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


OLD = f"""<w:styles xmlns:w="{WORD}">
<w:style w:type="character" w:styleId="Alt"><w:name w:val="Old"/><w:rPr><w:strike/></w:rPr></w:style>
<w:style w:type="paragraph" w:styleId="Weg"><w:name w:val="Gone"/><w:rPr><w:vanish/></w:rPr></w:style></w:styles>"""
GONE = '<w:pStyle w:val="Weg"/>'
WORDS = {
    "strike": run("amaranth", "<w:strike/>"),
    "double": run("amaranth", "<w:dstrike/>"),
    "hidden": run("amaranth", '<w:vanish w:val="1"/>'),
    "deleted": "<w:del><w:r><w:delText>amaranth</w:delText></w:r></w:del>",
    "moved": f"<w:moveFrom>{run('amaranth')}</w:moveFrom>",
    "by its style": run("amaranth", '<w:rStyle w:val="Alt"/>'),
    "by the style of its paragraph": f"</w:p>{paragraph(run('amaranth'), style=GONE)}<w:p>",
}
STRUCK = {
    **{suffix: [text.encode() for text in MARKDOWN] for suffix in (".md", ".markdown")},
    **{suffix: [f"<p>Wait. {text} Drain.</p>".encode() for text in HTML] for suffix in PAGES},
    ".txt": [f"Title\n\n{MARKDOWN[0]}".encode()],
    ".docx": [word(paragraph(run("Wait. "), old, run("Drain.")), **{"word/styles.xml": OLD}) for old in WORDS.values()],
    ".pdf": [],  # its text has no structure
}
"""For each format, files in which a word is struck out or hidden."""

KEPT = (
    "Copy ~/.ssh/config to ~/backup, or ~ops/x~.",
    "It takes ~5 min~ish, ~~ or more.",
    "Run `a ~~b~~ c` and `<s>d</s>`.",
    "```\nx ~~y~~ z\n<del>w</del>\n```",
    "Use -x- and --strike.",
    r"Write \~~this~~ as it is.",
    "~~~\nold ~~ fence ~~\n~~~",
    "a ~~ b ~~ c",
    "~~one\n\ntwo~~",
)


@every_case("suffix", SUFFIXES)
def test_struck_out_and_hidden_text_is_left_out_of_every_format(suffix: str) -> None:
    for content in STRUCK[suffix]:
        (part,), _ = parse(suffix, content)
        assert "amaranth" not in part.text, content
        assert "Wait." in part.text, content
        assert "Drain." in part.text, content


@pytest.mark.parametrize("suffix", [".md", ".txt"])
def test_what_only_looks_struck_out_is_kept(suffix: str) -> None:
    for text in KEPT:
        (part,), _ = parse(suffix, f"Title\n\n{text}".encode())
        assert part.text.endswith(text), text


def test_an_element_that_is_hidden_from_screen_readers_alone_is_kept() -> None:
    (part,), _ = parse(".md", b"Press <b aria-hidden='true'>X</b>.")
    assert part.text == "Press X."


def test_a_run_of_word_that_is_struck_out_by_its_style_alone_may_undo_it() -> None:
    body = paragraph(run("Drain.", '<w:rStyle w:val="Alt"/><w:strike w:val="0"/>'))
    (part,), _ = parse(".docx", word(body, **{"word/styles.xml": OLD}))
    assert part.text == "Drain."


def test_struck_out_text_of_a_message_of_slack_is_left_out_in_its_text_and_in_its_blocks() -> None:
    runs = [
        {"type": "text", "text": "Wait. "},
        {"type": "text", "text": "Run amaranth ", "style": {"strike": True}},
        {"type": "link", "url": "https://a.example/amaranth", "style": {"strike": True, "bold": True}},
        {"type": "text", "text": "Drain.", "style": {"code": True}},
    ]
    blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": runs}]}]
    text = "Wait. ~Run amaranth &lt;now&gt; <https://a.example/~x|here>~ `Drain.`"
    assert Content(text="", blocks=blocks).seen == "Wait. `Drain.`"
    assert Content(text=text).seen == "Wait. `Drain.`"
    assert Content(text=text, blocks=blocks).seen == "Wait. `Drain.`"  # what is said twice is said once
    section = [{"type": "section", "text": {"type": "mrkdwn", "text": "~amaranth~ Drain."}}]
    assert "amaranth" not in Content(blocks=section).seen


def test_what_only_looks_struck_out_in_slack_is_kept() -> None:
    for text in (
        "~/.ssh and ~/.aws",
        "~5 min~ish",
        "`a ~b~ c`",
        "```\n~x~\n```",
        "a~b~c",
        "see <https://a.example/~ops/b>~ or ~c",
        "~ a ~",
        "~one\ntwo~",
    ):
        assert Content(text=text).seen == text


def test_struck_out_text_of_a_message_of_teams_is_left_out() -> None:
    for text in HTML:
        html = f"<p>Wait. {text} Drain.</p>"
        message = {
            "id": "1",
            "createdDateTime": "2026-02-01T10:00:00Z",
            "body": {"contentType": "html", "content": html},
        }
        for shown in (text_of(GraphMessage.model_validate(message)), plain_text(html)):
            assert "amaranth" not in shown
            assert "Drain." in shown
