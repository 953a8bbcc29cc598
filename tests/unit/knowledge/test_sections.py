"""What a corpus can be asked about itself."""

from __future__ import annotations

import numpy as np
import pytest

from core.knowledge.document import Document
from core.knowledge.passages import passages_of
from core.knowledge.sections import MAX_PAIRS, Section, pairs, sections

PAGE = """Some words before any heading, which say what this page is about and for whom it was written.

## Draining a runner

Mark the runner as drained before you touch anything else. It finishes the job that it has and takes no other.

- Then stop it.

## Empty

## Caches

| a table | that is all there is below this heading, and long enough to be asked for, in all its breadth and length |
"""


def found(text: str) -> list[Section]:
    return sections(passages_of(Document("docs/a", "docs", "x", "Runners", text)))


def asked(text: str, seed: int = 1) -> set[str]:
    return {pair.asked for pair in pairs(found(text), np.random.default_rng(seed))}


def test_a_section_says_its_title_its_heading_and_what_is_below() -> None:
    by_heading = {section.heading: section for section in found(PAGE)}
    assert by_heading["Draining a runner"].text.startswith("Runners\nDraining a runner\nMark the runner as drained")
    assert "a table" in by_heading["Caches"].text
    assert "Empty" not in by_heading


def test_a_heading_and_a_sentence_of_each_section_are_asked() -> None:
    sentences = asked(PAGE) - {"Draining a runner", "Caches"}
    assert len(sentences) == 1
    assert sentences.pop().startswith(("Mark the runner", "It finishes the job"))


def test_another_draw_asks_another_sentence() -> None:
    assert {sentence for seed in range(20) for sentence in asked(PAGE, seed)} >= {
        "Mark the runner as drained before you touch anything else.",
        "It finishes the job that it has and takes no other.",
    }


def test_what_is_asked_stands_in_its_text() -> None:
    assert all(pair.asked in pair.text for pair in pairs(found(PAGE), np.random.default_rng(1)))


def test_sentences_without_spaces_are_asked_too() -> None:
    text = "维护之前请先排空该节点上的所有任务并确认没有新任务进入。" * 4 + "\n\n- 然后停止它。"
    assert any("排空该节点" in sentence for sentence in asked(text))


@pytest.mark.parametrize("text", ["", "## Only a heading", "Short."])
def test_what_says_nothing_is_not_asked_for(text: str) -> None:
    assert found(text) == []


def test_a_large_corpus_is_asked_other_things_each_time() -> None:
    many = [Section(f"page {number}", f"heading {number}", ()) for number in range(MAX_PAIRS + 100)]
    first, second = (pairs(many, np.random.default_rng(seed)) for seed in (1, 2))
    assert len(first) == len(second) == len({pair.asked for pair in first}) == MAX_PAIRS
    assert first != second
