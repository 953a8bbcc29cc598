"""What families are told apart by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.knowledge.family_texts import MAX_LENGTH, MAX_PASSAGES, family_texts, public_sample
from tests.unit.knowledge.made_up_families import page

PRIVATE = frozenset({"channel:private"})


def generator() -> np.random.Generator:
    return np.random.default_rng(3)


def test_only_what_everybody_may_read_of_families_with_several_documents_is_drawn() -> None:
    passages = [
        *page("a1", "a", "One."),
        *page("a2", "a", "Two."),
        *page("a3", "a", "Three.", PRIVATE),
        *page("b1", "b", "Four."),
        *page("b2", "b", "Five.", PRIVATE),
    ]
    assert {found.text for found in public_sample(passages, generator())} == {"One.", "Two."}


def test_a_large_family_gives_about_as_many_passages_as_a_small_one() -> None:
    large = [found for number in range(3 * MAX_PASSAGES) for found in page(f"l{number}", "large", "Text.")]
    small = [found for number in range(5) for found in page(f"s{number}", "small", "Text.")]
    drawn = [found.family for found in public_sample([*large, *small], generator())]
    assert (drawn.count("large"), drawn.count("small")) == (MAX_PASSAGES // 2, 5)


def test_texts_are_titles_headings_short_paragraphs_and_the_sentences_of_long_ones() -> None:
    long = " ".join(f"This sentence has the number {number}." for number in range(20))
    passages = page("p", "f", f"## Rollback\n\n- Press *stop*.\n\n{long}\n\n```\ncode\n```")
    texts = {found.text for found in family_texts(passages, generator())}
    assert {"f", "Page p", "Rollback", "- Press stop.", "This sentence has the number 7."} <= texts
    assert not any("code" in text for text in texts)
    assert all(len(text) <= MAX_LENGTH for text in texts)


def test_what_is_said_twice_in_a_family_counts_once() -> None:
    passages = [*page("a", "f", "The same."), *page("b", "f", "The same.")]
    assert [found.text for found in family_texts(passages, generator())].count("The same.") == 1


def test_of_documents_as_long_as_books_no_more_is_drawn_than_of_many_short_ones() -> None:
    passage = page("a", "a", "Text.")[0]
    books = [
        replace(passage, document_id=f"book {number}", family=family)
        for family in "ab"
        for number in range(3)
        for _ in range(MAX_PASSAGES)
    ]
    assert len(public_sample(books, generator())) == MAX_PASSAGES


def test_of_an_endless_title_or_heading_the_beginning_is_read() -> None:
    passages = [
        replace(found, title="title " * 1_000) for found in page("p", "family " * 100, f"# {'so ' * 1_000}\n\nOne.")
    ]
    texts = [found.text for found in family_texts(passages, generator())]
    assert len(texts) == 4
    assert all(len(text) <= MAX_LENGTH for text in texts)
