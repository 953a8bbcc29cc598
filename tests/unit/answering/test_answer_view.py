from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from core.answering.answer_view import MAX_MISSING, MISSING, answer_view, shown_sentences
from core.model.answer import Citation, Excerpt
from core.model.message_view import Line, Link, Listing, Sources, Statements
from core.model.messages import CHOOSING
from tests.samples import closest_matches, excerpt_answer

LAZY = """\
Before the storm:

1. Stop the crane.
1. Lash it.
   1. The boom first.
   1. Then the hook.

   ```
   crane lock
   ```

1. Look at it.

After the storm:

1. Unlash it.
2. Start it.
4. Look at it.

- Rust
- Ropes
"""


def test_the_items_of_a_list_are_counted_even_if_their_page_writes_one_before_each() -> None:
    answer = excerpt_answer(excerpts=(Excerpt(LAZY, "", 1),), tentative=False)
    assert [each.text for each in shown_sentences(answer) if "crane lock" not in each.text] == [
        "Before the storm:",
        "1. Stop the crane.",
        "2. Lash it.",
        "1. The boom first.",
        "2. Then the hook.",
        "3. Look at it.",
        "After the storm:",
        "1. Unlash it.",
        "2. Start it.",
        "4. Look at it.",
        "- Rust",
        "- Ropes",
    ]


def test_each_of_several_quotes_is_headed_once_by_its_source_with_number_and_date_and_no_list_repeats_them() -> None:
    command = Citation(1, "docs/a", "p1", "Roll *back*", "The command", "", "", "", datetime(2026, 2, 10, tzinfo=UTC))
    guide = Citation(2, "docs/b", "p2", "Guide", "", "", "", "")
    quotes = (Excerpt("## The command\n\nRun it.", "", 1), Excerpt("How to return.", "", 2))
    answer = excerpt_answer(citations=(command, guide), excerpts=quotes[:1], further=quotes[1:], tentative=True)
    assert [(each.text, each.citations) for each in shown_sentences(answer)] == [
        ("**Roll back › The command · updated 2026-02-10**", (1,)),
        ("Run it.", ()),
        ("**Guide**", (2,)),
        ("How to return.", ()),
    ]
    assert not answer_view(answer).all(Sources)


def test_the_sentence_that_answers_is_marked_unless_it_is_most_of_the_answer() -> None:
    alone, among = Excerpt("Lash it.", "Lash it.", 1), Excerpt(LAZY, "Lash it.", 1)
    for excerpt, marked in ((alone, ()), (among, ("Lash it.",))):
        (shown,) = answer_view(excerpt_answer(excerpts=(excerpt,), tentative=False)).all(Statements)
        assert shown.marked == marked


def test_each_quote_of_several_has_a_button_that_makes_it_the_answer() -> None:
    for answer, count in ((closest_matches(), 3), (excerpt_answer(), 2), (excerpt_answer(tentative=False), 0)):
        offered = answer_view(answer).subjects
        assert {each: offered.get(each) for each in CHOOSING} == {
            each: answer.prediction_id if place < count else None for place, each in enumerate(CHOOSING)
        }


def test_what_a_quoted_page_lacks_is_named_below_the_answer() -> None:
    answer = excerpt_answer()
    [citation, *others] = answer.citations
    parts = ("[Drain steps](https://wiki.example/drain)", "[steps](drain.md)", "drawio", "a", "b")
    lacking = replace(answer, citations=(replace(citation, missing=parts), *others))
    [shown] = [each for each in answer_view(lacking).all(Listing) if each.noun == "parts"]
    assert shown.entries[0] == Line(MISSING, links=(Link("Drain steps", "https://wiki.example/drain"),))
    assert [each.plain for each in shown.entries[1:]] == [f"{MISSING} steps", f"{MISSING} drawio"]
    assert (len(shown.entries), shown.left_out) == (MAX_MISSING, 2)
    assert not [each for each in answer_view(answer).all(Listing) if each.noun == "parts"]


def test_the_nearest_quotes_stand_without_the_marks_of_their_lists() -> None:
    cited = [
        Citation(number, "docs/a", "p", "Cranes", "", "", "", quote)
        for number, quote in enumerate(("- Lash it.", "3. Look at it.", "A crane - lashed."), 1)
    ]
    (nearest,) = answer_view(excerpt_answer(citations=tuple(cited), excerpts=(), tentative=False)).all(Sources)
    assert [each.quote for each in nearest.citations] == ["Lash it.", "Look at it.", "A crane - lashed."]
