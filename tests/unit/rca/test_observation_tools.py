from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from core.model.findings import SimilarIncident
from core.ports import Tool
from core.rca.incident_signals import survey
from core.rca.observation_tools import EVERY_SERVICE, observation_tools
from tests.fakes.outage import change, errors, gauge, observations, traffic

SEEN = observations(
    [traffic("shop"), errors("shop", "pool request timed out", since=-10)],
    [gauge("shop", "shop_latency_seconds", lambda offset: 0.4 if offset < -10 else 3.0)],
    changes=[change("C-1", "shop", -11, "Smaller pool", "config", "from 40\nto 4"), change("C-2", "edge", -14)],
    similar=[SimilarIncident("INC-9", "Shop slow", "shop", "The pool was too small", "Made it larger", 0.8)],
)


@cache
def tools() -> dict[str, Tool]:
    return {tool.name: tool for tool in observation_tools(SEEN, survey(SEEN))}


async def test_logs_are_listed_without_what_is_below_a_warning_and_each_message_once() -> None:
    lines = (await tools()["read_logs"].call({"service": "shop"})).splitlines()
    assert len(lines) == 2
    assert "120 times, ERROR: pool request timed out" in lines[0]
    assert "WARN: slow query" in lines[1]


@pytest.mark.parametrize("name", ["read_logs", "read_metrics"])
async def test_a_quiet_service_is_said_to_be_quiet(name: str) -> None:
    assert "cart" in tools()[name].parameters[0].choices
    assert (await tools()[name].call({"service": "cart"})).startswith("No")


async def test_metrics_say_what_moved_and_since_when() -> None:
    assert "shop_latency_seconds" in await tools()["read_metrics"].call({"service": "shop"})


async def test_changes_are_listed_latest_first_on_one_line_each() -> None:
    lines = (await tools()["list_changes"].call({"service": EVERY_SERVICE})).splitlines()
    assert ["C-1" in lines[0], "C-2" in lines[1], len(lines)] == [True, True, 2]
    assert "from 40 to 4" in lines[0]
    assert "C-2" not in await tools()["list_changes"].call({"service": "shop"})


async def test_the_graph_is_told_in_both_directions() -> None:
    said = await tools()["list_dependencies"].call({"service": "shop"})
    assert said == "shop calls cart, login. It is called by edge."


async def test_past_incidents_are_told_with_their_causes() -> None:
    assert "INC-9 (80% alike): Shop slow. Cause: The pool was too small" in await tools()["past_incidents"].call({})


def test_where_no_service_is_known_only_what_needs_none_is_offered() -> None:
    unknown = replace(SEEN, services=())
    assert [tool.name for tool in observation_tools(unknown, survey(unknown))] == ["list_changes", "past_incidents"]
