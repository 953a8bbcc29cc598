from __future__ import annotations

import pytest

from core.ports import ToolParameter
from core.rca.observation_tools import MAX_CALLS, planned_calls
from tests.fakes.investigation import FakeTool

SERVICES = ("shop", "cart", "stock")


def tool(name: str, *parameters: ToolParameter) -> FakeTool:
    return FakeTool(name, parameters=parameters)


def called(*tools: FakeTool, services: tuple[str, ...] = SERVICES) -> list[tuple[str, dict[str, str], str]]:
    return [(call.tool.name, dict(call.arguments), call.service) for call in planned_calls(tools, services)]


def test_a_tool_of_services_is_asked_for_those_around_the_incident_the_nearest_first() -> None:
    pods = tool("pods", ToolParameter("service", "", ("vault", "stock", "shop")))
    assert called(pods) == [("pods", {"service": "shop"}, "shop"), ("pods", {"service": "stock"}, "stock")]


def test_a_free_text_is_filled_where_its_name_says_that_a_service_is_wanted() -> None:
    assert called(tool("pods", ToolParameter("application", "")), services=("shop",)) == [
        ("pods", {"application": "shop"}, "shop")
    ]


@pytest.mark.parametrize(
    "parameter",
    [
        ToolParameter("query", ""),
        ToolParameter("namespace", ""),
        ToolParameter("snapshot", "", snapshot=True),
        ToolParameter("kind", "", tuple("abcdef")),
    ],
)
def test_a_tool_that_wants_to_know_what_nobody_knows_is_not_called(parameter: ToolParameter) -> None:
    assert called(tool("search", parameter, ToolParameter("service", ""))) == []


def test_few_choices_are_all_tried_and_a_tool_without_parameters_is_called_once() -> None:
    kind = ToolParameter("kind", "", ("pods", "events"))
    found = called(tool("get", kind, ToolParameter("service", "")), tool("alerts"), services=("shop",))
    assert found == [
        ("get", {"kind": "pods", "service": "shop"}, "shop"),
        ("get", {"kind": "events", "service": "shop"}, "shop"),
        ("alerts", {}, ""),
    ]


def test_there_are_only_so_many_calls_and_the_far_services_are_left_out() -> None:
    many = tuple(f"service-{number}" for number in range(MAX_CALLS))
    tools = [tool(name, ToolParameter("service", "")) for name in ("pods", "events")]
    found = called(*tools, services=many)
    assert len(found) == MAX_CALLS
    assert {service for _, _, service in found} == set(many[: MAX_CALLS // 2])


def test_a_tool_with_many_parameters_is_not_tried_with_every_combination_of_them() -> None:
    many = tool("search", *(ToolParameter(f"flag{number}", "", tuple("abcd")) for number in range(30)))
    assert len(called(many)) == MAX_CALLS
