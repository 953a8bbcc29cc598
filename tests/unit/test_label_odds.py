"""The probabilities of labels, from tokens cut in every way."""

from __future__ import annotations

import math

import pytest

from core.model_calls.constrained_reply import LabelReading, TokenStep, read_labels


def step(text: str, **odds: float) -> TokenStep:
    """A token, and probabilities of tokens in its place; `q` stands for the quotation mark, `sp` for a space."""
    names = {"q": '"', "sp": " "}
    return TokenStep(text, {names.get(name, name): math.log(value) for name, value in odds.items()})


QUOTE = step('"', q=0.2, Sure=0.8)


def read(*steps: TokenStep, labels: tuple[str, ...] = ("yes", "no")) -> LabelReading:
    reading = read_labels(steps, labels)
    assert reading is not None
    assert sum(reading.settled.values()) + sum(reading.undecided.values()) == pytest.approx(1.0)
    return reading


def test_tokens_that_no_label_begins_with_do_not_count() -> None:
    reading = read(QUOTE, step("yes", yes=0.3, no=0.1, maybe=0.6))
    assert reading.settled == pytest.approx({"yes": 0.75, "no": 0.25})


def test_every_spelling_of_a_label_counts_for_it() -> None:
    reading = read(QUOTE, step("yes", yes=0.2, ye=0.1, y=0.1, n=0.1))
    assert reading.settled == pytest.approx({"yes": 0.8, "no": 0.2})


def test_a_label_that_begins_another_ends_with_the_quotation_mark() -> None:
    reading = read(
        QUOTE, step("no", no=0.5, yes=0.5), step(" not", q=0.1, **{" not": 0.3}), labels=("yes", "no", "no not")
    )
    assert reading.settled == pytest.approx({"yes": 0.5, "no": 0.125, "no not": 0.375})


def test_a_mark_that_brings_space_with_it_ends_a_label() -> None:
    closing = TokenStep('" ', {'" ': math.log(0.6), "t": math.log(0.2)})
    reading = read(QUOTE, step("no", no=1.0), closing, labels=("no", "not"))
    assert reading.settled == pytest.approx({"no": 0.75, "not": 0.25})


def test_labels_that_begin_alike_off_the_path_are_left_to_be_asked_for() -> None:
    reading = read(QUOTE, step("likely", likely=0.6, un=0.4), labels=("likely", "unlikely", "unsure"))
    assert reading.settled["likely"] == pytest.approx(0.6)
    assert reading.undecided == pytest.approx({("unlikely", "unsure"): 0.4})


def test_another_spelling_of_what_all_labels_begin_with_is_taken_to_lead_alike() -> None:
    reading = read(QUOTE, step("un", un=0.5, u=0.5), step("sure", sure=0.9, likely=0.1), labels=("unlikely", "unsure"))
    assert reading.settled == pytest.approx({"unsure": 0.9, "unlikely": 0.1})
    assert not reading.undecided


def test_a_token_may_hold_the_mark_and_the_label() -> None:
    whole = TokenStep('"yes"', {'"yes"': math.log(0.3), '"no': math.log(0.1), "no": math.log(0.6)})
    assert read(whole).settled == pytest.approx({"yes": 0.75, "no": 0.25})


def test_space_before_the_reply_is_passed_over() -> None:
    assert read(step("\n", sp=1.0), step(' "', **{' "': 1.0}), step("no", yes=0.5, no=0.5)).settled["no"] == 0.5


def test_improbable_labels_keep_their_proportion() -> None:
    tiny = TokenStep("yes", {"yes": -900.0, "no": -900.0 + math.log(3), "other": -0.1})
    assert read(QUOTE, tiny).settled == pytest.approx({"yes": 0.25, "no": 0.75})


@pytest.mark.parametrize("steps", [(), (QUOTE,), (step("Sure", Sure=1.0),), (QUOTE, step("maybe", maybe=1.0, yes=0.1))])
def test_a_reply_that_is_no_label_tells_nothing(steps: tuple[TokenStep, ...]) -> None:
    assert read_labels(steps, ("yes", "no")) is None
