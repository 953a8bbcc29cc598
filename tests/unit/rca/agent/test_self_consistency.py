from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.model.language_model import Ending, Finding, ModelRequest, Responsibility
from core.model_calls.metered_model import Limits, MeteredModel
from core.rca.agent.controller import Investigation, investigate, vote
from tests.fakes.investigation import SERVICES, FakeTool, call, finalise
from tests.fakes.language_model import ScriptedModel

REQUEST = ModelRequest(())
INCIDENT = "api answers 503."
MERGED = {
    "tool": "finalize",
    "root_cause": "A batch job exhausts the pool of db.",
    "solution": "Stop the batch job.",
    "service": "db",
    "change": "none",
    "responsibility": "dependency",
    "evidence": ["connection pool exhausted, 40 of 40 in use"],
    "disproof": "The pool has free connections.",
}


def model(samples: Sequence[str], merged: str = "") -> ScriptedModel:
    """Greedy: two looks and a finding; samples at temperature 1, one after the other; then their merge."""
    greedy, drawn = [call(service="api"), call(service="db"), finalise()], list(samples)

    def reply(request: ModelRequest) -> str:
        if "investigated several times" in request.messages[-1].text:
            return merged
        if request.temperature:
            return drawn.pop(0)
        return greedy.pop(0) if greedy else finalise("The disk of db is full.")

    return ScriptedModel(reply, context=100_000)


def investigation(scripted: ScriptedModel, samples: int = 2, **limits: Any) -> Investigation:
    within = replace(Limits(samples=samples), **limits)
    tools = (FakeTool(), FakeTool("read_metrics"))
    return Investigation(MeteredModel(scripted, within), tools, SERVICES, REQUEST, limits=within)


async def test_samples_continue_the_prompt_from_before_the_finding() -> None:
    scripted = model([finalise("A deployment.", "api"), finalise("The pool of db is full.")])
    trajectory = await investigate(investigation(scripted), INCIDENT)
    assert [finding.root_cause for finding in trajectory.samples] == [
        "The pool of db is exhausted.",
        "A deployment.",
        "The pool of db is full.",
    ]
    assert trajectory.finding is not None
    assert "pool" in trajectory.finding.root_cause
    assert trajectory.agreement == pytest.approx(2 / 3)
    samples = [each for each in scripted.requests if each.temperature]
    before = scripted.requests[2]
    assert {each.messages for each in samples} == {before.messages}


async def test_the_model_merges_the_findings_that_name_the_elected_cause_and_no_others() -> None:
    scripted = model([finalise("A deployment.", "api"), finalise("A batch job fills the pool.")], json.dumps(MERGED))
    trajectory = await investigate(investigation(scripted), INCIDENT)
    assert trajectory.finding is not None
    assert trajectory.finding.root_cause == MERGED["root_cause"]
    assert trajectory.finding.disproof == MERGED["disproof"]
    asked = scripted.requests[-1].messages[-1].text
    assert "A batch job fills the pool." in asked
    assert "A deployment." not in asked


@pytest.mark.parametrize(
    "merged",
    [
        "?",
        json.dumps(MERGED | {"service": "api"}),
        json.dumps([1]),
        json.dumps({key: value for key, value in MERGED.items() if key != "root_cause"}),
    ],
)
async def test_a_merge_that_says_something_else_is_not_used(merged: str) -> None:
    trajectory = await investigate(investigation(model([finalise(), finalise("The pool is full.")], merged)), INCIDENT)
    assert trajectory.finding is not None
    assert trajectory.finding.root_cause in {"The pool of db is exhausted.", "The pool is full."}


async def test_a_merge_cannot_add_quotes() -> None:
    invented = json.dumps(MERGED | {"evidence": ["the moon was full that night"]})
    trajectory = await investigate(investigation(model([finalise(), finalise("Full.")], invented)), INCIDENT)
    assert trajectory.finding is not None
    assert trajectory.finding.evidence == ("connection pool exhausted, 40 of 40 in use",)


