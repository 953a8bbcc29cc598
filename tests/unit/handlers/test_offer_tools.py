from __future__ import annotations

from core.model.findings import Gap, GapReason
from handlers.incidents.observe_incident import offer_tools
from tests.fakes.investigation import FakeTool
from tests.fakes.outage import START, observations
from tests.fakes.tools import FakeToolbox


async def test_what_every_toolbox_has_is_offered() -> None:
    builds, pods = FakeTool("build_runs"), FakeTool("pods")
    boxes = [FakeToolbox("ci", [builds]), FakeToolbox("k8s", [pods])]
    tools, gaps = await offer_tools(boxes, observations())
    assert [tool.name for tool in tools] == ["build_runs", "pods"]
    assert gaps == ()


async def test_a_toolbox_that_is_down_is_named_and_the_others_are_offered() -> None:
    boxes = [FakeToolbox("ci", fails=True), FakeToolbox("k8s", [FakeTool("pods")])]
    tools, gaps = await offer_tools(boxes, observations())
    assert [tool.name for tool in tools] == ["pods"]
    assert gaps == (Gap("ci", GapReason.FAILED, "It is down"),)


async def test_of_two_tools_with_one_name_the_first_is_offered() -> None:
    first, second = FakeTool("pods"), FakeTool("pods")
    tools, _ = await offer_tools([FakeToolbox("a", [first]), FakeToolbox("b", [second])], observations())
    assert tools == (first,)


async def test_they_are_told_the_services_and_the_time_of_the_incident() -> None:
    box, seen = FakeToolbox("ci"), observations()
    await offer_tools([box], seen)
    ((services, window),) = box.asked
    assert services == seen.services
    assert window.start < START < window.end == seen.until
