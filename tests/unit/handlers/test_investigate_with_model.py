from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest

from core.confidence.calibrator import PROBABLE, badge_for
from core.model.badge import Estimator, PredictionKind, Strength
from core.model.errors import ModelUnavailable
from core.model.findings import Hypothesis, SimilarIncident
from core.model.language_model import Ending, ModelReply, ModelRequest, Responsibility
from core.model_calls.choice import Skill
from core.model_calls.metered_model import Limits
from core.ports import ToolParameter
from core.rca.agent.actions import Snapshots
from core.rca.cause_candidates import FINDING_VERSION
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.observation_tools import observation_tools
from handlers.incidents.investigate_with_model import (
    ClaimedExplanation,
    action_set,
    asks_model,
    by_evidence,
    investigate_with_model,
)
from handlers.incidents.observe_incident import Readers
from tests.fakes.code import FakeCodeReader, definition
from tests.fakes.investigation import FakeTool, call, finalise, verdicts
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import change, errors, observations, traffic
from tests.fakes.tools import FakeToolbox

FULL = "FATAL no space left on device"
SEEN = observations(
    [traffic("shop"), errors("shop", "stock does not answer", since=-5), errors("stock", FULL, since=-6, per_minute=4)],
    changes=[change("C-1", "edge", -14)],
)
BEFORE = by_evidence(*explain(SEEN))
WITH_CODE = Readers((), (), (), {}, code=[FakeCodeReader([definition("acquire")])])
LOOK = (call(service="shop"), call(service="stock"))


async def silent(_: str) -> None:
    """Nobody looks on."""


TOOLS = Skill(0.8, tools=0.8, judges=0.8)


def scripted(*replies: str | Exception) -> ScriptedModel:
    left = list(replies)

    def reply(request: ModelRequest) -> str:
        if judged := verdicts(request):
            return judged
        said = left.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    return ScriptedModel(reply, context=100_000, name="local-8b")


async def looked_into(
    replies: Sequence[str | Exception] | ScriptedModel,
    told: list[str] | None = None,
    *,
    before: ClaimedExplanation = BEFORE,
    skill: Skill = TOOLS,
    limits: Limits | None = None,
    readers: Readers = WITH_CODE,
) -> ClaimedExplanation:
    async def progress(line: str) -> None:
        if told is not None:
            told.append(line)

    return await investigate_with_model(
        before,
        SEEN,
        survey(SEEN),
        model=replies if isinstance(replies, ScriptedModel) else scripted(*replies),
        skill=skill,
        progress=progress,
        limits=limits or Limits(samples=0),
        readers=readers,
    )


def first(found: ClaimedExplanation) -> Hypothesis:
    assert found.explanation.cause is not None
    return found.explanation.cause


def ending(found: ClaimedExplanation) -> Ending:
    assert found.explanation.trajectory is not None
    return found.explanation.trajectory.ending


async def test_a_finding_with_evidence_that_stands_there_supports_the_cause_and_says_what_to_do() -> None:
    found = await looked_into([*LOOK, finalise("The disk is full.", "stock", evidence=[FULL], solution="Free space.")])
    assert first(found) == replace(
        first(BEFORE), solution="Free space.", evidence=first(found).evidence, responsibility=Responsibility.PLATFORM
    )
    assert FULL in [each.quote.partition(" request=")[0] for each in first(found).evidence]
    assert (found.first, found.second, found.explanation.engine) == (BEFORE.first, None, "evidence")
    assert found.explanation.trajectory is not None
    steps = found.explanation.trajectory.steps
    assert [step.action.tool for step in steps if step.action] == ["read_logs", "read_logs"]


async def test_where_the_evidence_has_no_cause_the_finding_is_the_cause_with_a_claim_of_its_own() -> None:
    nothing = ClaimedExplanation(replace(BEFORE.explanation, hypotheses=()), None)
    found = await looked_into([*LOOK, finalise("The disk is full.", "stock", evidence=[FULL])], before=nothing)
    assert (first(found).cause, first(found).found_by, found.explanation.engine) == (
        "The disk is full.",
        "local-8b",
        "local-8b",
    )
    assert found.first is not None
    assert found.first[0] == Estimator(PredictionKind.CAUSE, "local-8b", FINDING_VERSION)
    assert badge_for(found.first[1], None, scale=PROBABLE).strength is not Strength.STRONG


