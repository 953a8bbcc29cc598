"""A model that hangs, lies or talks nonsense about an incident: what people read is no worse than without it, and no later."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from core.model.conversation import PUBLIC, Audience
from core.model.incident import Incident
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model.team import Team
from core.model_calls.metered_model import Limits
from core.ports import LogReader
from handlers.common.ports import Ports, Readers
from handlers.incidents.explain_incident import Show
from handlers.incidents.investigate_incident import explain, triage
from handlers.incidents.triage_incident import WITHOUT_MODEL
from tests.fakes.clock import FakeClock
from tests.fakes.investigation import call, finalise
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.outage import START, change, errors, incident, traffic
from tests.fakes.ports import some_ports
from tests.fakes.tools import FakeChangeReader, FakeLogReader

EVERYBODY = Audience(frozenset({PUBLIC}))
SHORT = 0.05  # seconds after which a model that hangs is given up
TEAMS = (
    Team("sales", "Sales", "## We own\n\nBaskets, tills.\n", frozenset({"till"}), on_call=("Ines",)),
    Team("identity", "Identity", "## We own\n\nTokens, keys.\n", frozenset({"login"}), on_call=("Mira",)),
    Team("stock", "Stock", "## We own\n\nShelves.\n", frozenset({"stock"})),
)
OPEN = incident(service="", title="shelves and keys are odd")  # about which the evidence names nobody
LOGS: LogReader = FakeLogReader([*traffic("shop"), *errors("shop", "request failed", since=-8)])
UNSURE = Readers(
    [LOGS],
    [],
    [FakeChangeReader([change("C-1", "shop", -9, "Rename a helper"), change("C-2", "shop", -10, "Tidy up")])],
    {},
)  # of which the cause cannot be told surely

Work = Callable[[Ports, Show], Awaitable[Incident]]


class Hanging(ScriptedModel):
    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        self.requests.append(request)
        await asyncio.Event().wait()
        raise AssertionError


def looking() -> Callable[[ModelRequest], str]:
    """Return a model that looks first, and then tells what nobody logged."""
    invented = ["A robber entered the vault at noon", "The vault was robbed by 7 robbers"]
    lie = finalise("The vault was robbed.", "shop", change="C-1", solution="Run `rob --back`.", evidence=invented)
    replies = [call(service="shop"), lie]
    return lambda _: replies.pop(0) if len(replies) > 1 else replies[0]


def invented_team(_: ModelRequest) -> str:
    return json.dumps({"reason": "<!channel> see https://evil.example, 99 % sure", "team": "the-night-shift"})


def nonsense(_: ModelRequest) -> str:
    return '{"reason": "'


async def explained(ports: Ports, show: Show) -> Incident:
    return await explain(incident(), EVERYBODY, ports, show=show)


async def triaged(ports: Ports, show: Show) -> Incident:
    return await triage(OPEN, EVERYBODY, ports, show)


async def told(work: Work, model: ScriptedModel | None, readers: Readers) -> tuple[list[Incident], Incident]:
    """Return what was shown before the model was asked, and what stands in the end."""
    at_once: list[Incident] = []

    async def show(found: Incident) -> None:
        if model is not None and not model.requests:
            at_once.append(found)

    examined = await passed(model, writes=True, tools=True) if model else None
    limits = Limits(seconds=SHORT if isinstance(model, Hanging) else 60.0, samples=0)
    ports = some_ports(teams=TEAMS, readers=readers, clock=FakeClock(START), examined=examined, limits=limits)
    return at_once, await work(ports, show)


@pytest.mark.parametrize("model", [Hanging(), ScriptedModel(looking(), context=100_000), ScriptedModel(nonsense)])
async def test_cause_is_told_before_the_model_is_asked_and_stands_where_the_model_is_bad(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, without = await told(explained, None, UNSURE)
    at_once, found = await told(explained, model, UNSURE)
    assert model.requests
    assert without.findings.explanation is not None
    assert without.findings.explanation.cause is not None
    for each in (*at_once[:1], found):
        assert each.findings.explanation is not None
        assert replace(each.findings.explanation, trajectory=None) == without.findings.explanation
    assert len(at_once) == 1
    assert found.findings.explanation is not None
    assert found.findings.explanation.trajectory is not None


@pytest.mark.parametrize("model", [Hanging(), ScriptedModel(invented_team), ScriptedModel(nonsense)])
async def test_owner_is_told_before_the_model_is_asked_and_stands_where_the_model_is_bad(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, without = await told(triaged, None, Readers())
    at_once, found = await told(triaged, model, Readers())
    assert model.requests
    assert without.findings.owner is not None
    (shown,) = [each.findings.owner for each in at_once]
    assert shown is not None
    assert (shown.owner, shown.asked) == (without.findings.owner.owner, without.findings.owner.asked), (
        "before the teams look further"
    )
    assert found.findings.owner == replace(
        without.findings.owner, note=f"{without.findings.owner.note} {WITHOUT_MODEL}".strip()
    )
