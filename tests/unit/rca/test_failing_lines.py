from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.rca.build_log import NAMES, ReadLog
from core.rca.failing_lines import BuildLine, FailureHistory, PastFailure, failing_lines, failing_range


def build(number: int, *failure: str) -> str:
    """A log of an odd tool, whose words for trouble nobody else uses."""
    downloads = [f"Fetched parcel-{number + index}.{index} in {index * number} ms" for index in range(40)]
    checks = [f"check {index} of {number} went well" for index in range(20)]
    return "\n".join([*downloads, "", ">> verdicts", *failure, "<< verdicts", *checks, "bye"])


def lines_of(log: str, *failure: str) -> range:
    start = log.split("\n").index(failure[0])
    return range(start, start + len(failure))


FIRST = ("  plum was sour (17)", "  see basket 4")
OTHER = ("  quince was bruised (2)", "  see basket 11", "  and shelf 3")


def test_a_compiler_error_is_found_without_any_history() -> None:
    quiet = [f"Compiling unit{index}.c" for index in range(50)]
    failure = ["src/tree.c:12:9: error: unknown type name 'leaf'", "   leaf oak;", "   ^~~~"]
    log = "\n".join([*quiet, "", *failure, "", *quiet])
    found = failing_range(log)
    assert found.start == 51
    assert found.stop <= 54


def test_what_people_confirmed_once_is_found_in_the_next_build() -> None:
    past, log = build(3, *FIRST), build(8, *OTHER)
    history = FailureHistory([PastFailure(past, lines_of(past, *FIRST))])
    assert failing_range(log) != lines_of(log, *OTHER)
    assert failing_range(log, history) == lines_of(log, *OTHER)


def test_lines_are_given_as_they_stand_in_the_log() -> None:
    log = "$ make\n\x1b[31mtree.c:12:9: error: unknown type name 'leaf'\x1b[0m\n\nThe command exited with 2"
    assert failing_lines(log) == [BuildLine(1, "\x1b[31mtree.c:12:9: error: unknown type name 'leaf'\x1b[0m")]


def test_an_empty_history_changes_nothing() -> None:
    log = build(8, *OTHER)
    assert failing_range(log, FailureHistory()) == failing_range(log)


def test_a_blank_log_has_no_failing_lines() -> None:
    assert failing_range("\n \n\t\n") == range(0)


def test_lines_that_the_log_does_not_have_are_refused() -> None:
    with pytest.raises(ValueError, match="are not in the log"):
        PastFailure("one\ntwo", range(5, 7))


def test_colours_digits_and_what_a_carriage_return_overwrote_do_not_count() -> None:
    plain, coloured = ReadLog("Error 7 in file.py:3"), ReadLog("\x1b[31mError 812 in file.py:3\x1b[0m\r")
    overwritten = ReadLog("progress 3 %\rError 7 in file.py:3")
    assert (plain.features == coloured.features).all()
    assert (plain.features == overwritten.features).all()


def test_places_and_exit_codes_are_seen_on_their_line_only() -> None:
    features = ReadLog("fine\n\nlib/a.rb:12 said no\nThe command exited with 2\nfine").features
    column = {name: features[:, number].tolist() for number, name in enumerate(NAMES)}
    assert column["place"] == [0, 1, 0, 0]
    assert column["exit_code"] == [0, 0, 1, 0]
    assert column["after_exit"] == [0, 0, 0, 1]
    assert column["gap"] == [1, 1, 0, 0]


def test_the_output_of_a_command_that_exits_with_an_error_is_the_failing_step() -> None:
    features = ReadLog("$ prepare\nfine\n$ check\npear is soft\nThe command exited with 2\nbye").features
    assert features[:, NAMES.index("failing_step")].tolist() == [0, 0, 0, 1, 0, 0]


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_at_all_is_answered_with_lines_that_it_has(log: str, past: str) -> None:
    total = len(past.split("\n"))
    failures = [PastFailure(past, range(total))] if ReadLog(past).keys else []
    found = failing_range(log, FailureHistory(failures))
    assert 0 <= found.start <= found.stop <= len(log.split("\n"))
