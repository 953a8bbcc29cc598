"""What a well-behaved language model says at each step of an answer, for `ScriptedModel`; a test replaces single steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.model.language_model import ModelRequest
from tests.fakes.language_model import ScriptedModel

Statements = Mapping[int, str]
Composer = Callable[[Statements], Sequence[tuple[str, Sequence[int]]]]

TASKS = ("Rewritten", "Chosen", "Composed", "Translated")


def prompt(request: ModelRequest) -> str:
    return request.messages[-1].text


def task(request: ModelRequest) -> str:
    """The type that the reply is asked as; empty where a verdict is asked for."""
    return request.schema["title"] if request.schema else ""


def statements(request: ModelRequest) -> dict[int, str]:
    """The numbered statements in a prompt, in the order in which they stand there."""
    lines = [json.loads(line) for line in prompt(request).splitlines() if line.startswith('{"document"')]
    return {int(number): text for line in lines for number, text in line["statements"].items()}


def quoting(shown: Statements) -> list[tuple[str, list[int]]]:
    """The first statement as it stands."""
    number = min(shown)
    return [(shown[number], [number])]


@dataclass
class AnsweringScript:
    """By default: the question as it is, all statements, the first of them quoted."""

    compose: Composer = quoting
    choose: Callable[[Statements], Sequence[int]] = tuple
    question: str = ""
    english: str = ""
    language: str = "English"
    translations: Sequence[str] = ()

    def __call__(self, request: ModelRequest) -> str:
        match task(request):
            case "Rewritten":
                reply: object = {
                    "follow_up": False,
                    "question": self.question or "?",
                    "language": self.language,
                    "english": self.english or self.question or "?",
                }
            case "Chosen":
                reply = {"statements": list(self.choose(statements(request)))[:24]}
            case "Composed":
                composed = self.compose(statements(request))
                reply = {"sentences": [{"text": text, "statements": list(numbers)} for text, numbers in composed]}
            case _:
                reply = {"sentences": list(self.translations)}
        return json.dumps(reply, ensure_ascii=False)


def agreeing(script: Callable[[ModelRequest], str], probability: float = 0.9) -> ScriptedModel:
    """A model that follows a script and gives each yes this probability."""
    return ScriptedModel(script, odds=lambda *_: {"yes": probability, "no": 1 - probability})


def tasks(model: ScriptedModel) -> list[str]:
    """What the model was asked, in order; a verdict is an empty string."""
    return [task(request) for request in model.requests]
