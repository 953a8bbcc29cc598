"""Logs as build servers write them: the step that failed, the headline and the lines, with whatever stands around them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from core.rca.build_log import failing_steps, plain
from core.rca.failing_lines import FailureHistory, build_cause, failing_lines, failing_segments
from tests.fakes.failed_build import BUILD

PYTEST = """============================= test session starts ==============================
collected 41 items
tests/test_cart.py ..........F....
=================================== FAILURES ===================================
__________________________________ test_total __________________________________
    def test_total():
>       assert total(cart) == 30
E       assert 27 == 30
tests/test_cart.py:18: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_total - assert 27 == 30
1 failed, 40 passed in 2.11s"""
GITHUB = f"""##[group]Run actions/checkout@v4
with:
  repository: acme/cart
##[endgroup]
hint: Using 'master' as the name for the initial branch. error: this is a hint only
##[group]Run npm run lint || true
npm run lint || true
shell: /usr/bin/bash -e {{0}}
##[endgroup]
/src/a.js:3:1: error: Unexpected console statement
✖ 1 problem (1 error, 0 warnings)
##[group]Run pytest
pytest
shell: /usr/bin/bash -e {{0}}
##[endgroup]
{PYTEST}
##[error]Process completed with exit code 1.
##[group]Run ./report.sh
./report.sh
##[endgroup]
Error: fatal: report server refused the upload: connection refused
Post job cleanup.
[command]/usr/bin/git config --local --unset-all core.sshCommand
fatal: not in a git directory"""
GITLAB = """Running with gitlab-runner 16.9.0 (656c1943)
section_start:1700000000:prepare_executor\r\x1b[0K\x1b[36;1mPreparing the "docker" executor\x1b[0;m
ERROR: could not load the cache manifest, continuing
section_end:1700000003:prepare_executor\r\x1b[0Ksection_start:1700000003:step_script\r\x1b[0K\x1b[36;1mExecuting "step_script"\x1b[0;m
\x1b[32;1m$ npm ci\x1b[0;m
npm WARN deprecated har-validator@5.1.5: this library is no longer supported
added 812 packages in 21s
\x1b[32;1m$ npx tsc --noEmit\x1b[0;m
src/till.ts:14:7 - error TS2322: Type 'string' is not assignable to type 'number'.

14   let total: number = read();
         ~~~~~

Found 1 error in src/till.ts:14
section_end:1700000031:step_script\r\x1b[0Ksection_start:1700000031:after_script\r\x1b[0KRunning after_script
$ ./notify.sh
error: cannot notify: no such host chat.internal
section_end:1700000032:after_script\r\x1b[0Ksection_start:1700000032:cleanup_file_variables\r\x1b[0KCleaning up
section_end:1700000033:cleanup_file_variables\r\x1b[0K\x1b[31;1mERROR: Job failed: exit code 2\x1b[0;m"""
JENKINS = """Started by user ada
[Pipeline] Start of Pipeline
[Pipeline] node
Running on agent-3 in /var/jenkins/workspace/till
[Pipeline] {
[Pipeline] stage
[Pipeline] { (Build)
[Pipeline] sh
+ ./gradlew assemble
warning: [deprecation] Thread.stop has been deprecated
BUILD SUCCESSFUL in 12s
[Pipeline] }
[Pipeline] // stage
[Pipeline] { (Test)
[Pipeline] sh
+ ./gradlew test
> Task :compileJava FAILED
/var/jenkins/workspace/till/src/Till.java:12: error: cannot find symbol
    return Rounding.half(sum);
           ^
  symbol:   variable Rounding
1 error
FAILURE: Build failed with an exception.
* What went wrong:
Execution failed for task ':compileJava'.
[Pipeline] }
[Pipeline] // stage
[Pipeline] { (Deploy)
Stage "Deploy" skipped due to earlier failure(s)
[Pipeline] }
[Pipeline] { (Declarative: Post Actions)
[Pipeline] sh
+ ./mail.sh
fatal: error: mail server refused the connection
[Pipeline] }
[Pipeline] End of Pipeline
ERROR: script returned exit code 1
Finished: FAILURE"""
AZURE = """##[section]Starting: Restore
error NU1101 may appear below if a feed is offline
##[section]Finishing: Restore
##[section]Starting: Test
go test ./...
--- FAIL: TestSum (0.00s)
    sum_test.go:9: got 3, want 4
FAIL
##[error]Bash exited with code '1'.
##[section]Finishing: Test
##[section]Starting: Publish
fatal: error: nothing to publish
##[section]Finishing: Publish"""
LOGS = {
    "github": (GITHUB, "============================= test session", "1 failed, 40 passed", "assert 27 == 30"),
    "gitlab": (GITLAB, "src/till.ts:14:7", "Found 1 error", "TS2322"),
    "jenkins": (JENKINS, "+ ./gradlew test", "Execution failed", "cannot find symbol"),
    "azure": (AZURE, "go test", "FAIL", "got 3, want 4"),
}
STAMPS = {
    "none": lambda number: "",
    "github": lambda number: f"2026-03-14T09:30:{number:02}.1234567Z ",
    "gitlab": lambda number: f"2026-03-14T09:30:{number:02}.123456Z 01O ",
    "jenkins": lambda number: f"[2026-03-14T09:30:{number:02}.123Z] ",
    "clock": lambda number: f"09:30:{number:02}  ",
    "command line": lambda number: f"build\tRun tests\t2026-03-14T09:30:{number:02}.1234567Z ",
}


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize("system", LOGS)
def test_the_failing_step_and_its_error_are_found_with_and_without_times(system: str, stamp: str) -> None:
    log, first, last, headline = LOGS[system]
    text = log.split("\n")
    stamped = "\n".join(STAMPS[stamp](number) + line for number, line in enumerate(text))
    (step,) = failing_steps(plain(stamped).split("\n"))
    assert text[step.start].startswith(first)
    assert text[step.stop - 1].startswith(last)
    lines = failing_lines(stamped)
    assert lines
    assert all(line.number in step for line in lines)
    told = build_cause(replace(BUILD, log=stamped), FailureHistory())
    assert told is not None
    assert headline in told.cause
    for evidence in told.evidence:
        number = int(re.findall(r"line (\d+)", evidence.source)[0])
        assert evidence.quote in text[number - 1]


def test_a_log_copied_from_a_page_names_its_failing_step_without_group_marks() -> None:
    log = "Run make lint\nerror: only a warning\nRun make\nmain.c:1:2: error: stray\nError: Process completed with exit code 2."
    assert failing_steps(log.split("\n")) == [range(3, 4)]


def test_an_error_of_the_pipeline_itself_is_looked_for_after_its_end() -> None:
    log = JENKINS.replace(
        "ERROR: script returned exit code 1", "groovy.lang.MissingPropertyException: No such property: tag"
    )
    assert [step.start for step in failing_steps(log.split("\n"))][1] == log.split("\n").index("Finished: FAILURE") - 1


def test_a_job_that_fails_before_its_script_names_the_section_that_it_did_not_get_over() -> None:
    log = (
        "section_start:1:prepare_executor\r\x1b[0KPreparing\nERROR: pull access denied for acme/tools\n"
        "section_start:2:cleanup_file_variables\r\x1b[0KCleaning up\nERROR: Job failed: image pull failed"
    )
    assert 1 in failing_steps(plain(log).split("\n"))[0]


def test_failures_that_stand_apart_are_segments_of_their_own() -> None:
    quiet = [f"cc -c unit{number}.c" for number in range(30)]
    errors = [
        [f"src/{name}.c:{number}:9: error: unknown type name 'leaf'", "   leaf oak;", "   ^~~~"]
        for number, name in enumerate("ab")
    ]
    log = ["$ make", *quiet, *errors[0], *quiet, *errors[1], *quiet]
    found = sorted(failing_segments("\n".join(log)), key=lambda segment: segment.start)
    assert [log[segment.start] for segment in found] == [error[0] for error in errors]


def test_a_log_without_marks_names_no_step() -> None:
    assert failing_steps(PYTEST.split("\n")) == []
