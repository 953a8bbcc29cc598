"""What a statement says in figures."""

from __future__ import annotations

import pytest

from core.answering.values import claim, differing


@pytest.mark.parametrize(
    ("text", "measure", "values"),
    [
        ("It takes 90 seconds.", "duration", {90.0}),
        ("It takes 1.5 minutes, or two hours.", "duration", {90.0, 7200.0}),
        ("It takes 800 ms.", "duration", {0.8}),
        ("At most 25 % of the pods.", "share", {25.0}),
        ("At most 25 percent of the pods.", "share", {25.0}),
        ("Messages of 1 MB.", "size", {1e6}),
        ("A disk of 2 GiB.", "size", {2.0 * 2**30}),
        ("From 14:00 to 07:30.", "clock", {"14:00", "07:30"}),
        ("Never on Fridays.", "weekday", {"friday"}),
        ("Needs v1.24.3.", "version", {"1.24.3"}),
        ("There are 60,000 replicas.", "count of replica", {60000.0}),
        ("There are three replicas.", "count of replica", {3.0}),
        ("`maximumPoolSize` 40", "value of maximumpoolsize", {40.0}),
        ("port: 8080 must be open", "value of port", {8080.0}),
    ],
)
def test_a_value_stands_under_what_it_measures(text: str, measure: str, values: set[float | str]) -> None:
    assert claim(text).values == {measure: values}


@pytest.mark.parametrize("text", ["5 \u017f", "\u017fix days", "it is d\u0131sabled", "5 m\u0130n", f"{'9' * 400} s"])
def test_letters_that_only_a_pattern_takes_for_others_break_nothing(text: str) -> None:
    claim(text)


def test_encoded_data_is_read_at_once() -> None:
    assert claim("a" * 100_000).values == {}


@pytest.mark.parametrize(
    "text", ["", "Nothing is counted here.", "`slipway promote`", "E1234 means nothing", "10.0.0.1/8"]
)
def test_what_measures_nothing_has_no_value(text: str) -> None:
    assert claim(text).values.keys() <= {"version"}


def test_the_values_are_no_part_of_the_subject() -> None:
    assert claim("A roll-back takes 90 seconds.").subject == claim("A roll-back takes two hours.").subject


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The port is closed.", "The port is not closed."),
        ("Caching is enabled.", "Caching is disabled."),
        ("You can promote it.", "You can't promote it."),
    ],
)
def test_a_denial_has_the_subject_of_what_it_denies(first: str, second: str) -> None:
    assert claim(first).subject == claim(second).subject
    assert not claim(first).denies
    assert claim(second).denies


def test_a_denied_denial_is_none() -> None:
    assert not claim("Caching is not disabled.").denies


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("It takes 90 seconds.", "It takes 2 minutes.", True),
        ("It takes 90 seconds.", "It takes 1.5 minutes.", False),
        ("It takes 90 seconds.", "It takes 90 seconds, at times 2 minutes.", False),
        ("It takes 90 seconds.", "It needs 2 pods.", False),
        ("From Friday on.", "From Thursday on.", True),
        ("It takes a while.", "It takes 2 minutes.", False),
    ],
)
def test_values_differ_if_none_of_a_kind_is_shared(first: str, second: str, expected: bool) -> None:
    assert differing(claim(first), claim(second)) is expected
