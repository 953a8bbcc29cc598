"""A language model of the sample company that writes answers, investigates and votes, as the script of a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.model.language_model import ChatMessage, ModelRequest, Role
from core.model_calls.judge import SourceVerdict
from core.model_calls.prompts.answering import NO, SCALE, YES, YES_NO
from tests.benchmarks.simulated import passages_of
from tests.benchmarks.simulated_agent import Cause
from tests.fakes.simulated_server import investigating
from tests.fakes.triage_script import Cast, TriageScript

Line = tuple[str, str]
"""A sentence, and words of the passage that it cites."""


def speaking(answers: Mapping[str, Sequence[Line]], causes: Sequence[Cause], votes: Cast) -> Callable[..., str]:
    """The script of a server whose model answers questions by a word of theirs, knows these causes, and votes so."""
    investigator, teams = investigating(causes), TriageScript(votes, lambda allowed: list(allowed)[:5])

    def reply(body: dict[str, Any]) -> str:
        messages = tuple(ChatMessage(Role(each["role"]), each["content"]) for each in body["messages"])
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        prompt = messages[-1].text
        if schema is None:
            return _written(prompt, answers)
        if schema.get("enum") == [YES, NO]:
            return json.dumps(YES)
        judged = schema.get("properties", {})
        if judged and all(each.get("enum") == list(SourceVerdict) for each in judged.values()):
            return json.dumps(dict.fromkeys(judged, SourceVerdict.SAID))
        if "enum" in schema:
            return json.dumps(
                next((each for each in (SCALE[-1], YES_NO[0]) if each in schema["enum"]), schema["enum"][0])
            )
        if hasattr(teams, f"_{schema.get('title', '').lower()}"):
            return teams(ModelRequest(messages, schema=schema))
        return investigator(body)

    return reply


def _written(prompt: str, answers: Mapping[str, Sequence[Line]]) -> str:
    question = prompt.rpartition("The question:\n=====\n")[2]
    for word, lines in answers.items():
        if word in question.partition("\n=====")[0]:
            passages = passages_of(prompt)
            cited = [(said, [number for number, _, text in passages if words in text]) for said, words in lines]
            return " ".join(f"{said} [{numbers[0]}]" for said, numbers in cited if numbers)
    return "NOT FOUND"