async def test_a_sample_may_look_further_before_it_reports() -> None:
    trajectory = await investigate(investigation(model([call("read_metrics", service="db"), finalise()])), INCIDENT)
    assert trajectory.samples[1].root_cause == "The disk of db is full."
    assert len(trajectory.steps) == 2


async def test_samples_that_make_no_sense_are_left_out() -> None:
    trajectory = await investigate(investigation(model(["?", call("rm_rf")])), INCIDENT)
    assert trajectory.samples == (trajectory.finding,)


async def test_no_ending_is_drawn_that_could_not_change_the_vote(subtests: pytest.Subtests) -> None:
    same, other = finalise(), finalise("A deployment.", "api")
    for samples, drawn in (
        ([same] * 10, 5),
        ([other, *[same] * 9], 6),
        ([other] * 10, 6),
        ([same, other] * 5, 9),
        (["?"] * 10, 10),
    ):
        with subtests.test(samples=[each[-40:] for each in samples]):
            scripted = model(samples)
            run = investigation(scripted, samples=10)
            trajectory = await investigate(run, INCIDENT)
            assert len([each for each in scripted.requests if each.temperature]) == drawn
            every = vote([finding_in(finalise()), *(finding_in(each) for each in samples if each != "?")])
            assert trajectory.finding is not None
            assert trajectory.finding.service == every.service
            assert run.model.summary.endswith(" s"), "nothing was left out for the budget"


async def test_what_the_budget_leaves_out_of_the_vote_is_said() -> None:
    run = investigation(model([finalise("A deployment.", "api")] * 10), samples=10, calls=6)
    await investigate(run, INCIDENT)
    assert run.model.summary.endswith("; 8 further endings not drawn")
    assert run.model.calls <= 6


def finding_in(reply: str) -> Finding:
    action = json.loads(reply)["action"]
    return Finding(
        "", action["root_cause"], "", action["service"], Responsibility.DEPENDENCY, tuple(action["evidence"])
    )


@pytest.mark.parametrize("limits", [{"tokens": 4}, {"seconds": 1e-9}, {"calls": 1}])
async def test_without_budget_only_a_finding_is_allowed_and_no_samples_are_drawn(limits: dict[str, Any]) -> None:
    scripted = ScriptedModel(lambda _: finalise(), context=100_000)
    run = investigation(scripted, **limits)
    run.model.tokens = 3
    trajectory = await investigate(run, INCIDENT)
    assert (trajectory.ending, trajectory.steps, trajectory.samples) == (Ending.FINALISED, (), ())
    assert len(scripted.requests) == 1


async def test_as_many_samples_are_drawn_as_fit_into_the_tokens_that_are_left() -> None:
    scripted = model([finalise()] * 10, "?")
    probe = investigation(model([]), samples=0)
    await investigate(probe, INCIDENT)
    each = probe.model.tokens / 3
    trajectory = await investigate(investigation(scripted, samples=10, tokens=int(each * 8)), INCIDENT)
    assert 2 <= len(trajectory.samples) - 1 <= 5


def test_the_vote_takes_what_most_name() -> None:
    usual = Finding("", "The pool.", "Wait.", "db", Responsibility.PLATFORM, ())
    odd = replace(usual, root_cause="The moon.", service="api")
    assert vote([odd, usual, usual]) == usual


def test_of_findings_that_name_one_change_the_nearest_to_all_is_taken() -> None:
    usual = Finding("", "C-1 made the pool smaller.", "Revert C-1.", "db", Responsibility.PLATFORM, (), "C-1")
    said = [replace(usual, root_cause="The moon."), usual, replace(usual, service="api")]
    assert vote(said).root_cause == usual.root_cause


def test_a_report_without_evidence_does_not_agree_with_one_that_has_some() -> None:
    found = Finding("", "The pool is full.", "", "db", Responsibility.DEPENDENCY, ("40 of 40 in use",))
    nothing = replace(found, root_cause="Nothing explains it.", evidence=())
    assert not nothing.names_same(found)
    assert vote([nothing, nothing, found]) == nothing
