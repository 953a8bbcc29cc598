"""Documents → passages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.passages import PASSAGE_TOKENS, passage_id, passages_of, token_count
from core.model.document import Document, DocumentKind


def document(text: str, kind: DocumentKind = DocumentKind.PAGE) -> Document:
    return Document("docs/a.md", "docs", "runbooks", "Title", text, kind, updated_at=datetime(2026, 1, 1, tzinfo=UTC))


def sentence(words: int, name: str) -> str:
    return " ".join([name] * words)


def test_a_short_page_is_one_passage_with_its_text_as_it_is() -> None:
    [passage] = passages_of(document("# Top\n\nOne.\n\n- two"))
    assert (passage.number, passage.heading, passage.text) == (1, "Top", "# Top\n\nOne.\n\n- two")
    assert passage.indexed_text == (
        "Page Title: Title\nPassage 1\nThe content of this page is as follows:\n# Top\n\nOne.\n\n- two"
    )


def test_a_page_without_text_has_no_passage() -> None:
    assert passages_of(document(" \n\n ")) == []


def test_a_long_page_is_split_and_keeps_its_headings() -> None:
    paragraphs = [f"## Part {n}\n\n{sentence(150, f'w{n}')}" for n in range(12)]
    passages = passages_of(document("\n\n".join(paragraphs)))
    assert [passage.number for passage in passages] == list(range(1, len(passages) + 1))
    assert len(passages) > 2
    assert all(passage.heading for passage in passages)
    assert all(token_count(passage.text) <= PASSAGE_TOKENS for passage in passages)


def test_no_passage_ends_with_a_heading() -> None:
    text = "\n\n".join(f"{sentence(190, f'w{n}')}\n\n## Heading {n}" for n in range(9)) + "\n\nend"
    assert not any(passage.text.rsplit("\n\n", 1)[-1].startswith("##") for passage in passages_of(document(text)))


def test_code_that_fits_is_never_torn_apart() -> None:
    code = "```\n" + "\n".join(f"command {n}" for n in range(300)) + "\n```"
    passages = passages_of(document(f"{sentence(600, 'before')}\n\n{code}\n\n{sentence(600, 'after')}"))
    assert any(code in passage.text for passage in passages)


def test_a_block_larger_than_a_passage_is_split_at_line_ends_or_at_words() -> None:
    lines = "\n".join(f"row {n}" for n in range(2 * PASSAGE_TOKENS))
    for text in (lines, sentence(3 * PASSAGE_TOKENS, "word")):
        passages = passages_of(document(text))
        assert len(passages) > 2
        assert all(token_count(passage.text) <= PASSAGE_TOKENS for passage in passages)


def test_every_part_of_a_table_has_its_header() -> None:
    rows = [f"| ledger-{n} | {8000 + n} |" for n in range(2 * PASSAGE_TOKENS // 5)]
    passages = passages_of(document("\n".join(["| Service | Port |", "|---|---|", *rows])))
    assert len(passages) > 2
    assert all(passage.text.startswith("| Service | Port |\n|---|---|\n| ledger") for passage in passages)
    assert all(token_count(passage.text) <= PASSAGE_TOKENS for passage in passages)
    assert [row for passage in passages for row in passage.text.splitlines()[2:]] == rows


def test_every_part_of_a_block_of_code_is_code_and_what_follows_is_none() -> None:
    lines = [f"drain n{n}" for n in range(PASSAGE_TOKENS)]
    text = "\n".join(["```sh", *lines, "```", "", "## Then", "", "Wait."])
    found = [block for passage in passages_of(document(text)) for block in blocks(passage.text)]
    code = [block.text for block in found if block.kind is BlockKind.CODE]
    assert len(code) > 1
    assert [
        line for block in code for line in block.removeprefix("```sh\n").removesuffix("\n```").splitlines()
    ] == lines
    assert [(block.kind, block.text) for block in found[-2:]] == [
        (BlockKind.HEADING, "## Then"),
        (BlockKind.PARAGRAPH, "Wait."),
    ]


@pytest.mark.parametrize(
    "frame", ["| " + "x " * PASSAGE_TOKENS + "|\n|---|\n| {} |", "```" + "x " * PASSAGE_TOKENS + "\n{}"]
)
def test_a_frame_that_leaves_no_room_is_torn_too(frame: str) -> None:
    passages = passages_of(document(frame.format(sentence(2 * PASSAGE_TOKENS, "word"))))
    assert all(token_count(passage.text) <= PASSAGE_TOKENS for passage in passages)
    assert sum(passage.text.split().count("word") for passage in passages) >= 2 * PASSAGE_TOKENS


@pytest.mark.parametrize("kind", [DocumentKind.THREAD, DocumentKind.INCIDENT])
def test_a_thread_or_an_incident_is_always_one_passage(kind: DocumentKind) -> None:
    text = "\n\n".join(sentence(400, f"w{n}") for n in range(6))
    [passage] = passages_of(document(text, kind))
    assert passage.text == text


def test_ids_are_stable_and_distinct() -> None:
    assert passage_id("docs/a.md", 1) == "cde057cc-7f65-5a37-810b-b1648b396a80"
    assert len({passage_id(document, number) for document in ("a", "b") for number in (1, 2, 11)}) == 6


@given(st.lists(st.tuples(st.sampled_from(["", "# ", "- ", "    "]), st.integers(1, 500)), max_size=12))
def test_nothing_of_a_page_is_lost(parts: list[tuple[str, int]]) -> None:
    text = "\n\n".join(prefix + sentence(words, f"w{n}") for n, (prefix, words) in enumerate(parts))
    passages = passages_of(document(text))
    for n, (_, words) in enumerate(parts):
        assert sum(passage.text.split().count(f"w{n}") for passage in passages) == words
    assert all(token_count(passage.text) <= PASSAGE_TOKENS for passage in passages)


@pytest.mark.parametrize("before", [500, 650, 760])
def test_a_section_that_fits_into_a_passage_is_not_divided(before: int) -> None:
    section = f"## Repair\n\n{sentence(100, 'symptom')}\n\n{sentence(150, 'remedy')}"
    passages = passages_of(document(f"## Parts\n\n{sentence(before, 'part')}\n\n{section}"))
    assert any("symptom" in each.text and "remedy" in each.text for each in passages)
