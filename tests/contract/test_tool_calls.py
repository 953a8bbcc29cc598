"""An investigation at a server with native calls of tools: the same trajectory as in the JSON form, whatever the server does.

The events are those of vLLM's and llama-server's chats with `tools`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from adapters.llama.server import LlamaServer
from adapters.tool_calls.server import ToolCallingServer
from core.model.errors import PromptTooLong
from core.model.language_model import ChatMessage, Ending, ModelRequest, Role, Trajectory
from core.model_calls.metered_model import MeteredModel
from core.rca.agent.controller import Investigation
from tests.fakes.general_servers import FakeVllmServer
from tests.fakes.investigation import SERVICES, FakeTool, finalise
from tests.fakes.llama_server import FakeLlamaServer, event, served

INCIDENT = "checkout fails"
FINDING = json.loads(finalise())["action"]
Turn = list[tuple[str, str]] | str
"""The calls of one reply, each with its arguments, or text alone."""


FAILS = "fails"
_FAILURE = {"error": {"code": 500, "message": "The output does not match the expected format", "type": "server_error"}}


def look(service: str, thought: str = "Let me look.") -> tuple[str, str]:
    return "read_logs", json.dumps({"thought": thought, "service": service})


FINAL: Turn = [
    ("finalize", json.dumps({**{k: v for k, v in FINDING.items() if k != "tool"}, "thought": "That is it."}))
]


@dataclass
class FakeToolServer(FakeVllmServer):
    """It calls tools where a chat has some, and else writes the same step as JSON. `turns` are its replies, in order."""

    turns: list[Turn] = field(default_factory=list[Turn])
    said: str = ""  # beside each call
    whole: bool = False  # a call is one piece without a number, and its arguments are an object

    def _events(self, body: dict[str, Any], words: int) -> list[dict[str, Any]]:
        turn = self.turns.pop(0)
        if "tools" not in body or isinstance(turn, str):
            self.script = lambda _: turn if isinstance(turn, str) else _as_json(*turn[0])
            return [_FAILURE] if turn == FAILS else super()._events(body, words)
        events = [event(0, {"role": "assistant", "content": self.said or None})]
        for index, (name, arguments) in enumerate(turn):
            if self.whole:
                called = {"name": name, "arguments": json.loads(arguments)}
                events.append(event(0, {"tool_calls": [{"index": None, "type": "function", "function": called}]}))
                continue
            begun = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
            events.append(event(0, {"tool_calls": [begun]}))
            events += [
                event(0, {"tool_calls": [{"index": index, "function": {"arguments": part}}]})
                for part in (arguments[:7], arguments[7:])
            ]
        return [*events, event(0, {}, finish="tool_calls"), *self._ending(words, 5)]


def _as_json(name: str, arguments: str) -> str:
    try:
        given = json.loads(arguments)
    except ValueError:
        return f'{{"thought": "", "action": {{"tool": "{name}", {arguments}'
    return json.dumps({"thought": given.pop("thought", ""), "action": {"tool": name, **given}})


@dataclass
class Ran:
    trajectory: Trajectory
    bodies: list[dict[str, Any]]
    logs: FakeTool


async def ran(kind: Callable[..., LlamaServer], turns: list[Turn], **fake_fields: Any) -> Ran:
    tool = FakeTool()
    server = FakeToolServer(context=32_768, turns=list(turns), **fake_fields)
    async with served(server) as fake, aiohttp.ClientSession() as session:
        run = Investigation(MeteredModel(kind(fake.url, session)), (tool,), SERVICES, ModelRequest(()))
        return Ran(await run.run(INCIDENT), fake.chats, tool)


@pytest.mark.parametrize("kind", [ToolCallingServer, LlamaServer])
async def test_both_forms_lead_to_the_same_calls_and_finding(kind: type[LlamaServer]) -> None:
    found = await ran(kind, [[look("api")], [look("db")], FINAL])
    assert found.trajectory.ending is Ending.FINALISED
    assert found.trajectory.finding is not None
    assert found.trajectory.finding.root_cause == FINDING["root_cause"]
    assert found.trajectory.finding.thought == "That is it."
    assert [step.action and step.action.thought for step in found.trajectory.steps] == ["Let me look."] * 2
    assert found.logs.calls == [{"service": "api"}, {"service": "db"}]
    assert len(found.bodies) == 3


async def test_earlier_steps_are_calls_with_their_results_and_only_open_calls_are_offered() -> None:
    first, second, last = (await ran(ToolCallingServer, [[look("api")], [look("db")], FINAL])).bodies
    assert "response_format" not in first
    assert [each["function"]["name"] for each in first["tools"]] == ["read_logs"]
    (tool,) = second["tools"]
    assert tool["function"]["parameters"]["properties"]["service"]["enum"] == ["db"]
    assert [each["function"]["name"] for each in last["tools"]] == ["finalize"]
    called, result = last["messages"][2:4]
    assert json.loads(called["tool_calls"][0]["function"]["arguments"]) == {"service": "api"}
    assert (result["role"], result["tool_call_id"]) == ("tool", called["tool_calls"][0]["id"])
    assert "connection pool exhausted" in result["content"]


WRONG: dict[str, tuple[list[tuple[str, str]], str]] = {
    "malformed arguments": ([("read_logs", '{"service": "ap')], "read_logs: "),
    "arguments that are no object": ([("read_logs", '["api"]')], "read_logs: "),
    "an unknown tool": ([("rm_rf", '{"service": "api"}')], "That tool cannot be called now"),
    "no name": ([("", '{"service": "api"}')], "That tool cannot be called now"),
    "an early end": (FINAL, "That tool cannot be called now"),
    "a service that there is not": ([look("vault")], "read_logs: "),
}


async def test_a_wrong_call_is_answered_with_advice_and_costs_one_call() -> None:
    for name, (wrong, advice) in WRONG.items():
        found = await ran(ToolCallingServer, [wrong, [look("api")], [look("db")], FINAL])
        assert advice in found.trajectory.steps[0].fault, name
        assert found.trajectory.ending is Ending.FINALISED, name
        assert len(found.bodies) == 4, name
        assert all("tools" in body for body in found.bodies), name


async def test_of_two_calls_at_once_the_first_counts() -> None:
    found = await ran(ToolCallingServer, [[look("api"), look("db")], [look("db")], FINAL])
    assert found.logs.calls == [{"service": "api"}, {"service": "db"}]
    assert found.trajectory.ending is Ending.FINALISED


async def test_a_call_in_one_piece_with_an_object_is_the_same() -> None:
    found = await ran(ToolCallingServer, [[look("api")], [look("db")], FINAL], whole=True)
    assert found.logs.calls == [{"service": "api"}, {"service": "db"}]
    assert found.trajectory.ending is Ending.FINALISED


async def test_what_is_said_beside_a_call_is_its_thought() -> None:
    bare = [("read_logs", json.dumps({"service": service})) for service in SERVICES]
    found = await ran(ToolCallingServer, [[bare[0]], [bare[1]], FINAL], said="The pool, I think.")
    assert [step.action and step.action.thought for step in found.trajectory.steps] == ["The pool, I think."] * 2


async def test_a_server_that_makes_no_call_or_refuses_tools_is_asked_for_json_from_then_on() -> None:
    steps: list[Turn] = [[look("api")], [look("db")], FINAL]
    talkative = await ran(ToolCallingServer, ["Let me think about it.", *steps])
    refusing = await ran(ToolCallingServer, steps, unknown_fields=frozenset({"tools"}))
    for found in (talkative, refusing):
        assert found.trajectory.ending is Ending.FINALISED
        assert found.logs.calls == [{"service": "api"}, {"service": "db"}]
        assert ["tools" in body for body in found.bodies] == [True, False, False, False]


@pytest.mark.parametrize("lost", ["I think. " * 2_000, FAILS], ids=["cut", "failed"])
async def test_after_a_reply_that_was_cut_or_failed_before_its_call_native_calls_go_on(lost: str) -> None:
    """Of a server that never called, the second one is its answer: its model speaks, and calls nothing."""
    first, second = [look("api")], [look("db")]
    for turns, forms in (
        ([lost, first, second, FINAL], [True, False, True, True]),
        ([first, lost, second, lost, FINAL], [True, True, False, True, False]),
        ([lost, first, lost, second, FINAL], [True, False, True, False, False]),
    ):
        found = await ran(ToolCallingServer, turns)
        assert found.trajectory.ending is Ending.FINALISED
        assert found.logs.calls == [{"service": "api"}, {"service": "db"}]
        assert ["tools" in body for body in found.bodies] == forms


@pytest.mark.parametrize("kind", ["general", "native", "python"])
async def test_the_definitions_of_tools_count_as_part_of_the_prompt(kind: str) -> None:
    """A server that says nothing of its use would otherwise be asked for more than it can take."""
    fields = {"tool": {"const": "read_logs"}, "service": {"enum": [f"service {number}" for number in range(2_000)]}}
    schema = {"properties": {"thought": {}, "action": {"anyOf": [{"properties": fields}]}}}
    request = ModelRequest((ChatMessage(Role.USER, "Why?"),), max_tokens=100, schema=schema)
    server = FakeToolServer(context=2_000) if kind == "general" else FakeLlamaServer(kind, context=2_000)
    async with served(server) as fake, aiohttp.ClientSession() as session:
        with pytest.raises(PromptTooLong, match="do not fit"):
            await ToolCallingServer(fake.url, session).generate(request)
        assert not fake.chats


async def test_other_replies_are_asked_for_as_ever() -> None:
    server = FakeToolServer(context=32_768, turns=['{"sure": true}'])
    schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
    async with served(server) as fake, aiohttp.ClientSession() as session:
        reply = await ToolCallingServer(fake.url, session).generate(ModelRequest((), schema=schema))
        assert json.loads(reply.text) == {"sure": True}
        assert "tools" not in fake.chats[0]
