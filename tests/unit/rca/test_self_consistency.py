from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.model.language_model import ModelRequest
from core.model.trajectory import Finding, Responsibility
from core.rca.controller import Investigation, investigate, vote
from tests.fakes.investigation import SERVICES, FakeTool, call, finalise
from tests.fakes.language_model import ScriptedModel

REQUEST = ModelRequest(())
INCIDENT = "api answers 503."


def embed(texts: Sequence[str]) -> NDArray[np.float64]:
    """Texts that speak of the pool point one way, all others another way of their own."""
    rows = [[1.0, 0.0] if "pool" in text else [0.0, 1.0] for text in texts]
    return np.array(rows)


def merged(root_cause: str) -> str:
    action = json.loads(finalise(root_cause))["action"]
    return json.dumps({name: value for name, value in action.items() if name != "tool"})


def model(samples: Sequence[str], aggregate: str) -> ScriptedModel:
    """Greedy: two looks and a finding; samples at temperature 1, one after the other; then the aggregation."""
    greedy, drawn = [call(service="api"), call(service="db"), finalise()], list(samples)

    def reply(request: ModelRequest) -> str:
        if "Several investigators" in request.messages[-1].text:
            return aggregate
        if request.temperature:
            return drawn.pop(0)
        return greedy.pop(0) if greedy else finalise("The disk of db is full.")

    return ScriptedModel(reply, context=100_000)


def investigation(scripted: ScriptedModel) -> Investigation:
    return Investigation(scripted, (FakeTool(), FakeTool("read_metrics")), SERVICES, REQUEST)


async def test_the_findings_of_all_samples_are_merged_by_the_model() -> None:
    scripted = model([finalise("The pool is full."), finalise("Too many connections.")], merged("The pool, by all."))
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=2, embed=embed)
    assert [finding.root_cause for finding in trajectory.samples] == [
        "The pool of db is exhausted.",
        "The pool is full.",
        "Too many connections.",
    ]
    assert trajectory.finding is not None
    assert trajectory.finding.root_cause == "The pool, by all."


async def test_samples_continue_the_prompt_from_before_the_finding() -> None:
    scripted = model([finalise(), finalise()], merged("x"))
    await investigate(investigation(scripted), INCIDENT, samples=2, embed=embed)
    greedy_last = next(each for each in reversed(scripted.requests) if not each.temperature and len(each.messages) > 2)
    sampled = [each for each in scripted.requests if each.temperature]
    assert {each.messages for each in sampled} == {greedy_last.messages}


async def test_without_a_valid_merger_the_finding_nearest_to_all_is_taken() -> None:
    scripted = model([finalise("The pool is full."), finalise("A deployment.")], "no JSON")
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=2, embed=embed)
    assert trajectory.finding is not None
    assert "pool" in trajectory.finding.root_cause


async def test_a_sample_may_look_further_before_it_reports() -> None:
    scripted = model([call("read_metrics", service="db")], merged("x"))
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=1, embed=embed)
    assert trajectory.samples[1].root_cause == "The disk of db is full."
    assert len(trajectory.steps) == 2


async def test_step_wise_only_samples_that_report_at_once_count() -> None:
    scripted = model([call("read_metrics", service="db"), finalise("The pool is full.")], merged("x"))
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=2, embed=embed, onward=False)
    assert len(trajectory.samples) == 2


async def test_samples_that_make_no_sense_are_left_out() -> None:
    scripted = model(["?", call("rm_rf")], merged("x"))
    trajectory = await investigate(investigation(scripted), INCIDENT, samples=2, embed=embed)
    assert len(trajectory.samples) == 1
    assert trajectory.finding == trajectory.samples[0]


def test_the_vote_takes_what_most_say() -> None:
    usual = Finding("", "The pool.", "Wait.", "db", Responsibility.PLATFORM, ())
    odd = replace(usual, root_cause="The moon.")
    assert vote([odd, usual, usual], embed) == usual
