"""A failed build as a cause, what was pasted after `rca`, and what people say of the lines."""

from __future__ import annotations

from dataclasses import replace

from core.model.badge import RecordedFailure
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.findings import EvidenceKind
from core.model.incident import Incident
from core.model.language_model import Responsibility
from core.rca.explain import explain
from core.rca.failing_lines import (
    BUILD_SCORE,
    FailureHistory,
    build_cause,
    corrected,
    history_of,
    is_build_log,
    named_lines,
)
from core.rca.incident_signals import survey
from core.rca.observation_tools import observation_tools
from core.rca.observations import build_links, is_about_a_build, pasted_build, pasted_output
from handlers.incidents.investigate_incident import incident_from
from tests.cases import every_case
from tests.fakes.failed_build import BUILD, LOG
from tests.fakes.outage import START, change, errors, incident, observations, traffic

DESCRIBED = "Name:  till-0\nNamespace:  live\nStatus:  Running\n"


def asked(text: str) -> Incident:
    question = Question("q", text, Person(Platform.SLACK, "U1"), Place(Platform.SLACK, "C1"), Audience(), START)
    return incident_from(question, ["till"])


def test_the_cause_of_a_failed_build_is_told_with_its_lines_and_where_they_stand() -> None:
    found = build_cause(BUILD, FailureHistory())
    assert found is not None
    assert found.cause.startswith("GitHub run 71 of acme/till failed at build: tests: ")
    assert (found.service, found.score, found.responsibility) == ("till", BUILD_SCORE, Responsibility.OWN_CODE)
    quotes = {evidence.quote: evidence.source for evidence in found.evidence}
    assert quotes["E       assert 3 == 4"] == "GitHub run 71 of acme/till, line 7"
    assert all(each.kind is EvidenceKind.LOG and each.url == BUILD.url for each in found.evidence)
    assert "“correct: lines A to B”" in found.next_check


def test_what_people_confirmed_decides_which_lines_explain_the_next_failure() -> None:
    past = history_of([RecordedFailure("p", "GitHub: acme/till", LOG.replace("3 ==", "5 =="), 8, 8, START)])
    found = build_cause(BUILD, past)
    assert found is not None
    assert [evidence.quote for evidence in found.evidence] == ["1 failed, 1 passed in 0.12s"]


def test_a_blank_log_explains_nothing() -> None:
    assert build_cause(replace(BUILD, log="\n \n"), FailureHistory()) is None


def test_lines_are_shown_as_a_terminal_would_show_them() -> None:
    coloured = "50 %\r\x1b[31merror: no such module till\x1b[0m\r\n" * 2
    found = build_cause(replace(BUILD, log=coloured), FailureHistory())
    assert found is not None
    assert {evidence.quote for evidence in found.evidence} == {"error: no such module till"}


def test_for_an_incident_about_a_build_its_failing_lines_stand_before_what_else_was_seen() -> None:
    logs = [traffic("shop"), errors("shop", "pool request timed out", since=-8)]
    seen = replace(observations(logs, changes=[change("C-1", "shop", -9)]), builds=(BUILD,))
    found, evaluation = explain(seen)
    assert found.cause is not None
    assert found.cause.service == "till"
    assert "C-1" in found.hypotheses[1].cause
    assert any(entry.text == "Build 71 of acme/till failed" for entry in found.timeline)
    assert evaluation is not None


@every_case(
    ("text", "is_log"),
    [
        (LOG, True),
        (DESCRIBED, False),
        ("why is till slow?", False),
        ("exit code 1", False),
        ("INFO a\nINFO b\nERROR c", False),
    ],
)
def test_a_build_log_is_told_from_other_texts(text: str, is_log: bool) -> None:
    assert is_build_log(text) is is_log


def test_what_was_pasted_is_a_build_log_or_the_output_of_a_tool_or_only_a_question() -> None:
    pasted = pasted_build(asked(f"why did till fail?\n{LOG}"))
    assert pasted is not None
    assert (pasted.service, pasted.history_key) == ("till", "pasted: till")
    assert pasted_build(asked(DESCRIBED)) is None
    output = pasted_output(asked(DESCRIBED))
    assert output is not None
    assert output.text == DESCRIBED
    assert pasted_output(asked("why is till slow?")) is None
    assert pasted_output(incident()) is None


def test_links_are_found_in_what_alerts_say_without_the_marks_around_them() -> None:
    text = "see <https://ci.example/job/till/7/>, (https://gitlab.example/a/b/-/jobs/1). Not ftp://x"
    assert build_links(asked(text)) == ("https://ci.example/job/till/7/", "https://gitlab.example/a/b/-/jobs/1")


@every_case(
    ("text", "is_it"),
    [
        ("The build of till fails", True),
        ("CI is red", True),
        ("Pipeline broke", True),
        ("till is slow", False),
        ("build 7 deployed", False),
        ("Building the index failed", False),
        ("Failover of the pipeline", False),
    ],
)
def test_a_question_about_a_failed_build_is_told_from_others(text: str, is_it: bool) -> None:
    assert is_about_a_build(asked(text)) is is_it


@every_case(
    ("text", "lines"),
    [
        ("lines 12 to 14", range(11, 14)),
        ("Line 3", range(2, 3)),
        ("lines 3-4, not those", range(2, 4)),
        ("lines 4 to 3", None),
        ("line 0", None),
        ("the lines 3 to 4", None),
        ("It is the disk.", None),
    ],
)
def test_the_lines_that_a_correction_names(text: str, lines: range | None) -> None:
    assert named_lines(text) == lines


