"""Which excerpt of the retrieved passages is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.answering.excerpts import EXCERPT_WORDS, PART_WORDS, WHOLE_WORDS, Candidate, candidates, nearest_part
from core.answering.statements import chunk_texts, pieces, word_count
from core.knowledge.markdown import BlockKind
from core.knowledge.passages import packed, passages_of
from core.knowledge.retriever import RankedPassage, Retrieval
from core.knowledge.terms import terms
from core.model.document import Document

FILLER = " ".join(f"Filler sentence number {number} says nothing." for number in range(40))


def retrieval(query: str, *texts: str) -> Retrieval:
    found = [
        RankedPassage(passage, 1.0, 0.0, 1.0)
        for number, text in enumerate(texts)
        for passage in passages_of(Document(f"docs/{number}", "docs", "f", f"Page {number}", text))
    ]
    return Retrieval(found, dict.fromkeys(terms(query), 1.0), 1.0, 10.0, frozenset({"f"}))


def best(query: str, *texts: str) -> str:
    return candidates(query, retrieval(query, *texts))[0].text


def test_an_excerpt_is_a_contiguous_piece_of_the_page() -> None:
    text = f"# Runners\n\n{FILLER}\n\n## Drain\n\nTo drain a runner:\n\n```\ndrain --now\n```\n\nThen wait.\n\n## Rest\n\n{FILLER}"
    found = best("how do I drain a runner?", text)
    assert "## Drain\n\nTo drain a runner:\n\n```\ndrain --now\n```\n\nThen wait." in found
    assert " ".join(found.split()) in " ".join(text.split())


def test_an_excerpt_is_no_longer_than_stated() -> None:
    text = "\n\n".join(f"## Part {number}\n\n{FILLER} The pool has {number} runners." for number in range(5))
    for candidate in candidates("how many runners has the pool?", retrieval("runners pool", text)):
        assert word_count(candidate.text) <= WHOLE_WORDS


def test_a_command_is_never_shown_without_the_condition_above_it() -> None:
    text = f"# Keys\n\n{FILLER}\n\nOnly if the key leaked, revoke it:\n\n```\nkey revoke --all\n```\n\n{FILLER}"
    for candidate in candidates("how do I revoke a key?", retrieval("revoke key", text)):
        if "key revoke" in candidate.text:
            assert "Only if the key leaked" in candidate.text


def test_no_excerpt_ends_with_what_only_announces_the_next_piece() -> None:
    text = f"# Keys\n\n{' '.join(['word'] * (EXCERPT_WORDS - 8))}.\n\nRevoke the key as follows:\n\n{FILLER}"
    [first, *_] = candidates("revoke the key", retrieval("revoke key", text))
    assert not any(each.text.endswith("follows:") for each in [first])


def test_a_table_is_cut_between_rows_and_keeps_its_header() -> None:
    rows = "\n".join(f"| runner-{number} | {number} GB |" for number in range(200))
    table = f"| Runner | Memory |\n| --- | --- |\n{rows}"
    found = best("memory of a runner", table)
    assert found.startswith("| Runner | Memory |\n| --- | --- |\n| runner-")


def test_code_that_is_cut_is_closed() -> None:
    code = "\n".join(f"run step {number} now" for number in range(100))
    found = best("run step", f"Run all steps:\n\n```sh\n{code}\n```")
    assert found.count("```") == 2
    assert found.endswith("```")


def test_the_sentence_that_holds_most_of_the_question_is_marked() -> None:
    text = "# Keys\n\nKeys are secret. The signing key is rotated on Mondays. Ask before."
    found = candidates("when is the signing key rotated?", retrieval("signing key rotated", text))
    assert found[0].marked.text == "The signing key is rotated on Mondays."


def test_pieces_lose_nothing_of_a_page() -> None:
    text = "# Title\n\nOne. Two!\n\n- item\n\n| A |\n| - |\n| b |\n\n```\ncode\n```"
    [passage] = passages_of(Document("docs/1", "docs", "f", "Title", text))
    kinds = [piece.kind for piece in pieces(passage)]
    assert kinds == [
        BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.TABLE, BlockKind.CODE
    ]  # fmt: skip


def test_nothing_found_gives_no_candidate() -> None:
    assert candidates("zebra", retrieval("zebra")) == []


@pytest.mark.parametrize("nearest", [0, 1, 2])
def test_of_excerpts_with_the_same_words_the_one_that_means_most_comes_first(nearest: int) -> None:
    texts = [f"# Ferry {name}\n\nThe ferry leaves the pier." for name in ("one", "two", "six")]
    found = retrieval("ferry leaves", *texts)
    vectors = np.eye(3, dtype=np.float32)
    with_meaning = [
        replace(each, passage=replace(each.passage, meaning=packed(vectors[place : place + 1])))
        for place, each in enumerate(found.passages)
    ]
    asked = replace(found, passages=with_meaning, vector=vectors[nearest])
    [first, *others] = candidates("ferry leaves", asked)
    assert first.passage.id == found.passages[nearest].passage.id
    assert first.cosine > max(each.cosine for each in others)


PARTS = [f"Paragraph {number} tells about pump {number} " + "and more of it " * 10 for number in range(6)]


def part_of(text: str, nearest: str, query: str = "") -> Candidate:
    """Return the excerpt that is shown with a hedge, if the chunk with these words is the nearest in meaning."""
    query = query or nearest
    found = retrieval(query, text)
    passage = found.passages[0].passage
    near = [[float(nearest in chunk), float(nearest not in chunk)] for chunk in chunk_texts(passage)]
    vectors = packed(np.array(near, np.float32))
    asked = replace(
        found,
        passages=[replace(found.passages[0], passage=replace(passage, meaning=vectors))],
        vector=np.array([1, 0], np.float32),
    )
    [whole, *_] = candidates(query, asked)
    return nearest_part(whole, asked)


@pytest.mark.parametrize("nearest", ["pump 0", "pump 2", "pump 3"])
def test_a_hedged_excerpt_is_cut_around_what_means_most(nearest: str) -> None:
    part = part_of("# Pumps\n\n" + "\n\n".join(PARTS[:4]), nearest)
    assert nearest in part.text
    assert word_count(part.text) <= PART_WORDS
    assert part.marked in part.pieces
    assert all(paragraph.strip() in part.text for paragraph in PARTS if paragraph[:12] in part.text)


def test_what_introduces_a_command_stays_before_it_in_an_excerpt_that_is_cut() -> None:
    part = part_of("\n\n".join([*PARTS[:3], "To stop it at once:", "```\npumpctl halt\n```"]), "pumpctl halt")
    assert "To stop it at once:\n\n```\npumpctl halt\n```" in part.text
    assert PARTS[0].strip() not in part.text


def test_an_excerpt_that_is_cut_keeps_the_words_of_the_question_whatever_means_most() -> None:
    part = part_of("\n\n".join(PARTS[:3]), "pump 2", query="pump 1")
    assert PARTS[1].strip() in part.text
    assert PARTS[2].strip() in part.text
    assert PARTS[0].strip() not in part.text


def test_an_excerpt_without_vectors_is_not_cut() -> None:
    found = retrieval("pump", "\n\n".join(PARTS[:3]))
    [whole, *_] = candidates("pump", found)
    assert nearest_part(whole, found) is whole


def test_an_excerpt_that_is_cut_keeps_to_the_section_of_what_means_most() -> None:
    text = f"# Stop\n\n{PARTS[0]}\n\n{PARTS[1]}\n\n# Start\n\n{PARTS[2]}"
    part = part_of(text, "pump 1")
    assert PARTS[0].strip() in part.text
    assert "Start" not in part.text
