from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.model.language_model import ModelRequest
from core.model.trajectory import Ending, Finding, Responsibility
from core.rca.controller import MAX_TOKENS, Investigation, investigate, vote
from tests.fakes.investigation import SERVICES, FakeTool, call, finalise
from tests.fakes.language_model import ScriptedModel

REQUEST = ModelRequest(())
INCIDENT = "api answers 503."


def model(samples: Sequence[str]) -> ScriptedModel:
    """Greedy: two looks and a finding; samples at temperature 1, one after the other."""
    greedy, drawn = [call(service="api"), call(service="db"), finalise()], list(samples)

    def reply(request: ModelRequest) -> str:
        if request.temperature:
            return drawn.pop(0)
        return greedy.pop(0) if greedy else finalise("The disk of db is full.")

    return ScriptedModel(reply, context=100_000)


def investigation(scripted: ScriptedModel) -> Investigation:
    return Investigation(scripted, (FakeTool(), FakeTool("read_metrics")), SERVICES, REQUEST)


async def test_samples_continue_the_prompt_from_before_the_finding_and_the_one_nearest_to_all_is_taken() -> None:
    scripted = model([finalise("The pool of db is full."), finalise("A deployment.")])
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=2)
    assert [finding.root_cause for finding in trajectory.samples] == [
        "The pool of db is exhausted.",
        "The pool of db is full.",
        "A deployment.",
    ]
    assert trajectory.finding is not None
    assert "pool" in trajectory.finding.root_cause
    greedy_last = next(each for each in reversed(scripted.requests) if not each.temperature)
    assert {each.messages for each in scripted.requests if each.temperature} == {greedy_last.messages}


async def test_a_sample_may_look_further_before_it_reports() -> None:
    trajectory = await investigate(investigation(model([call("read_metrics", service="db")])), INCIDENT, samples=1)
    assert trajectory.samples[1].root_cause == "The disk of db is full."
    assert len(trajectory.steps) == 2


async def test_samples_that_make_no_sense_are_left_out() -> None:
    trajectory = await investigate(investigation(model(["?", call("rm_rf")])), INCIDENT, samples=2)
    assert trajectory.samples == (trajectory.finding,)


@pytest.mark.parametrize("spent", ["tokens", "seconds"])
async def test_without_budget_nothing_but_a_finding_is_allowed_and_no_samples_are_drawn(spent: str) -> None:
    scripted = ScriptedModel(lambda _: finalise(), context=100_000)
    run = investigation(scripted)
    if spent == "tokens":
        run.tokens = MAX_TOKENS
    else:
        run.began -= 10_000
    trajectory = await investigate(run, INCIDENT)
    assert (trajectory.ending, trajectory.steps, trajectory.samples) == (Ending.FINALISED, (), ())
    assert len(scripted.requests) == 1


def test_the_vote_takes_what_most_say() -> None:
    usual = Finding("", "The pool.", "Wait.", "db", Responsibility.PLATFORM, ())
    odd = replace(usual, root_cause="The moon.")
    assert vote([odd, usual, usual]) == usual
