"""An excerpt never ends before the clause that forbids what it allows."""

from __future__ import annotations

import re

from core.answering.excerpts import MAX_REST, completed, joined, pieces
from core.knowledge.passages import passages_of
from core.model.document import Document


def shown(text: str, first: str, last: str) -> str:
    """The excerpt from the piece with the text `first` to that with the text `last`, completed."""
    (passage,) = passages_of(Document("docs/a", "docs", "", "A", text))
    whole = pieces(passage)
    start, end = (next(n for n, piece in enumerate(whole) if part in piece.text) for part in (first, last))
    return joined(completed(whole, start, end + 1))


LOG = """\
## The log

It is safe to make room when the disk is full. The log is in /var/log. It grows by a gigabyte an hour. Truncate it, never
delete it. The team is told later.

## Elsewhere

Do not call anybody.
"""


def test_a_clause_that_forbids_follows_after_dots_and_the_next_section_does_not() -> None:
    assert shown(LOG, "The log", "It is safe") == (
        "## The log\n\nIt is safe to make room when the disk is full.\n\n…\n\nTruncate it, never delete it."
    )


def test_a_clause_above_the_excerpt_goes_before_it() -> None:
    text = "## Pods\n\nOnly in staging.\n\nThe pods come back.\n\nDelete the pods one by one."
    assert shown(text, "Delete", "Delete") == "Only in staging.\n\n…\n\nDelete the pods one by one."


def test_a_list_is_shown_whole() -> None:
    steps = "\n".join(f"- Step {number} is done." for number in range(1, 6))
    assert shown(f"## Steps\n\n{steps}\n\nThe end.", "Steps", "Step 2") == f"## Steps\n\n{steps}"


def test_of_a_long_list_the_rest_is_counted_with_what_it_forbids() -> None:
    steps = "\n".join(f"- Step {number} {'word ' * 20}is done." for number in range(1, MAX_REST // 5))
    found = shown(f"## Steps\n\n{steps}\n- Never stop here.", "Steps", "Step 1")
    assert re.search(r"… and 29 more items of this list on the page\n\n- Never stop here", found)


def test_what_is_left_out_between_two_clauses_is_dots_as_well() -> None:
    text = "## Keys\n\nTurn the key.\n\nNot twice. It clicks. Never by night."
    assert shown(text, "Keys", "Turn") == "## Keys\n\nTurn the key.\n\nNot twice.\n\n…\n\nNever by night."
