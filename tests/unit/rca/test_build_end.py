"""How a build ended whose log does not tell why: by what its server states, and by what its runner wrote last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.model.badge import RecordedFailure
from core.model.language_model import Responsibility
from core.model.log_levels import without_control
from core.rca.build_log import End, build_end
from core.rca.failing_lines import NO_HISTORY, build_cause, history_of, is_build_log
from core.rca.incident_signals import survey
from core.rca.observation_tools import observation_tools
from tests.cases import every_case
from tests.fakes.failed_build import BUILD
from tests.fakes.outage import START, observations

GITHUB = "##[group]Run make test\n##[endgroup]\nok 1 - berths\nok 2 - fares\n"
GITLAB = "section_start:1700000000:step_script\r\x1b[0K\x1b[32;1m$ make test\x1b[0;m\nok 1 - berths\nok 2 - fares\n"
JENKINS = "[Pipeline] sh\n+ make test\nok 1 - berths\nok 2 - fares\n"
AZURE = "##[section]Starting: make test\nok 1 - berths\nok 2 - fares\n"
SHELL = "$ make test\nok 1 - berths\nWARNING slow berth, retrying\nok 2 - fares\n"
TRACE = "".join(f"\tat hudson.remoting.Layer{number}.closed(Layer{number}.java:{number})\n" for number in range(40))

ENDS = {
    "GitHub, lost": (
        GITHUB + "##[error]The self-hosted runner: pier-4 lost communication with the server. Verify the machine.\n",
        End.RUNNER_LOST,
    ),
    "GitHub, shut down": (
        GITHUB + "##[error]The runner has received a shutdown signal.\n##[error]Process completed with exit code 143.\n"
        "##[error]The operation was canceled.\nPost job cleanup.\n[command]/usr/bin/git version\nCleaning up orphan processes",
        End.RUNNER_LOST,
    ),
    "GitLab, system failure": (
        GITLAB + 'ERROR: Job failed (system failure): pods "pier-4-abc" not found\n',
        End.RUNNER_LOST,
    ),
    "Jenkins, agent removed": (
        JENKINS + "Cannot contact pier-4: java.lang.InterruptedException\n[Pipeline] }\n[Pipeline] // node\n"
        "[Pipeline] End of Pipeline\nAgent pier-4 was deleted; cancelling node body\nFinished: FAILURE\n",
        End.RUNNER_LOST,
    ),
    "Jenkins, channel closed": (
        (
            f"{JENKINS}FATAL: command execution failed\njava.nio.channels.ClosedChannelException\n{TRACE}"
            "FATAL: Unable to delete script file /tmp/pier.sh\nBuild step 'Execute shell' marked build as failure\nFinished: FAILURE"
        ),
        End.RUNNER_LOST,
    ),
    "Azure, agent": (
        AZURE + "##[error]We stopped hearing from agent pier-4. Verify the agent machine is running.\n",
        End.RUNNER_LOST,
    ),
    "Buildkite, agent": (SHELL + "\x1b_bk;t=1700000000000\x07# The agent was lost: no heartbeat\n", End.RUNNER_LOST),
    "Tekton, evicted": (
        SHELL + "The node was low on resource: memory. Threshold quantity: 100Mi.\n",
        End.RUNNER_LOST,
    ),
    "preempted": (SHELL + "Pod ci/build-7 was preempted by pod live/till-0 on node pier-4\n", End.RUNNER_LOST),
    "spot": (SHELL + "EC2 spot interruption notice: this instance is reclaimed in two minutes\n", End.RUNNER_LOST),
    "CodeBuild, container": (
        SHELL + "Build container found dead before completing the build.\n",
        End.RUNNER_LOST,
    ),
    "Concourse, worker": (SHELL + "worker pier-4 disappeared\n", End.RUNNER_LOST),
    "Bitbucket, time": (SHELL + "Exceeded build time limit of 120 minutes.\n", End.OUT_OF_TIME),
    "Semaphore, cut": (SHELL + "Content of the log is bigger than 16MB. Log is trimmed.\n", End.LOG_CUT),
    "AppVeyor, cut": (
        "The last 2,000 lines of the build log are shown.\nok 1\nok 2\nCommand exited with code 1\n",
        End.LOG_CUT,
    ),
    "GitLab, cut": (
        GITLAB + "WARNING slow\nok 3 - hal\n\x1b[0;33mJob's log exceeded limit of 2097152 bytes.\n"
        "Job execution will continue but no more output will be collected.\x1b[0;m\n",
        End.LOG_CUT,
    ),
    "Travis, cut": (
        SHELL + "\n\nThe log length has exceeded the limit of 4 MB (this usually means a repeated exception).\n\n"
        "The job has been terminated\n",
        End.LOG_CUT,
    ),
    "Jenkins, cut": (
        JENKINS + ">>> Maximum log file size of 50 MB exceeded. Aborting <<<\nFinished: ABORTED\n",
        End.LOG_CUT,
    ),
    "CircleCI, cut": (SHELL + "Your build output is too large to display in the browser.\n", End.LOG_CUT),
    "BuildKit, cut": (
        (
            "#9 [4/4] RUN make test\n#9 1.1 ok 1\n#9 1.2 [output clipped, log limit 2MiB reached]\n"
            '#9 ERROR: process "/bin/sh -c make test" did not complete successfully: exit code: 2\n'
        ),
        End.LOG_CUT,
    ),
    "head cut": (
        "[log truncated, 7 MB left out]\nok 1 - berths\nok 2 - fares\nThe command exited with status 1\n",
        End.LOG_CUT,
    ),
    "GitLab, time": (
        GITLAB + "ERROR: Job failed: execution took longer than 1h0m0s seconds\n",
        End.OUT_OF_TIME,
    ),
    "Travis, time": (
        SHELL + "No output has been received in the last 10m0s.\n\nThe build has been terminated\n",
        End.OUT_OF_TIME,
    ),
    "GitHub, cancelled": (GITHUB + "##[error]The operation was canceled.\n", End.CANCELLED),
    "no verdict": (SHELL + "ok 3 - hal", End.NO_VERDICT),
}


@every_case("system", ENDS)
def test_a_log_without_the_failure_tells_how_the_build_ended_and_not_what_it_printed_last(system: str) -> None:
    log, end = ENDS[system]
    found = build_end(log)
    assert found is not None
    assert found.end is end
    told = build_cause(replace(BUILD, log=log), NO_HISTORY)
    assert told is not None
    assert str(end) in told.cause
    assert "fares" not in told.cause
    in_platform = end in (End.RUNNER_LOST, End.LOG_CUT)
    assert told.responsibility is (Responsibility.PLATFORM if in_platform else None)
    (evidence,) = told.evidence
    assert found.number is not None
    assert evidence.source.endswith(f"line {found.number + 1}")
    assert evidence.quote in without_control(log.split("\n")[found.number])


FAILED = "AssertionError: expected a fare of 3, got 4\n1 failed, 1 passed\n"


@every_case(
    "log",
    [
        SHELL + "ERROR: agent pier-4 lost connection\n" + FAILED + "ERROR: Job failed: exit code 1\n",
        JENKINS + "Cannot contact pier-4: java.lang.InterruptedException\n" + FAILED + "Finished: FAILURE\n",
        SHELL + FAILED + "The runner prints: log output truncated\nmake: *** [test] Error 1\nError: no such fare\n",
        "$ pytest\nE   assert [1] == [2]\nE   Full output truncated (9 lines hidden), use '-vv'\n" + FAILED,
        "$ kubectl delete pod till-0\npod till-0 deleted\nError: Process completed with exit code 1.\n",
        "$ make e2e\n3 tests, 1 failed\nnode till-db removed\nnetwork till removed\n",
        "$ tap\nok 1\nnot ok 2 - fares\n",
        "src/till.c:12:9: error: unknown type name 'fare'\n",
    ],
)
def test_a_log_in_which_a_command_reports_its_failure_has_no_other_end(log: str) -> None:
    assert build_end(log) is None


@every_case(
    ("stated", "end"),
    [
        ("failed\nrunner_system_failure", End.RUNNER_LOST),
        ("failed\nstuck_or_timeout_failure", End.RUNNER_LOST),
        ("failed\njob_execution_timeout", End.OUT_OF_TIME),
        ("failed\ntrace_size_exceeded", End.LOG_CUT),
        ("timed_out", End.OUT_OF_TIME),
        ("failure\nThe hosted runner lost communication with the server.", End.RUNNER_LOST),
        ("cancelled\nThe job has exceeded the maximum execution time of 30m0s", End.OUT_OF_TIME),
        ("abandoned", End.RUNNER_LOST),
        ("ABORTED", End.CANCELLED),
    ],
)
def test_what_the_server_states_counts_before_what_the_log_says(stated: str, end: End) -> None:
    log = SHELL + FAILED
    found = build_end(log, stated)
    assert found is not None
    assert (found.end, found.number) == (end, None)
    told = build_cause(replace(BUILD, log="", stated=stated), NO_HISTORY)
    assert told is not None
    assert str(end) in told.cause


def test_a_statement_of_the_failure_is_the_cause_where_the_likeliest_lines_state_nothing() -> None:
    told = build_cause(replace(BUILD, log="+ make test\nok 1\nBuild exceeded memory limit of the tier.\n"), NO_HISTORY)
    assert told is not None
    assert "Build exceeded memory limit of the tier." in told.cause


def test_a_script_that_failed_by_the_word_of_the_server_lost_no_runner() -> None:
    lost = SHELL + "the agent lost its connection\n"
    assert build_end(lost) is not None
    assert build_end(lost, "failed\nscript_failure") is None
    assert build_end(lost, "failure\nProcess completed with exit code 1.") is None
    cut = build_end(ENDS["GitLab, cut"][0], "failed\nscript_failure")
    assert cut is not None
    assert cut.end is End.LOG_CUT


def test_a_message_of_the_runner_is_quoted_where_the_server_names_only_the_kind() -> None:
    log = GITLAB + 'ERROR: Job failed (system failure): pod "pier-4" is disrupted\n'
    found = build_end(log, "failed\nrunner_system_failure")
    assert found is not None
    assert found.text.endswith('pod "pier-4" is disrupted')


def test_lines_that_people_confirmed_explain_a_log_without_a_verdict_but_not_a_lost_runner() -> None:
    past = history_of([RecordedFailure("p", "GitHub: acme/till", SHELL, 3, 3, START)])
    open_ended = build_cause(replace(BUILD, log=SHELL), past)
    assert open_ended is not None
    assert str(End.NO_VERDICT) not in open_ended.cause
    lost = build_cause(replace(BUILD, log=ENDS["GitLab, system failure"][0]), past)
    assert lost is not None
    assert str(End.RUNNER_LOST) in lost.cause


@pytest.mark.parametrize("system", ["GitLab, cut", "Azure, agent", "Jenkins, agent removed"])
def test_a_pasted_log_that_ends_with_a_message_of_the_runner_is_a_build_log(system: str) -> None:
    assert is_build_log(ENDS[system][0])


async def test_a_language_model_reads_how_the_build_ended() -> None:
    seen = replace(observations(), builds=(replace(BUILD, log=ENDS["Azure, agent"][0]),))
    (tool,) = [each for each in observation_tools(seen, survey(seen)) if each.name == "read_failed_build"]
    assert str(End.RUNNER_LOST) in await tool.call({})


@every_case(
    ("written", "shown"),
    [
        ("\x1b_bk;t=1700000000000\x07$ make", "$ make"),  # APC, ended by BEL
        ("\x1bPq#0;2;0\x1b\\pier", "pier"),  # DCS
        ("\x1bXstart of string\x9cpier", "pier"),  # SOS
        ("\x1b^private\x1b\\pier", "pier"),  # PM
        ("\x1b]8;;https://x.example\x07pier\x1b]8;;\x07", "pier"),  # OSC
        ("\x9b31mpier\x9b0m \x9d0;title\x9cquay", "pier quay"),  # in eight bits
        ("\x1b[38:5:1mpier\x1b[1 q\x1b[?25l\x1b[200~", "pier"),  # CSI, with all kinds of characters
        ("\x1b(B\x1b=\x1b7A\x1bM\x1bcpier\x1b", "Apier"),
        ("pier\x1b_bk;t=17000", "pier"),  # cut within
        ("\x1b_bk;t=1700\x1b[32mpier", "pier"),  # without its end
        ("\x1b]0;title\npier", "0;title\npier"),  # never over the end of a line
        ("^[[1;31mpier^[[m ^[_bk;t=1^Gquay", "pier quay"),  # as pagers show it
        ("\u241b[31mpier\u241b[0m", "pier"),
        ("[31mpier[0m", "pier"),
        ("rate(berths[5m]) grep ^[[] ^[_a-z]+$", "rate(berths[5m]) grep ^[[] ^[_a-z]+$"),
        ("â\x80\x9cpier\x80\x9dâ\x80\x9c", "â\x80\x9cpier\x80\x9dâ\x80\x9c"),  # quotation marks, wrongly decoded
    ],
)
def test_what_a_terminal_obeys_is_left_out_in_every_standard_form(written: str, shown: str) -> None:
    assert without_control(written) == shown
