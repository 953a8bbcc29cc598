from __future__ import annotations

from adapters.console.document import SHOWN, folded
from core.answering.answer_view import answer_view
from core.model.answer import Excerpt, Sentence
from core.model.message_view import Statements
from tests.samples import excerpt_answer

PLAIN = " ".join(["The crane lifts the boxes of the day from the pier to the ship."] * 3)
MARKED = "Its log is under the seat of the driver."
CAVEAT = "Never lift above a person."


def runs(*paragraphs: str, marked: str = MARKED) -> list[tuple[bool, list[str]]]:
    answer = excerpt_answer(excerpts=(Excerpt("\n\n".join(paragraphs), marked, 1),), tentative=False)
    return [(hidden, [each.text for each in run]) for hidden, run in folded(*answer_view(answer).all(Statements))]


def test_a_short_answer_is_shown_whole() -> None:
    assert runs(PLAIN, MARKED, PLAIN) == [(False, [PLAIN, MARKED, PLAIN])]


def test_of_a_long_answer_the_rest_is_folded_but_neither_the_line_that_answers_nor_a_warning() -> None:
    long = [PLAIN] * (SHOWN // len(PLAIN) + 3)
    (first, _), (hidden, rest), (_, last) = [(hidden, run) for hidden, run in runs(*long, MARKED, CAVEAT)]
    assert (first, hidden) == (False, True)
    assert set(rest) == {PLAIN}
    assert last == [MARKED, CAVEAT]


def test_a_rest_of_one_line_is_not_folded() -> None:
    long = [PLAIN] * (SHOWN // len(PLAIN))
    assert not any(hidden for hidden, _ in runs(*long, "The end is near, and it is a short one."))


def test_a_warning_that_is_shown_of_a_quote_stands_below_the_heading_of_that_quote() -> None:
    def quote(number: int, rest: str) -> tuple[Sentence, ...]:
        filler = (Sentence("The lane takes what it can. " * 20, ()) for _ in range(2))
        return (Sentence(f"**Page {number}**", (number,)), *filler, Sentence(rest, ()))

    text = Statements(
        (*quote(1, "It runs."), *quote(2, "It waits."), *quote(3, "Never stop it."), *quote(4, "It ends."))
    )
    shown = [each.text for is_folded, run in folded(text) for each in run if not is_folded and len(each.text) < 20]
    assert shown == ["**Page 1**", "**Page 3**", "Never stop it."]
