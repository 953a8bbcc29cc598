from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from core.model.errors import ModelUnavailable
from core.model.incident import Explanation
from core.model.language_model import ModelReply, ModelRequest
from core.model.trajectory import Ending, Responsibility
from core.rca.actions import Snapshots
from core.rca.explain import explain
from core.rca.incident_signals import survey
from core.rca.observation_tools import observation_tools
from handlers.incidents.investigate_with_model import investigate_with_model
from handlers.incidents.observe_incident import Readers
from tests.fakes.code import FakeCodeReader, definition
from tests.fakes.investigation import call, finalise
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import change, errors, observations, traffic

FULL = "FATAL no space left on device"
SEEN = observations(
    [traffic("shop"), errors("shop", "stock does not answer", since=-5), errors("stock", FULL, since=-6, per_minute=4)],
    changes=[change("C-1", "edge", -14)],
)
BEFORE, _ = explain(SEEN)
WITH_CODE = Readers((), (), (), {}, code=[FakeCodeReader([definition("acquire")])])
LOOK = (call(service="shop"), call(service="stock"))


async def silent(_: str) -> None:
    """Nobody looks on."""


PORTS: dict[str, Any] = {"right": 1.0, "progress": silent, "readers": WITH_CODE}


def scripted(*replies: str | Exception) -> ScriptedModel:
    left = list(replies)

    def reply(_: ModelRequest) -> str:
        said = left.pop(0)
        if isinstance(said, Exception):
            raise said
        return said

    return ScriptedModel(reply, context=100_000, name="local-8b")


async def looked_into(replies: Sequence[str | Exception], told: list[str] | None = None) -> Explanation:
    async def progress(line: str) -> None:
        if told is not None:
            told.append(line)

    return await investigate_with_model(
        BEFORE,
        SEEN,
        survey(SEEN),
        model=scripted(*replies),
        right=1.0,
        progress=progress,
        samples=0,
        readers=WITH_CODE,
    )


async def test_a_finding_with_evidence_that_stands_there_supports_the_cause() -> None:
    found = await looked_into([*LOOK, finalise("The disk is full.", "stock", evidence=[FULL])])
    assert (found.cause and found.cause.service, found.engine) == ("stock", "local-8b")
    assert found.cause is not None
    assert BEFORE.cause is not None
    assert found.cause.score > BEFORE.cause.score
    assert found.cause.responsibility is Responsibility.DEPENDENCY
    assert found.trajectory is not None
    assert [step.action.tool for step in found.trajectory.steps if step.action] == ["read_logs", "read_logs"]


async def test_a_finding_with_invented_evidence_changes_nothing_but_is_kept() -> None:
    invented = finalise("Aliens.", "vault", evidence=["The vault was opened by aliens at midnight"])
    found = await looked_into([*LOOK, invented])
    assert (found.hypotheses, found.engine) == (BEFORE.hypotheses, "evidence")
    assert found.trajectory is not None
    assert found.trajectory.finding is not None


@pytest.mark.parametrize(
    ("replies", "ending"), [((ModelUnavailable("down"),), Ending.MODEL_UNAVAILABLE), (("?",) * 20, Ending.FAILED)]
)
async def test_a_model_that_fails_leaves_the_evidence_engine_s_explanation(
    replies: tuple[str | Exception, ...], ending: Ending
) -> None:
    found = await looked_into(replies)
    assert (found.hypotheses, found.engine) == (BEFORE.hypotheses, "evidence")
    assert found.trajectory is not None
    assert found.trajectory.ending is ending


async def test_every_step_is_told() -> None:
    told: list[str] = []
    await looked_into([*LOOK, finalise(service="stock", evidence=[FULL])], told)
    steps = [line.partition(" · ")[0] for line in told]
    assert steps[:2] == ["read_logs(shop)", "read_logs(stock)"]
    assert "of 24,000 tokens" in told[0]
    assert "of 180 s" in told[0]


async def test_the_log_expert_quotes_what_complains_in_an_observation() -> None:
    logs = next(tool for tool in observation_tools(SEEN, survey(SEEN)) if tool.name == "read_logs")
    key = Snapshots().keep(await logs.call({"service": "stock"}))
    found = await looked_into(
        [*LOOK, call("read_for_trouble", snapshot=key), finalise("Full.", "stock", evidence=[FULL])]
    )
    assert found.trajectory is not None
    step = found.trajectory.steps[-1]
    assert not step.fault
    assert FULL in step.shown


async def test_a_service_that_the_model_blames_with_evidence_is_not_ruled_out_any_more() -> None:
    ruled_out = ("cart: the evidence is weak.", "vault: its trouble began after the first sign.")
    before = replace(BEFORE, ruled_out=ruled_out)
    replies = [*LOOK, finalise("The cart waits.", "cart", evidence=["stock does not answer"])]
    found = await investigate_with_model(before, SEEN, survey(SEEN), model=scripted(*replies), samples=0, **PORTS)
    assert "cart" in [each.service for each in found.hypotheses]
    assert found.ruled_out == ruled_out[1:]


async def test_a_finding_is_not_lost_when_the_time_is_up_while_more_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    class StuckInSamples(ScriptedModel):
        async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
            await asyncio.Event().wait()
            raise AssertionError

    monkeypatch.setattr("handlers.incidents.investigate_with_model.MAX_SECONDS", 0.3)
    said = [*LOOK, finalise("The disk is full.", "stock", evidence=[FULL])]
    model = StuckInSamples(lambda _: said.pop(0), context=100_000, name="local-8b")
    found = await investigate_with_model(BEFORE, SEEN, survey(SEEN), model=model, samples=3, **PORTS)
    assert found.engine == "local-8b"
    assert found.trajectory is not None
    assert found.trajectory.ending is Ending.FINALISED


async def test_no_samples_are_drawn_from_a_server_that_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.rca.controller.SLOW", -1.0)
    model = scripted(*LOOK, finalise("The disk is full.", "stock", evidence=[FULL]))
    found = await investigate_with_model(BEFORE, SEEN, survey(SEEN), model=model, samples=3, **PORTS)
    assert found.trajectory is not None
    assert (found.trajectory.samples, len(model.requests)) == ((), 3)


async def test_where_no_tool_can_show_more_the_model_only_chooses() -> None:
    model = ScriptedModel(context=100_000, name="local-8b")
    ports: dict[str, Any] = PORTS | {"readers": Readers((), (), (), {})}
    found = await investigate_with_model(BEFORE, SEEN, survey(SEEN), model=model, **ports)
    assert found.trajectory is None
    assert len(model.requests) == (len(BEFORE.hypotheses) > 1)
