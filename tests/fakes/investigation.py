"""Tools and replies for tests of the investigating model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.model.errors import ToolUnavailable
from core.model.language_model import ModelRequest
from core.model_calls.judge import SourceVerdict
from core.ports import ToolParameter

SERVICES = ("api", "db")


@dataclass
class FakeTool:
    """Answers with `says` or fails; keeps what it was called with."""

    name: str = "read_logs"
    says: str = "ERROR connection pool exhausted, 40 of 40 in use by batch job"
    parameters: tuple[ToolParameter, ...] = (ToolParameter("service", "the name of a service", SERVICES),)
    description: str = "What a service logged."
    fails: bool = False
    calls: list[dict[str, str]] = field(default_factory=list)

    async def call(self, arguments: Mapping[str, str]) -> str:
        self.calls.append(dict(arguments))
        if self.fails:
            raise ToolUnavailable("log store: connection refused")
        return self.says


def call(tool: str = "read_logs", **arguments: str) -> str:
    return json.dumps({"thought": "Let me look.", "action": {"tool": tool, **arguments}})


def finalise(root_cause: str = "The pool of db is exhausted.", service: str = "db", **fields: object) -> str:
    action = {
        "tool": "finalize",
        "root_cause": root_cause,
        "solution": "Stop the batch job.",
        "service": service,
        "change": "none",
        "responsibility": "dependency",
        "evidence": ["connection pool exhausted, 40 of 40 in use"],
        "disproof": "",
        **fields,
    }
    return json.dumps({"thought": "That is it.", "action": action})


def verdicts(request: ModelRequest, refused: str = "\0") -> str | None:
    """Return the reply of a judge that refuses the statements with this text; None if it is not asked for verdicts."""
    judged = (request.schema or {}).get("properties", {})
    if not judged or any(each.get("enum") != list(SourceVerdict) for each in judged.values()):
        return None
    stated = request.messages[-1].text
    return json.dumps(
        {
            number: SourceVerdict.CHANGED
            if refused in stated.split(f"\n{number}. ")[1].split("\n")[0]
            else SourceVerdict.SAID
            for number in judged
        }
    )
