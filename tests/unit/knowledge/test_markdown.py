"""Markdown → blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.knowledge.markdown import BlockKind, blocks, plain, slug


def kinds(text: str) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in blocks(text)]


def test_headings_name_the_blocks_below_them() -> None:
    found = blocks("intro\n\n## Roll `back` ##\n\ntext\n\nPools\n-----\n\nmore")
    assert [(block.kind, block.heading, block.level) for block in found] == [
        (BlockKind.PARAGRAPH, "", 0),
        (BlockKind.HEADING, "Roll back", 2),
        (BlockKind.PARAGRAPH, "Roll back", 0),
        (BlockKind.HEADING, "Pools", 2),
        (BlockKind.PARAGRAPH, "Pools", 0),
    ]


def test_a_fence_is_one_block_whatever_stands_in_it() -> None:
    text = "```sh\n# no heading\n\n- no item\n```"
    assert kinds(f"{text}\nafter") == [(BlockKind.CODE, text), (BlockKind.PARAGRAPH, "after")]


def test_a_fence_that_is_never_closed_runs_to_the_end() -> None:
    assert kinds("```\ncode\n\n# still code") == [(BlockKind.CODE, "```\ncode\n\n# still code")]


def test_backticks_that_are_closed_on_their_line_are_no_fence() -> None:
    assert kinds("```drain n7```\nafter") == [(BlockKind.PARAGRAPH, "```drain n7```\nafter")]


def test_a_list_item_holds_its_indented_lines_and_code() -> None:
    item = "1. Drain it:\n\n   ```\n   drain\n   ```\n\n   and wait."
    assert kinds(f"{item}\n2. Next\nlazy line\n\nAfter") == [
        (BlockKind.LIST_ITEM, item),
        (BlockKind.LIST_ITEM, "2. Next\nlazy line"),
        (BlockKind.PARAGRAPH, "After"),
    ]


def test_nested_items_are_items_of_their_own() -> None:
    assert [kind for kind, _ in kinds("- a\n  - b\n- c")] == [BlockKind.LIST_ITEM] * 3


def test_tables_and_indented_code_are_blocks() -> None:
    assert kinds("| a | b |\n|---|---|\n| 1 | 2 |\n\n    drydock drain\n    more") == [
        (BlockKind.TABLE, "| a | b |\n|---|---|\n| 1 | 2 |"),
        (BlockKind.CODE, "    drydock drain\n    more"),
    ]


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Roll back a canary", "roll-back-a-canary"),
        ("What's `kube_pod`?", "whats-kube_pod"),
        ("[Link](http://x) & more", "link--more"),
        ("扩容 步骤", "扩容-步骤"),
    ],
)
def test_a_slug_is_formed_as_code_forges_form_it(heading: str, expected: str) -> None:
    assert slug(heading) == expected


def test_plain_text_keeps_underscores_within_identifiers() -> None:
    assert plain("**See** _the_ `kube_pod_status` [page](/x)") == "See the kube_pod_status page"


@given(st.text(alphabet="ab #-*1.`~|>\n\t=", max_size=200))
def test_every_line_that_is_not_blank_is_in_exactly_one_block(text: str) -> None:
    expected = [line for line in text.splitlines() if line.strip()]
    assert [line for block in blocks(text) for line in block.text.splitlines() if line.strip()] == expected