async def test_where_the_engines_disagree_both_are_kept_with_their_own_claims() -> None:
    found = await looked_into([*LOOK, finalise("The cart waits.", "cart", evidence=["stock does not answer"])])
    assert {each.service for each in found.explanation.hypotheses} >= {"stock", "cart"}
    assert found.first is not None
    assert found.second is not None
    assert {found.first[0].engine, found.second[0].engine} == {"evidence", "local-8b"}
    assert BEFORE.first in (found.first, found.second)


@pytest.mark.parametrize(
    "invented",
    [
        finalise("Aliens.", "stock", evidence=["The vault was opened by aliens at midnight"]),
        finalise("Error E7131 of pool-17 in 413 s.", "stock", evidence=[FULL]),
        finalise("Nothing explains it.", "stock", evidence=[]),
    ],
)
async def test_a_finding_that_nothing_read_shows_changes_nothing_but_its_steps_are_kept(invented: str) -> None:
    found = await looked_into([*LOOK, invented])
    assert (found.explanation.hypotheses, found.first) == (BEFORE.explanation.hypotheses, BEFORE.first)
    assert found.explanation.trajectory is not None
    assert found.explanation.trajectory.finding is not None


async def test_a_command_that_was_read_nowhere_is_not_proposed() -> None:
    said = finalise("Full.", "stock", evidence=[FULL], solution="Run `opsctl repair --all`. Free some space.")
    assert first(await looked_into([*LOOK, said])).solution == "Free some space."


async def test_a_number_within_a_setting_was_read() -> None:
    seen = observations([traffic("shop"), errors("stock", "no connection (total=4, active=4)", since=-6)])
    said = [*LOOK, finalise("All 4 connections are in use.", "stock", evidence=["no connection (total=4, active=4)"])]
    found = await investigate_with_model(
        ClaimedExplanation(replace(BEFORE.explanation, hypotheses=()), None),
        seen,
        survey(seen),
        model=scripted(*said),
        skill=TOOLS,
        progress=silent,
        limits=Limits(samples=0),
    )
    assert first(found).cause == "All 4 connections are in use."


async def test_a_past_incident_is_no_evidence_of_this_one() -> None:
    past = SimilarIncident("OLD-1", "shop slow", "sales", "A certificate of the vault had expired", "", 0.9)
    seen = replace(SEEN, similar=(past,))
    said = [call("past_incidents"), *LOOK, finalise("Expired.", "stock", evidence=[past.root_cause])]
    found = await investigate_with_model(
        BEFORE, seen, survey(seen), model=scripted(*said), skill=TOOLS, progress=silent, limits=Limits(samples=0)
    )
    assert found.explanation.hypotheses == BEFORE.explanation.hypotheses


@pytest.mark.parametrize(
    ("replies", "expected"), [((ModelUnavailable("down"),), Ending.MODEL_UNAVAILABLE), (("?",) * 20, Ending.FAILED)]
)
async def test_a_model_that_fails_leaves_the_evidence_engine_s_explanation(
    replies: tuple[str | Exception, ...], expected: Ending
) -> None:
    found = await looked_into(replies)
    assert (found.explanation.hypotheses, found.first) == (BEFORE.explanation.hypotheses, BEFORE.first)
    assert ending(found) is expected


async def test_every_step_is_told() -> None:
    told: list[str] = []
    await looked_into([*LOOK, finalise(service="stock", evidence=[FULL])], told)
    steps = [line.partition(" · ")[0] for line in told]
    assert steps[:2] == ["read_logs(shop)", "read_logs(stock)"]
    assert "of 60,000 tokens" in told[0]
    assert "of 300 s" in told[0]


async def test_the_log_expert_reads_what_was_seen_and_is_no_source_of_evidence_itself() -> None:
    invented = "The stock room is flooded by the river."
    logs = next(tool for tool in observation_tools(SEEN, survey(SEEN)) if tool.name == "read_logs")
    key = Snapshots().keep(await logs.call({"service": "stock"}))
    said = [*LOOK, call("analyse_log", snapshot=key), finalise("A flood.", "stock", evidence=[invented])]

    def reply(request: ModelRequest) -> str:
        if judged := verdicts(request):
            return judged
        asked = request.messages[-1].text
        if "was read part by part" in asked:
            return json.dumps({"summary": invented, "interpretations": [1]})
        if "one part of the log" in asked:
            return json.dumps({"interpretations": [{"meaning": "The disk is full.", "evidence": FULL}]})
        return said.pop(0)

    found = await looked_into(ScriptedModel(reply, context=100_000, name="local-8b"))
    assert found.explanation.trajectory is not None
    step = found.explanation.trajectory.steps[-1]
    assert not step.fault
    assert FULL in step.shown
    assert invented in step.shown
    assert found.explanation.hypotheses == BEFORE.explanation.hypotheses


