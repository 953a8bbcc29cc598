"""A part that a page lacks is no statement, and the answer that quotes the page says what is missing."""

from __future__ import annotations

from core.answering.statements import statements
from core.knowledge.passages import passages_of
from core.model.document import IN_PART, Document
from core.model.text import missing_part

PART = missing_part("Drain steps", "https://wiki.example/drain")
PAGE = Document("wiki/7", "wiki", "wiki", "Restart", f"1. Announce it.\n2. {PART}\n3. Start the press.\n\n{PART}")
WHOLE = Document("wiki/8", "wiki", "wiki", "Restart", "1. Announce it.\n2. Start the press.")


def test_a_missing_part_states_nothing_and_is_cited_with_what_is_stated() -> None:
    [passage] = passages_of(PAGE)
    assert [each.text for each in statements(passage)] == ["Announce it.", "Start the press."]
    assert {each.cited(1).missing for each in statements(passage)} == {("[Drain steps](https://wiki.example/drain)",)}


def test_a_page_that_lacks_a_part_is_known_by_its_hash() -> None:
    assert PAGE.content_hash.endswith(IN_PART)
    assert not WHOLE.content_hash.endswith(IN_PART)
    assert passages_of(WHOLE)[0].missing == ()
