"""The steps of a simulated language model that investigates incidents, to measure what the product makes of one.

It understands an incident with the probability `right`, drawn once for each incident, and then looks where the cause is and
reports it, with a quote if it has read one. Otherwise it errs in one of the ways in which models err: another change,
another service, an invented quote, an invented command, “nothing explains it”, a malformed reply. It reads only its prompts.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any, cast

from core.model.language_model import ModelRequest, Role
from core.model_calls.choice import NONE
from core.model_calls.judge import SourceVerdict
from core.model_calls.prompts.incidents import MAX_INTERPRETATIONS, ChunkReading, LogSummary
from core.rca.agent.actions import FINALISE, NO_CHANGE
from core.rca.tool_outputs import ToolOutput

LOOKS = 6  # calls before it reports what it has
NOISE = 0.1  # share of the samples in which it reports something else than it understood
LONGEST = 200  # characters of a quote

_RESULT = re.compile(r"^Result of \S+ \(obs_\w+\):\n=====\n(.*?)\n=====$", re.MULTILINE | re.DOTALL)
_REPORT = re.compile(r"^Report 1: (.*)\nSolution: (.*)\nDisproof: (.*)$", re.MULTILINE)
_STATEMENTS = re.compile(r"The statements of the report;.*?\n=====\n(.*?)\n=====", re.DOTALL)
_STATEMENT = re.compile(r"^\d+\. (.*?)\n   Nearest:", re.DOTALL | re.MULTILINE)
_MORE = re.compile(r"^… \d+ more characters in (obs_\w+)$", re.MULTILINE)
_PREFIX = re.compile(r"^[\d: -]{19} UTC(?: to [\d: -]{19} UTC, \d+ times, \w+)?: ")


@dataclass(frozen=True, slots=True)
class FaultType:
    """The type of a stated cause, from a closed list."""

    type: str


class Error(StrEnum):
    OTHER_CHANGE = "other change"
    OTHER_SERVICE = "other service"
    INVENTED_QUOTE = "invented quote"
    INVENTED_COMMAND = "invented command"
    NOT_FOUND = "not found"
    MALFORMED = "malformed"


@dataclass(frozen=True, slots=True)
class Cause:
    """The truth about an incident that contains `incident` in its prompts.

    `changes` are the ids of the change that caused it, empty if none did. `shows` returns whether a line shows the cause,
    and `said` is the cause in words; if it is empty, the line is. `calls` are those of tools that return such lines, each a
    tool with its arguments. `case` tells apart incidents with equal texts, and `fault` is the type of the cause from a
    closed list.
    """

    incident: str
    service: str
    changes: frozenset[str]
    shows: Callable[[str], bool]
    said: str = ""
    calls: Sequence[Mapping[str, str]] = ()
    case: str = ""
    fault: str = ""

    @property
    def name(self) -> str:
        """Return a text that only this incident has."""
        return f"{self.incident}{self.case}"


def calls_of(outputs: Iterable[ToolOutput], shows: Callable[[str], bool]) -> list[Mapping[str, str]]:
    """Return the calls whose recorded outputs have a line that shows a cause."""
    return [{"tool": each.tool, **each.arguments} for each in outputs if any(map(shows, each.text.splitlines()))]


class SimulatedInvestigator:
    """Replies to the requests of an investigation. `causes` may grow while it is used."""

    def __init__(self, causes: Sequence[Cause], right: float) -> None:
        self._causes = causes
        self._right = right
        self._true: set[str] = set()  # causes that it reported rightly

    def reply(self, request: ModelRequest, sample: int = 0) -> str | None:
        """Return the reply to a request of an investigation; None if it is no such request."""
        schema = request.schema or {}
        prompt = request.messages[:2][-1].text
        if FINALISE in str(schema.get("properties", {}).get("tool")):
            return self._merged(request)
        if stated := _STATEMENTS.search(prompt):
            return self._verdicts(_STATEMENT.findall(stated[1]), _drawn(prompt))
        if schema.get("title") in (ChunkReading.__name__, LogSummary.__name__, FaultType.__name__):
            return self._read(schema, prompt)
        options = schema.get("properties", {}).get("action", {}).get("anyOf")
        cause = next((each for each in self._causes if each.incident in prompt), None)
        if options is None or cause is None:
            return None
        draw = _drawn(f"{cause.name}\n{sample}\n{len(request.messages)}")
        understood = self._understands(cause) != (sample > 0 and draw.random() < NOISE)
        return self._step(request, cast("Sequence[Mapping[str, Any]]", options), cause, draw, understood=understood)

    def _verdicts(self, statements: Sequence[str], draw: random.Random) -> str:
        """Return verdicts on the sentences of a finding, each right with the probability of the model."""
        verdicts = {
            str(number): SourceVerdict.SAID
            if any(each in true for true in self._true) is (draw.random() < self._right)
            else SourceVerdict.CHANGED
            for number, each in enumerate(statements, start=1)
        }
        return json.dumps(verdicts)

    def _understands(self, cause: Cause) -> bool:
        return _drawn(cause.name).random() < self._right

    def _read(self, schema: Mapping[str, Any], prompt: str) -> str | None:
        """Return the reply of an expert, or the type of a stated cause, about the incident that is investigated now."""
        cause = next(iter(self._causes), None)
        if cause is None:
            return None
        understood = self._understands(cause)
        match schema["title"]:
            case ChunkReading.__name__:
                shown = [line.strip() for line in prompt.splitlines() if understood and cause.shows(line)]
                interpretations = [
                    {"meaning": "This explains it.", "evidence": line[:300]} for line in dict.fromkeys(shown)
                ]
                return json.dumps({"interpretations": interpretations[:MAX_INTERPRETATIONS]})
            case LogSummary.__name__:
                return json.dumps({"summary": "", "interpretations": [1]})
            case _:
                others = [each for each in schema["properties"]["type"]["enum"] if each != cause.fault]
                fault = cause.fault if cause.said in prompt else _drawn(prompt).choice(others)
                return json.dumps({"type": fault})

    def choice(self, request: ModelRequest, choices: Sequence[str]) -> str | None:
        """Return the candidate that a choice of a cause names; None if it is no such choice."""
        prompt = request.messages[-1].text
        cause = next((each for each in self._causes if each.incident in prompt), None)
        if cause is None or "Possible causes of today's incident" not in prompt:
            return None
        if cause.changes:
            named = [each for each in choices if any(change in each.split() for change in cause.changes)]
        else:
            named = [each for each in choices if cause.service in each]
        right = named[0] if named else NONE
        if self._understands(cause):
            return right
        return _drawn(prompt).choice([each for each in choices if each != right])

    def _step(
        self,
        request: ModelRequest,
        options: Sequence[Mapping[str, Any]],
        cause: Cause,
        draw: random.Random,
        *,
        understood: bool,
    ) -> str:
        tools = {each["properties"]["tool"]["const"]: each["properties"] for each in options}
        finding = tools.pop(FINALISE, None)
        read = _read(request)
        shown = [line for line in read if cause.shows(line)]
        looks = sum(message.role is Role.ASSISTANT for message in request.messages)
        if finding is not None and (looks >= LOOKS or not tools or (shown and understood)):
            action = self._report(finding, cause, read, shown, draw, understood=understood)
            return action if isinstance(action, str) else json.dumps({"thought": "I know enough.", "action": action})
        listed = [each for each in options if each["properties"]["tool"]["const"] != FINALISE]
        return json.dumps(
            {"thought": "I look further.", "action": _call(request, listed, cause, draw, understood=understood)}
        )

    def _report(
        self,
        finding: Mapping[str, Any],
        cause: Cause,
        read: Sequence[str],
        shown: Sequence[str],
        draw: random.Random,
        *,
        understood: bool,
    ) -> dict[str, Any] | str:
        services = finding["service"].get("enum", [cause.service])
        changes = [each for each in finding["change"]["enum"] if each != NO_CHANGE]
        right = next((each for each in changes if each in cause.changes), NO_CHANGE)
        service = cause.service if cause.service in services else services[0]
        if understood and shown:
            quotes = [_quote(line) for line in shown[:2]]
            self._true.add(cause.said or quotes[0])
            return _finding(cause.said or quotes[0], service, right, quotes, f"Undo what happened to {service}.")
        if understood:
            return _finding("Nothing that I read explains the incident.", service, NO_CHANGE, [], "")
        error = draw.choice(list(Error))
        other = [line for line in read if not cause.shows(line) and len(line) > 40] or ["It is quiet today."]
        quote = _quote(draw.choice(other))
        elsewhere = draw.choice([each for each in services if each != service] or services)
        innocent = draw.choice([each for each in changes if each not in cause.changes] or [NO_CHANGE])
        match error:
            case Error.MALFORMED:
                return draw.choice(['{"thought": "', "As an AI model, I cannot tell.", "Sure! The cause is:"])
            case Error.NOT_FOUND:
                return _finding("Nothing that I read explains the incident.", service, NO_CHANGE, [], "")
            case Error.INVENTED_QUOTE:
                return _finding("The kernel crashed.", elsewhere, NO_CHANGE, ["kernel panic: not syncing: fatal"], "")
            case Error.INVENTED_COMMAND:
                return _finding(quote, elsewhere, NO_CHANGE, [quote], "Run `opsctl repair --all --force`.")
            case Error.OTHER_SERVICE:
                return _finding(quote, elsewhere, NO_CHANGE, [quote], f"Restart {elsewhere}.")
            case Error.OTHER_CHANGE:
                quoted = [_quote(line) for line in read if innocent in line] or [quote]
                return _finding(quoted[0], elsewhere, innocent, quoted[:1], f"Revert {innocent}.")

    def _merged(self, request: ModelRequest) -> str | None:
        """Return the first of the reports to be merged, with all quotes that are allowed."""
        properties = (request.schema or {})["properties"]
        report = _REPORT.search(request.messages[-1].text)
        if report is None:
            return None
        quotes = properties["evidence"]["items"].get("enum", [])[:3]
        service, change = properties["service"]["enum"][0], properties["change"]["enum"][0]
        return json.dumps(_finding(report[1], service, change, quotes, report[2], report[3]))


def _drawn(text: str) -> random.Random:
    return random.Random(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


def _read(request: ModelRequest) -> list[str]:
    """Return the lines of the results in a prompt, each once."""
    texts = (message.text for message in request.messages[2:] if message.role is Role.USER)
    lines = (line.strip() for text in texts for shown in _RESULT.findall(text) for line in shown.splitlines())
    return list(dict.fromkeys(line for line in lines if line))


def _quote(line: str) -> str:
    return _PREFIX.sub("", line)[:LONGEST]


def _call(
    request: ModelRequest, options: Sequence[Mapping[str, Any]], cause: Cause, draw: random.Random, *, understood: bool
) -> Mapping[str, str]:
    """Return the next call: where the cause is, if the incident is understood, otherwise any."""
    if understood:
        made = [_action(message.text) for message in request.messages if message.role is Role.ASSISTANT]
        wanted = [call for call in cause.calls if _given(call) not in made]
        wanted += [{"tool": "analyse_log", "snapshot": key} for key in _cut(request)]
        for fields, call in product((option["properties"] for option in options), wanted):
            if _allows(fields, call):
                return {name: call.get(name, "") for name in fields}
    calls = [
        {name: each.get("const") or draw.choice(each.get("enum", [cause.service])) for name, each in fields.items()}
        for option in options
        if (fields := cast("Mapping[str, Mapping[str, Any]]", option["properties"]))
    ]
    return draw.choice(calls)


def _action(reply: str) -> Mapping[str, str]:
    """Return the action of an earlier reply."""
    try:
        return _given(json.loads(reply)["action"])
    except (ValueError, KeyError, TypeError):
        return {}


def _given(call: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value for name, value in call.items() if value}


def _cut(request: ModelRequest) -> list[str]:
    """Return the keys of the results of which a part was shown, the latest first."""
    return [key for message in reversed(request.messages) for key in _MORE.findall(message.text)]


def _allows(fields: Mapping[str, Mapping[str, Any]], call: Mapping[str, str]) -> bool:
    """Return whether a call is one of those that an option of a step allows; an argument that it lacks is empty."""
    return fields.keys() >= call.keys() and all(
        call.get(name, "") in (each.get("enum") or [each.get("const", call.get(name, ""))])
        for name, each in fields.items()
    )


def _finding(
    root_cause: str, service: str, change: str, evidence: Sequence[str], solution: str, disproof: str = ""
) -> dict[str, Any]:
    return {
        "tool": FINALISE,
        "root_cause": root_cause[:300],
        "solution": solution[:300],
        "service": service,
        "change": change,
        "responsibility": "own code",
        "evidence": list(evidence),
        "disproof": disproof or f"{service} stays in trouble after it was undone.",
    }