async def test_code_that_the_expert_read_is_evidence() -> None:
    line = "raise PoolError('no connection within 30 s')"
    readers = Readers(code=[FakeCodeReader([definition("acquire", text=f"def acquire():\n    {line}")])])
    said = [*LOOK, call("analyse_code", symbol="acquire"), finalise("The pool is empty.", "cart", evidence=[line])]

    def reply(request: ModelRequest) -> str:
        if judged := verdicts(request):
            return judged
        asked = request.messages[-1].text
        if "was read definition by definition" in asked:
            return json.dumps({"summary": "It gives up after 30 s."})
        if "You read the source code" in asked:
            return json.dumps({"analysis": "It waits.", "read_next": ["socket.create"]})
        return said.pop(0)

    found = await looked_into(ScriptedModel(reply, context=100_000, name="local-8b"), readers=readers)
    quotes = [(each.source, each.quote) for one in found.explanation.hypotheses for each in one.evidence]
    assert ("code of shop, shop/pool.py", line) in quotes


async def test_a_service_that_the_model_blames_with_evidence_is_not_ruled_out_any_more() -> None:
    ruled_out = ("cart: the evidence is weak.", "vault: its trouble began after the first sign.")
    before = replace(BEFORE, explanation=replace(BEFORE.explanation, ruled_out=ruled_out))
    replies = [*LOOK, finalise("The cart waits.", "cart", evidence=["stock does not answer"])]
    found = await looked_into(replies, before=before)
    assert "cart" in [each.service for each in found.explanation.hypotheses]
    assert found.explanation.ruled_out == ruled_out[1:]


async def test_a_change_that_the_model_blames_is_not_ruled_out_or_unchecked_any_more() -> None:
    lines = (
        "commit 1a2b3c (deploy C-1) of edge at 09:20 UTC (Tidy up): too early.",
        "commit C-10 of cart at 09:20 UTC (As C-1 was): too early.",
    )
    before = replace(BEFORE, explanation=replace(BEFORE.explanation, ruled_out=lines, unchecked=lines))
    replies = [*LOOK, finalise("The cart was changed.", "cart", change="C-1", evidence=["stock does not answer"])]
    found = (await looked_into(replies, before=before)).explanation
    assert (found.ruled_out, found.unchecked) == (lines[1:], lines[1:])


async def test_a_finding_is_not_lost_when_the_time_is_up_while_more_are_drawn() -> None:
    class StuckInSamples(ScriptedModel):
        async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
            await asyncio.Event().wait()
            raise AssertionError

    said = [*LOOK, finalise("The disk is full.", "stock", evidence=[FULL])]
    model = StuckInSamples(lambda request: verdicts(request) or said.pop(0), context=100_000, name="local-8b")
    found = await looked_into(model, limits=Limits(seconds=0.3))
    assert first(found).solution == "Stop the batch job."
    assert ending(found) is Ending.FINALISED


async def test_no_samples_are_drawn_from_a_server_that_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = [*LOOK, finalise("The disk is full.", "stock", evidence=[FULL])]
    now = 0.0

    def reply(request: ModelRequest) -> str:
        nonlocal now
        now += 40.0
        return verdicts(request) or replies.pop(0)

    monkeypatch.setattr("core.model_calls.metered_model.time", SimpleNamespace(monotonic=lambda: now))
    model = ScriptedModel(reply, context=100_000, name="local-8b")
    found = await looked_into(model, limits=Limits(seconds=180.0, samples=10))
    assert found.explanation.trajectory is not None
    assert (found.explanation.trajectory.samples, len(model.requests)) == ((), 4)  # two calls, the finding, its judge


def test_only_a_model_that_can_use_tools_is_asked() -> None:
    unsure = replace(BEFORE, first=None)
    assert asks_model(Skill(0.8, tools=0.8), unsure)
    assert not asks_model(Skill(0.8, writes=0.8, always=True), unsure)


async def test_every_reader_is_an_action() -> None:
    box = FakeToolbox("k8s", [FakeTool("describe_pods", parameters=(ToolParameter("service", "", ("shop",)),))])
    tools, gaps = await action_set(SEEN, survey(SEEN), replace(WITH_CODE, toolboxes=[box]))
    assert gaps == ()
    assert {tool.name for tool in tools} >= {
        "read_logs",
        "read_metrics",
        "list_dependencies",
        "list_changes",
        "past_incidents",
        "describe_pods",
    }
