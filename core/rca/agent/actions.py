"""The next actions of a model as a JSON schema, and the parsing of its reply as one of them.

The schema excludes unknown tools and arguments, repeated calls of a tool with one argument, and early finalising. The
reply is checked by the same schema, for servers that cannot enforce it, and refused with advice (RCAgent, section 3.3.2).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, cast

from core.model.language_model import Action, Finding, Responsibility
from core.model_calls.constrained_reply import fault_under
from core.ports import Tool, ToolParameter

FINALISE = "finalize"
NO_CHANGE = "none"  # in place of the id of a change
EARLIEST_FINALISE = 2  # different observations required before finalising
TRIVIAL = 40  # characters of an observation; an expert cannot use a shorter one
MAX_THOUGHT = 200  # characters, as the other lengths
MAX_TEXT = 300
MAX_EVIDENCE = 3
MAX_QUOTE = 200
MAX_CALL_TOKENS = 1_000  # room for the longest call, even if each token is one byte
MAX_FINDING_TOKENS = 3_000  # room for the longest finding

Call = tuple[str, frozenset[tuple[str, str]]]  # a tool and its arguments


def call_of(action: Action) -> Call:
    """Return the call as a key that identifies repetitions."""
    return action.tool, frozenset(action.arguments.items())


HEAD, TAIL = 800, 800  # characters of an observation that the controller sees
KEY_LENGTH = 6  # hexadecimal digits; an investigation has a few dozen observations


@dataclass(slots=True)
class Snapshots:
    """The observations of one investigation by key (RCAgent, section 3.1).

    `read` maps those that show something of the system, and so can be quoted as evidence, to the call that returned them;
    `advice` are documents and past incidents, which a solution may quote.
    """

    by_key: dict[str, str] = field(default_factory=dict[str, str])
    read: dict[str, str] = field(default_factory=dict[str, str])
    advice: list[str] = field(default_factory=list[str])

    def keep(self, observation: str, call: str = "") -> str:
        """Store an observation, and return its key, which depends only on the text.

        `call` is the call that returned it; empty if it shows nothing of the system.
        """
        digest = sha256(observation.encode("utf-8", "surrogatepass")).hexdigest()
        key = f"obs_{digest[:KEY_LENGTH]}"
        self.by_key[key] = observation
        if call:
            self.read.setdefault(observation, call)
        return key

    def head(self, key: str) -> str:
        """Return the part of an observation that is shown: its first and last whole lines, and the length of the rest.

        RCAgent shows the first ones. The last are added, because the end of a log is the latest, and a description of an
        object ends with its events.
        """
        text = self.by_key[key]
        if len(text) <= HEAD + TAIL:
            return text
        first = text[:HEAD].rpartition("\n")[0] or text[:HEAD]
        last = text[-TAIL:].partition("\n")[2] or text[-TAIL:]
        return f"{first}\n… {len(text) - len(first) - len(last)} more characters in {key}\n{last}"


class RefusedAction(Exception):
    """The reply is not an action that is allowed now. The message is the advice for the model."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The actions allowed at one step."""

    tools: Sequence[Tool]
    services: tuple[str, ...]
    snapshots: Snapshots
    called: Collection[Call]
    must_finalise: bool
    changes: tuple[str, ...] = ()  # the ids of those that may be the cause

    @property
    def may_finalise(self) -> bool:
        return self.must_finalise or len(self.called) >= EARLIEST_FINALISE or not self.open_calls

    @property
    def open_calls(self) -> list[tuple[Tool, dict[str, tuple[str, ...]]]]:
        """Return every tool that may be called, with the values of its arguments. An empty tuple allows any text."""
        if self.must_finalise:
            return []
        return [(tool, left) for tool in self.tools if (left := self._left(tool)) is not None]

    def _left(self, tool: Tool) -> dict[str, tuple[str, ...]] | None:
        """Return the values of each argument; None if the tool has none, or no call, left.

        Those of the only argument are not offered again. Of several, only the reply shows that a call is repeated.
        """
        used = [dict(arguments) for name, arguments in self.called if name == tool.name]
        if used and not tool.parameters:
            return None
        left = {each.name: self.values(each) for each in tool.parameters}
        if len(left) == 1:
            left = {name: tuple(each for each in values if {name: each} not in used) for name, values in left.items()}
        return None if any(_closed(each) and not left[each.name] for each in tool.parameters) else left

    def values(self, parameter: ToolParameter) -> tuple[str, ...]:
        """Return the values of a parameter that are allowed now; empty if any text is."""
        if not parameter.snapshot:
            return parameter.choices
        read = (
            key for key, text in self.snapshots.by_key.items() if text in self.snapshots.read and len(text) >= TRIVIAL
        )
        return tuple(read)


