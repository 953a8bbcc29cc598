from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.thread_notes import (
    DEFAULT_THRESHOLD,
    MIN_LABELS,
    Resolution,
    agreement,
    fit_threshold,
    read_resolution,
)


def test_a_note_is_read_by_its_fields() -> None:
    cases: list[tuple[str, Resolution]] = [
        ("Root cause: the pool was too small", Resolution("the pool was too small")),
        ("root-cause: a; fix: b; owner: payments", Resolution("a", "b", "payments")),
        (
            "Done.\n* Root cause: disk full\n* Fix: cleaned it\n* Owning team: Search",
            Resolution("disk full", "cleaned it", "Search"),
        ),
        ("**Root cause:** disk full", Resolution("disk full")),
        ("root cause:\n  disk full\nfix: cleaned it", Resolution("disk full", "cleaned it")),
        ("root cause:\nfix: cleaned it\nowner: ", Resolution("", "cleaned it")),
        ("We do not know the root cause yet", Resolution()),
        ("", Resolution()),
    ]
    for note, read in cases:
        assert read_resolution(note) == read, (note, read)


@given(st.text())
def test_no_note_breaks_the_reader(note: str) -> None:
    read_resolution(note)


def test_a_note_of_many_blanks_or_marks_is_read_at_once() -> None:
    for blank in (";", "* ", "\n", " "):
        assert read_resolution(f"fix: cleaned it{blank * 200_000}").fix.startswith("cleaned it")


def test_a_claim_that_says_more_than_the_note_agrees_and_another_cause_does_not() -> None:
    noted = "The connection pool of payments was lowered to 4"
    same = "config CHG-7 of payments at 09:19 UTC: connection pool lowered from 40 to 4. Then errors appeared."
    other = "The certificate of the gateway expired."
    assert agreement(same, noted) > 0.8
    assert agreement(other, noted) < 0.2


@given(st.text(), st.text())
def test_agreement_is_a_share(claimed: str, noted: str) -> None:
    assert 0 <= agreement(claimed, noted) <= 1


def test_the_threshold_separates_what_people_called_right_from_wrong() -> None:
    agreements = [0.1, 0.2, 0.3, 0.4] * 5 + [0.6, 0.7, 0.8, 0.9] * 5
    threshold = fit_threshold(agreements, [False] * 20 + [True] * 20)
    assert 0.4 < threshold < 0.6


def test_with_few_labels_or_labels_of_one_kind_the_default_stands() -> None:
    assert fit_threshold([0.9] * (MIN_LABELS - 1), [True, False] * 9 + [True]) == DEFAULT_THRESHOLD == 0.5
    assert fit_threshold([0.9] * 40, [True] * 40) == fit_threshold([0.1] * 40, [False] * 40) == DEFAULT_THRESHOLD


def test_of_just_enough_labels_the_threshold_lies_midway_below_the_lowest_agreement_that_is_right() -> None:
    assert fit_threshold([0.2] * 10 + [0.8] * 10, [False] * 10 + [True] * 10) == 0.5
    assert fit_threshold([0.4] * 10 + [0.8] * 10, [False] * 10 + [True] * 10) == pytest.approx(0.6)
    assert fit_threshold([0.4] * 19 + [0.8], [True] * 19 + [False]) == 0.2, "all of them count, from halfway to 0"
