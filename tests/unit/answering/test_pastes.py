"""Of a paste, the lines that say what failed are searched for, and nothing is read into other long messages."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from core.answering.find import read_paste
from tests.cases import every_case
from tests.unit.answering.pasted import (
    CHAINED_PYTHON,
    DOTNET,
    GITHUB_ACTIONS,
    GITLAB,
    GO,
    JAVA,
    JENKINS,
    NODE,
    PYTHON,
    QUESTION,
    RUBY,
    YAML,
)


@every_case(
    ("text", "failed"),
    [
        (GITHUB_ACTIONS, "java.io.IOException: No space left on device"),
        (GITLAB, "npm ERR! Incorrect or missing password."),
        (JENKINS, "E: Could not resolve 'deb.debian.org'"),
        (JAVA, "HikariPool-1 - Connection is not available, request timed out after 30000ms."),
        (CHAINED_PYTHON, "FileNotFoundError: [Errno 2] No such file or directory"),
        (PYTHON, "Max retries exceeded"),
        (GO, "invalid memory address or nil pointer dereference"),
        (NODE, "connect ECONNREFUSED 10.0.0.3:5432"),
        (RUBY, "undefined method `price'"),
        (DOTNET, "Sequence contains no elements"),
    ],
)
def test_the_line_that_says_what_failed_comes_first(text: str, failed: str) -> None:
    paste = read_paste(text)
    assert paste is not None
    assert failed in paste.failed[0]
    assert all(failed in query for query in paste.queries)


ROUTINE = [f"handled request id={number} in 20 ms" for number in range(20)]
REFUSED = 'connect to pg failed: FATAL: password authentication failed for user "booking"'
RECORDS = [*(("INFO", each) for each in ROUTINE), ("WARN", "slow request"), ("ERROR", REFUSED), ("INFO", "stopped")]


@pytest.mark.parametrize(
    "line",
    [
        lambda level, text: f"2026-03-10T09:00:00Z {level} booking {text}",
        lambda level, text: json.dumps({"time": "2026-03-10T09:00:00Z", "level": level, "msg": text}),
        lambda level, text: f"time=2026-03-10T09:00:00Z level={level.lower()} msg={json.dumps(text)}",
        lambda level, text: f"{level[0]}0310 09:00:00.000000       1 booking.go:12] {text}",
    ],
    ids=["text", "json", "logfmt", "klog"],
)
def test_the_error_of_an_application_log_is_searched_for_rather_than_its_routine(
    line: Callable[[str, str], str],
) -> None:
    paste = read_paste("\n".join([*(line(level, text) for level, text in RECORDS), "what is wrong here?"]))
    assert paste is not None
    assert "password authentication failed" in paste.failed[0]
    assert "slow request" in paste.failed[1]
    assert len(paste.failed) == 2
    assert paste.asked == "what is wrong here?"
    assert read_paste("\n".join(line("INFO", text) for text in ROUTINE)) is None


def test_it_is_found_beyond_thousands_of_characters() -> None:
    steps = "\n".join(f"2026-03-14T09:20:05.0000000Z > Task :module{number}:compileJava" for number in range(200))
    head, rest = GITHUB_ACTIONS.split("\n2026-03-14T09:20:05", 1)
    paste = read_paste(f"{head}\n{steps}\n2026-03-14T09:20:05{rest}")
    assert paste is not None
    assert "No space left on device" in paste.failed[0]


def test_the_question_beside_a_paste_is_asked_as_well() -> None:
    paste = read_paste(f"why does this happen?\n```\n{JAVA}```")
    assert paste is not None
    assert paste.queries[0].startswith("why does this happen?\njava.sql.SQLTransientConnectionException")


@every_case("text", [QUESTION, YAML, "", "No space left on device", "Error: x\nError: y"])
def test_other_messages_are_no_paste(text: str) -> None:
    assert read_paste(text) is None
