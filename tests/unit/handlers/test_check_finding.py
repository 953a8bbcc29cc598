from __future__ import annotations

from collections.abc import Callable

import pytest

from core.model.errors import ModelUnavailable
from core.model.language_model import Finding, ModelRequest, Responsibility
from core.rca.agent.actions import Snapshots
from handlers.incidents.check_finding import CheckedFinding, checked_finding
from tests.fakes.investigation import verdicts
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import errors, observations

SEEN = observations([errors("stock", "FATAL no space left on device", since=-6)])
CHANGES = (
    "09:13:02 deploy of checkout 2.41.0 by ilse: db.pool.max_size 40 to 4\n08:20:41 deploy of catalogue 7.9.1 by tom"
)
TRUE, FALSE = (
    "Release 2.41.0 of checkout cut the pool from 40 to 4.",
    "Release 7.9.1 of the catalogue cut the pool from 40 to 4.",
)
QUOTE = "deploy of checkout 2.41.0 by ilse: db.pool.max_size 40 to 4"


async def checked(
    cause: str,
    script: Callable[[ModelRequest], str | None] | None = verdicts,
    *,
    read: str = CHANGES,
    solution: str = "",
) -> tuple[CheckedFinding, list[ModelRequest]]:
    snapshots = Snapshots()
    snapshots.keep(read, "list_changes(every service)")
    finding = Finding("", cause, solution, "checkout", Responsibility.OWN_CODE, (QUOTE,))
    model = ScriptedModel(lambda request: (script and script(request)) or "", context=100_000)
    result = await checked_finding(finding, snapshots, SEEN, model if script else None, ModelRequest(()))
    return result, model.requests


def cause_of(result: CheckedFinding) -> str:
    return result.finding.root_cause if result.finding is not None else ""


async def test_sentence_that_the_judge_refuses_is_left_out_and_counted() -> None:
    result, requests = await checked(f"{TRUE} {FALSE}", lambda request: verdicts(request, "7.9.1"))
    assert (cause_of(result), result.left_out, len(requests)) == (TRUE, 1, 1)


async def test_finding_of_which_the_judge_refuses_all_is_none() -> None:
    result, _ = await checked(FALSE, lambda request: verdicts(request, "7.9.1"))
    assert (result.finding, result.left_out) == (None, 1)


def broken(_: ModelRequest) -> str:
    return '{"1": "surely"}'


def gone(_: ModelRequest) -> str:
    raise ModelUnavailable("gone")


@pytest.mark.parametrize("judge", [None, broken, gone])
async def test_without_a_judge_the_cause_is_told_in_the_words_of_its_evidence(
    judge: Callable[[ModelRequest], str | None] | None,
) -> None:
    for cause in (TRUE, FALSE):
        result, _ = await checked(cause, judge)
        assert cause_of(result) == QUOTE


async def test_sentence_that_stands_in_a_result_needs_no_judge_and_one_with_another_figure_does() -> None:
    line = "The pool of checkout was cut from 40 to 4 connections."
    assert (await checked(line, read=f"{CHANGES}\n{line}"))[1] == []
    other = "The pool of checkout was cut from 4 to 40 connections."
    assert len((await checked(other, read=f"{CHANGES}\n{line}"))[1]) == 1


async def test_judge_reads_the_nearest_lines_of_a_long_result_below_its_call() -> None:
    noise = "\n".join(f"09:00:{second:02} GET /health 200" for second in range(60)) * 20
    _, (request,) = await checked(TRUE, read=f"{noise}\n{CHANGES}\n{noise}")
    prompt = request.messages[-1].text
    assert f"1. {TRUE}\n   Nearest: {CHANGES.splitlines()[0]}" in prompt
    assert "[1] list_changes(every service)" in prompt
    assert len(prompt) < 6_000


async def test_number_that_may_be_calculated_is_the_judge_s_and_a_time_or_a_version_must_have_been_read() -> None:
    for cause in ("The pool shrank tenfold.", "36 connections fewer are left.", "It was cut by 90 %."):
        assert cause_of((await checked(cause))[0]) == cause
    for cause in ("It was cut at 09:31.", "Release 2.42.0 cut the pool."):
        assert cause_of((await checked(cause))[0]) == "", cause


async def test_solution_that_names_what_was_not_read_is_left_out_and_counted() -> None:
    result, _ = await checked(TRUE, solution="Set the pool to 40 again. Run `opsctl repair --all`.")
    assert result.finding is not None
    assert (result.finding.solution, result.left_out) == ("Set the pool to 40 again.", 1)