def test_only_lines_with_text_can_be_confirmed() -> None:
    failure = RecordedFailure("p", "ci", "one\n\nthree", 0, 0, START)
    better = corrected(failure, range(2, 3), "slack:U1")
    assert better == replace(failure, first=2, last=2, confirmed_by="slack:U1")
    assert corrected(failure, range(1, 2), "slack:U1") is None
    assert corrected(failure, range(2, 4), "slack:U1") is None


async def test_a_language_model_can_read_the_failed_build() -> None:
    seen = replace(observations(), builds=(BUILD,))
    (tool,) = [each for each in observation_tools(seen, survey(seen)) if each.name == "read_failed_build"]
    told = await tool.call({})
    assert told.startswith("Run 71 of acme/till, build: tests:")
    assert "E       assert 3 == 4" in told.partition("The end of the log:")[0]
    assert told.endswith("Post job cleanup.\n")
    assert all(each.name != tool.name for each in observation_tools(observations(), survey(observations())))


def cause_of(*lines: str) -> str:
    found = build_cause(replace(BUILD, log="\n".join(lines)), FailureHistory())
    assert found is not None
    return found.cause.rpartition(f" at {BUILD.step}: ")[2]


STATED = "src/till.c:12:9: error: unknown type name 'fare'"


@every_case(
    "other",
    [
        "INFO  [main] could not find a cached build, connection refused",
        "[INFO] ImportError: no cached build",
        "DEBUG: error: cannot open cache",
        "npm notice error: connection timed out",
        "src/till.h:3:1: note: error: expected 'fare' here",
        "fatal errors used: 0.",
        "0 errors, 0 failures, 0 exceptions",
    ],
)
def test_a_quiet_line_or_a_counter_of_nothing_is_not_the_cause(other: str) -> None:
    failed = "got 3, want 4: the fare of berth 7 is wrong"
    for lines in ((other, failed, other), (failed, other), (other, other, failed)):
        assert cause_of("$ make", *lines, 'The command "make" exited with 2.') == f"{failed}."


@every_case(
    "verdict",
    [
        "rake aborted!",
        "npm ERR! Test failed. See above for more details.",
        "FAIL\tcompany.example/till\t0.01s",
        "FAILURES!",
        "1 out of 2042 tests failed (40.62s).",
        "One or more errors occurred.",
        "/usr/bin/ld: src/till.o: in function `main':",
        "src/till.c: In function 'main':",
        "Process 'command' finished with non-zero exit value 2",
        "For more information about this error, try `rustc --explain E0425`.",
    ],
)
def test_what_says_only_that_something_failed_is_not_the_cause(verdict: str) -> None:
    failed = "till.c:(.text+0xa): undefined reference to `berth'"
    for lines in ((verdict, failed, verdict), (failed, verdict), (verdict, verdict, failed)):
        assert cause_of("$ make", *lines, 'The command "make" exited with 2.') == f"{failed}."


def test_a_job_that_goes_on_after_its_failed_command_failed_by_that_one() -> None:
    failed = ["$ make", "till.c:(.text+0xa): undefined reference to `berth'", "make: *** [Makefile:3: all] Error 1"]
    after = ["Running after script...", "$ echo done", "done", "ERROR: Job failed: exit code 2"]
    assert cause_of("$ check", "checked", *failed, *after) == f"{failed[1]}."


def test_what_a_passing_command_of_the_same_log_says_too_is_not_the_cause() -> None:
    noise = [
        "java.lang.IllegalCallerException: till.io is not open to module fares",
        "\tat till.Fares.open(Fares.java:7)",
    ]
    passed = ["$ check", *noise, 'The command "check" exited with 0.']
    failed = ["$ make", *noise, "compiling", STATED, *noise, 'The command "make" exited with 2.']
    assert cause_of(*passed, *passed, *failed) == f"{STATED}."


def test_the_cause_is_sought_in_the_command_that_failed_and_from_its_end() -> None:
    early = [f"src/fare{letter}.c:3:1: error: unknown type name 'old{letter}'" for letter in "ab"]
    quiet = [f"compiling unit {number}" for number in range(300)]
    failed = ["$ make", *early, *quiet, STATED, 'The command "make" exited with 2.']
    after = ["$ upload", "error: cannot open the cache", 'The command "upload" exited with 0.']
    assert cause_of("$ get", *early, *quiet, *failed, *after) == f"{STATED}."


@every_case(
    "written",
    [
        "^[[31merror: no such module till^[[m",
        "\x1b[1;31merror:\x1b[m no such module till\x1b[K",
        "\u241b[31merror: no such module till\u241b[0m",
        "fetching 10 %\rerror: no such module till\r",
        "error: no such module fares\r\x1b[0Kerror: no such module till",
        "\x1b]0;title\x07error: no such module till\x1b(B",
    ],
)
def test_colours_titles_and_overwritten_text_are_not_told(written: str) -> None:
    assert cause_of(written, written) == "no such module till."


def test_lines_that_say_the_same_are_shown_once() -> None:
    lines = [f"src/till{number}.c:1:1: error: unknown type name 'fare'" for number in range(9)]
    found = build_cause(replace(BUILD, log="\n".join([*lines, "ld: error: undefined symbol fare"])), FailureHistory())
    assert found is not None
    assert [each.quote for each in found.evidence] == [lines[0], "ld: error: undefined symbol fare"]
