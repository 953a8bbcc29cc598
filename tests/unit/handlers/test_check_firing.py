"""What monitoring systems say of an incident: whether it is silenced, and whether anything fires."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.model.errors import ToolUnavailable
from core.model.incident import Incident, Stage
from core.model.silences import Matcher, Silence
from core.ports import AlertState
from handlers.incidents.investigate_incident import reason_to_stop
from tests.samples import START
from tests.unit.handlers.arrangement import HOUR, World, world

__all__ = ["world"]  # the fixture


class Monitor:
    """Implements `core.ports.AlertMonitor`."""

    def __init__(
        self, *, fires: bool | None = None, reason: str = "", silences: Sequence[Silence] = (), down: bool = False
    ) -> None:
        self.name = "Alertmanager"
        self._state = AlertState(fires, reason)
        self._silences = list(silences)
        self._down = down

    async def firing(self, incident: Incident) -> AlertState:
        if self._down:
            raise ToolUnavailable("It is down.")
        return self._state

    async def silences(self) -> list[Silence]:
        if self._down:
            raise ToolUnavailable("It is down.")
        return self._silences


async def test_silences_of_a_monitoring_system_count_and_one_that_is_down_silences_nothing(world: World) -> None:
    silence = Silence("s1", (Matcher("service", frozenset({"db"})),), START - HOUR, START + HOUR, by="Alertmanager")
    ports = world.ports(monitors=(Monitor(down=True), Monitor(silences=[silence])))
    assert (await world.shows(await world.opens("db"), ports)).silenced is not None
    ports = world.ports(monitors=(Monitor(down=True),))
    assert (await world.shows(await world.opens("api"), ports)).silenced is None


@pytest.mark.parametrize(
    ("monitors", "expected"),
    [
        ([], False),
        ([Monitor(fires=None), Monitor(down=True)], False),
        ([Monitor(fires=False)], True),
        ([Monitor(fires=False), Monitor(fires=True)], False),
        ([Monitor(fires=False), Monitor(fires=None)], True),
        ([Monitor(fires=False), Monitor(fires=None, reason="the rule is pending")], False),
        ([Monitor(fires=None, reason="the rule was not evaluated")], False),
        ([Monitor(fires=False), Monitor(down=True)], False),
    ],
)
async def test_a_long_analysis_is_spared_where_a_system_says_that_nothing_fires_and_none_doubts_it(
    world: World, monitors: list[Monitor], *, expected: bool
) -> None:
    incident = await world.shows(await world.opens("db"))
    assert bool(await reason_to_stop(incident, monitors)) is expected


async def test_a_resolved_incident_needs_no_long_analysis(world: World) -> None:
    await world.opens("db")
    await world.resolves("db")
    assert "resolved" in await reason_to_stop(world.store.incidents.by_id["db"], [Monitor(fires=True)])
    assert world.store.incidents.by_id["db"].stage is Stage.TRIAGING
