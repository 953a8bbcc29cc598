"""The tests run in several processes, and none of their results is lost: not even that of a process that dies."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
PASSING = """
import os, pytest

@pytest.fixture(scope="module")
def process():
    return os.getpid()

@pytest.mark.parametrize("number", range(20))
def test_in_one_process(process, number):
    assert process == os.getpid() != os.getppid()
"""
FAILING = "def test_false():\n    print('said before it failed')\n    assert False"
DYING = "import os\n\ndef test_before(): ...\n\ndef test_end():\n    os.kill(os.getpid(), 9)\n\ndef test_after(): ..."


def test_all_results_are_shown_with_what_was_printed_and_a_process_that_dies_fails_its_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(test_passing=PASSING, test_failing=FAILING, test_dying=DYING, test_last="def test_last(): ...")
    run = pytester.runpytest_subprocess(
        "-p", "tests.forks", "--forks", "2", "-p", "no:schemathesis", "-p", "no:asyncio"
    )
    run.assert_outcomes(passed=22, failed=2)
    run.stdout.fnmatch_lines_random(
        [
            "said before it failed",
            "*test_dying.py::test_end*",
            "*ended with -9*",
            "*FAILED test_failing.py::test_false*",
        ]
    )
    assert run.ret == pytest.ExitCode.TESTS_FAILED