def _closed(parameter: ToolParameter) -> bool:
    return parameter.snapshot or bool(parameter.choices)


def schema(choices: Choices) -> dict[str, Any]:
    """Return the JSON schema of the next reply."""
    options = [
        _object(
            {
                "tool": {"const": tool.name},
                **{name: _one_of(allowed) if allowed else _text(MAX_TEXT) for name, allowed in left.items()},
            }
        )
        for tool, left in choices.open_calls
    ]
    if choices.may_finalise:
        options.append(finding_schema(choices.services, choices.changes))
    return {
        "type": "object",
        "properties": {"thought": _text(MAX_THOUGHT), "action": {"anyOf": options}},
        "required": ["thought", "action"],
        "additionalProperties": False,
    }


def parse(reply: str, choices: Choices) -> Action | Finding:
    """Return the reply as an action. Raises RefusedAction with advice if that is not allowed now."""
    try:
        document = cast("object", json.loads(reply))
    except (ValueError, RecursionError):
        raise RefusedAction("That is not valid JSON. Reply with one JSON object: thought and action.") from None
    step = cast("dict[str, object]", document) if isinstance(document, dict) else dict[str, object]()
    action = step.get("action")
    if not isinstance(action, dict):
        raise RefusedAction("The reply has no action. Reply with one JSON object: thought and action.")
    given, thought = cast("Mapping[str, object]", action), str(step.get("thought", ""))[:MAX_THOUGHT]
    name = str(given.get("tool"))
    called = Action(thought, name, {key: str(value)[:MAX_TEXT] for key, value in given.items() if key != "tool"})
    if call_of(called) in choices.called:
        raise RefusedAction(
            f"{name} was called with these arguments before, and would say the same. Ask something else."
        )
    options = schema(choices)["properties"]["action"]["anyOf"]
    names = [option["properties"]["tool"]["const"] for option in options]
    if name not in names:
        raise RefusedAction(f"That tool cannot be called now. Call one of {', '.join(names)}.")
    if name == FINALISE:
        return finding_of(thought, given, options[-1])
    if fault := fault_under({"tool": name, **called.arguments}, options[names.index(name)]):
        raise RefusedAction(f"{name}: {fault}"[:MAX_TEXT])
    return called


def finding_of(thought: str, given: Mapping[str, object], option: Mapping[str, Any]) -> Finding:
    """Return a report as a finding, cut to the lengths of its schema. Raises RefusedAction with advice if it is none."""
    fields: dict[str, Any] = {"change": NO_CHANGE, "disproof": "", "evidence": [], **given}
    bounded = {name: _cut(fields[name], part) for name, part in option["properties"].items() if name in fields}
    if fault := fault_under(bounded, option):
        raise RefusedAction(f"{FINALISE}: {fault}"[:MAX_TEXT])
    return Finding(
        thought,
        bounded["root_cause"],
        bounded["solution"],
        bounded["service"],
        Responsibility(bounded["responsibility"]),
        tuple(bounded["evidence"]),
        "" if bounded["change"] == NO_CHANGE else bounded["change"],
        bounded["disproof"],
    )


def _cut(value: Any, part: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_cut(each, part.get("items", {})) for each in cast("list[object]", value)[: part.get("maxItems")]]
    return value[: part.get("maxLength")] if isinstance(value, str) else value


def finding_schema(services: Sequence[str], changes: Sequence[str], quotes: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of a finding.

    `services` are the possible places of the cause, `changes` the ids of those that may be it, and `quotes` the possible
    evidence; if there are no services or quotes, any text is allowed.
    """
    return _object(
        {
            "tool": {"const": FINALISE},
            "root_cause": {**_text(MAX_TEXT), "minLength": 1},
            "solution": _text(MAX_TEXT),
            "service": _one_of(services) if services else _text(MAX_TEXT),
            "change": _one_of([*changes, NO_CHANGE]),
            "responsibility": _one_of([str(each) for each in Responsibility]),
            "evidence": {
                "type": "array",
                "items": _one_of(quotes) if quotes else _text(MAX_QUOTE),
                "maxItems": MAX_EVIDENCE,
            },
            "disproof": _text(MAX_TEXT),
        }
    )


def _one_of(values: Sequence[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _text(longest: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest}
