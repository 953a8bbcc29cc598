"""Which excerpt of the retrieved passages is shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.answering.excerpts import (
    EXCERPT_WORDS,
    QUOTE_WORDS,
    SHOWN_WORDS,
    WHOLE_WORDS,
    Candidate,
    candidates,
    chunk_texts,
    completed,
    filled,
    pieces,
    quotes,
    word_count,
)
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


PARTS = [f"Paragraph {number} tells about pump {number} " + "and more of it " * 4 for number in range(6)]


def quote_of(text: str, nearest: str, query: str = "") -> Candidate:
    """Return the first quote that is offered, if the chunk with these words is the nearest in meaning."""
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
    return quotes(candidates(query, asked), 1)[0]


def shown(quote: Candidate) -> list[str]:
    """Return the lines of a quote as it is offered."""
    return [
        piece.text for piece in completed(quote.read.pieces, quote.start, quote.start + len(quote.pieces), short=True)
    ]


@pytest.mark.parametrize("nearest", ["pump 0", "pump 2", "pump 3"])
def test_a_quote_is_cut_around_what_means_most(nearest: str) -> None:
    quote = quote_of("# Pumps\n\n" + "\n\n".join(PARTS[:4]), nearest)
    assert nearest in quote.marked.text
    assert word_count(quote.text) <= QUOTE_WORDS
    assert quote.marked in quote.pieces
    assert all(paragraph.strip() in quote.text for paragraph in PARTS if paragraph[:12] in quote.text)


def test_of_a_line_that_code_has_twice_the_one_that_means_most_is_quoted() -> None:
    steps = "\n".join(f"echo step {number} of the build is done" for number in range(20))
    quote = quote_of(f"# Build\n\n```\nset -e\nmake check\n{steps}\necho zeta\nmake check\n```", "zeta", "make check")
    assert quote.marked.text == "make check"
    assert "echo zeta" in quote.text
    assert "set -e" not in quote.text


def test_the_first_of_several_quotes_gets_what_all_of_them_leave_and_repeats_none() -> None:
    query, long = "how do I drain a runner?", f"# Runners\n\nTo drain a runner, wait. {FILLER}"
    found = retrieval(query, long, "# Pool\n\nDrain the runner of a pool.", "# Rack\n\nDrain a rack with its runner.")
    cut = sorted(quotes(candidates(query, found), 3), key=lambda each: -each.words)
    grown = filled(cut)
    assert cut[0].words <= QUOTE_WORDS < grown[0].words
    assert sum(each.words for each in grown) <= SHOWN_WORDS
    assert [each.marked for each in grown] == [each.marked for each in cut]
    assert grown[1:] == cut[1:]
    assert not any(grown[0].overlaps(each) for each in grown[1:])


def test_what_introduces_a_command_stays_before_it_in_an_excerpt_that_is_cut() -> None:
    quote = quote_of("\n\n".join([*PARTS, "To stop it at once:", "```\npumpctl halt\n```"]), "pumpctl halt")
    assert "To stop it at once:\n\n```\npumpctl halt\n```" in quote.text
    assert PARTS[0].strip() not in quote.text


def test_no_two_quotes_have_a_piece_in_common() -> None:
    found = retrieval("pump", "\n\n".join(f"# Pump {number}\n\n{part}" for number, part in enumerate(PARTS)))
    first, second = quotes(candidates("pump", found), 2)
    assert {piece.text for piece in first.pieces}.isdisjoint(piece.text for piece in second.pieces)


@pytest.mark.parametrize("level", ["#", "##", "###"])
def test_a_quote_crosses_no_heading(level: str) -> None:
    text = f"# Stop\n\n{PARTS[0]}\n\n{level} Start\n\n{PARTS[1]}\n\n{level} Drain\n\n{PARTS[2]}"
    quote = quote_of(text, "pump 1")
    assert {piece.text.strip() for piece in quote.pieces} == {PARTS[1].strip()}


def test_a_list_that_is_quoted_begins_with_its_first_item_if_there_is_room() -> None:
    for before, begins in ((3, "To stop it:"), (30, "… ")):
        steps = [f"{number}. Turn valve {number} to the left." for number in range(1, before + 1)]
        quote = quote_of("\n".join(["To stop it:", "", *steps, f"{before + 1}. Shut the sluice."]), "Shut the sluice")
        assert shown(quote)[0].startswith(begins)
        assert quote.marked.text in shown(quote)
    assert shown(quote)[0].endswith("items of this list above")


def test_a_row_far_down_in_a_table_is_quoted_below_the_header() -> None:
    rows = "\n".join(f"| valve {number} | {' '.join(['left'] * 20)} |" for number in range(9))
    quote = quote_of(f"| Part | Turns |\n|---|---|\n{rows}\n| sluice | down |", "sluice")
    assert shown(quote)[0] == "| Part | Turns |\n|---|---|"
    assert shown(quote)[-1] == "| sluice | down |"


@pytest.mark.parametrize("ban", ["Never open both.", "**Warning**: the lower one is live.", "Don't do it at night."])
def test_a_warning_of_the_section_goes_with_its_quote(ban: str) -> None:
    long = [f"{part} {part}" for part in PARTS]
    quote = quote_of("# Sluice\n\n" + "\n\n".join([ban, *long[:3], "Open the sluice.", *long[3:]]), "Open the sluice")
    assert ban not in quote.text
    assert ban in shown(quote)
