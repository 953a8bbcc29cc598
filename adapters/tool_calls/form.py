"""The form of native calls, and of the tools that may be called.

The port's requests and replies stay as they are. The schema of a step has a `thought` and an `action` that is one of several
tools. It becomes the `tools` of OpenAI's interface, the earlier steps of a conversation become calls with their results, and
what a model calls becomes the JSON of a step. Of several calls at once, the first counts. What is malformed stays in that JSON,
so that the agent refuses it with advice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import BaseModel

THOUGHT = "thought"


def options_of(schema: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    """Return the schemas of the tools of a step; empty if a schema is that of another reply."""
    return (schema or {}).get("properties", {}).get("action", {}).get("anyOf", ())


def with_tools(body: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a chat with the tools of a step, of which one must be called, and with earlier steps as calls."""
    tools: list[dict[str, Any]] = []
    for option in options_of(schema):
        fields = {THOUGHT: schema["properties"][THOUGHT], **option["properties"]}
        name = fields.pop("tool")["const"]
        tools.append({"name": name, "parameters": {"type": "object", "properties": fields, "required": list(fields)}})
    return {
        **body,
        "messages": list(_turns(body["messages"])),
        "tools": [{"type": "function", "function": each} for each in tools],
        "tool_choice": "required",
        "parallel_tool_calls": False,
    }


def _turns(messages: Iterable[Mapping[str, str]]) -> Iterator[Mapping[str, Any]]:
    called = ""
    for place, message in enumerate(messages):
        step = _step(message["content"]) if message["role"] == "assistant" else None
        if step is not None:
            called = f"call_{place}"
            yield {"role": "assistant", "content": step[THOUGHT], "tool_calls": [_call(called, step["action"])]}
        elif called:
            yield {"role": "tool", "tool_call_id": called, "content": message["content"]}
            called = ""
        else:
            yield message


def _step(text: str) -> Mapping[str, Any] | None:
    """Return an earlier reply as a step; None if it is none."""
    try:
        step = json.loads(text)
        return {THOUGHT: str(step[THOUGHT]), "action": {**step["action"], "tool": str(step["action"]["tool"])}}
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _call(name: str, action: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json.dumps({key: value for key, value in action.items() if key != "tool"}, ensure_ascii=False)
    return {"id": name, "type": "function", "function": {"name": action["tool"], "arguments": arguments}}


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None  # an object where a server sends a call whole


class CallPart(BaseModel):
    """A piece of a call in a stream. The first one of each call has its name."""

    index: int | None = None
    function: _Function = _Function()


def step_of(parts: Sequence[CallPart], text: str) -> str:
    """Return the first call of a reply as the JSON of a step; `text` is what was said beside it."""
    own = [each.function for each in parts if each.index == parts[0].index]
    first = own[:1] + list(takewhile(lambda each: not each.name, own[1:]))
    given = [each.arguments or "" for each in first]
    try:
        fields = dict(given[0] if isinstance(given[0], dict) else json.loads("".join(map(str, given)) or "{}"))
    except (ValueError, TypeError, RecursionError):
        fields = {"arguments": "".join(map(str, given))}
    return json.dumps({THOUGHT: fields.pop(THOUGHT, text), "action": {**fields, "tool": first[0].name or ""}})
