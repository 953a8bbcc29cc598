"""A model that says anything at all within the schemas: every investigation ends well, the experts included."""

from __future__ import annotations

import json
import random
from functools import cache, partial

from core.model.language_model import Ending, ModelRequest
from core.model_calls.metered_model import MeteredModel
from core.rca.agent.actions import Snapshots
from core.rca.agent.controller import Investigation
from core.rca.agent.experts import CodeExpert, LogExpert
from core.rca.incident_signals import IncidentSignals, survey
from core.rca.observation_tools import observation_tools
from tests.cases import every_case
from tests.fakes.anything import anything
from tests.fakes.code import FakeCodeReader, definition
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import change, errors, observations, traffic

SEEN = observations(
    [traffic("shop"), errors("shop", "pool request timed out", since=-8), errors("stock", "FATAL disk full", since=-9)],
    changes=[change("C-1", "shop", -9, "Smaller pool")],
)


@cache
def scene() -> IncidentSignals:
    return survey(SEEN)


REQUEST = ModelRequest(())


def said(request: ModelRequest, *, chance: random.Random) -> str:
    assert request.schema is not None
    return json.dumps(anything(request.schema, chance))


@every_case("seed", range(25))
async def test_whatever_is_said_the_investigation_ends_well(seed: int) -> None:
    model = ScriptedModel(partial(said, chance=random.Random(seed)), context=200_000)
    metered, snapshots = MeteredModel(model), Snapshots()
    code = FakeCodeReader([definition("acquire")])
    experts = (CodeExpert(metered, REQUEST, code, snapshots), LogExpert(metered, REQUEST))
    tools = (*observation_tools(SEEN, scene()), *experts)
    run = Investigation(metered, tools, SEEN.services, REQUEST, ("C-1",), snapshots=snapshots, temperature=1.0)
    trajectory = await run.run("shop is slow")
    assert trajectory.ending is Ending.FINALISED
