"""A language model as answers are asked of it: it chooses an excerpt by a word, and restates as it is told."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from core.model.language_model import ModelRequest
from core.model_calls.prompts.answering import NONE
from tests.fakes.language_model import Odds, ScriptedModel

_NAMED = re.compile(r"(?:\A|\n\n)# (.+)\n")


def prompt(request: ModelRequest) -> str:
    return request.messages[-1].text


def task(request: ModelRequest) -> str:
    """The type that the reply is asked as; empty where a name is asked for."""
    return request.schema["title"] if request.schema else ""


def excerpts(request: ModelRequest) -> dict[str, str]:
    """The excerpts in a prompt, by their names."""
    _, listed, *_ = prompt(request).split("\n=====\n")
    _, *parts = _NAMED.split(f"\n\n{listed}")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def holding(word: str, probability: float = 0.95) -> Odds:
    """Choose the first excerpt that holds a word; none where no excerpt does."""

    def odds(request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        chosen = next((name for name, text in excerpts(request).items() if word in text and name in choices), NONE)
        rest = (1.0 - probability) / (len(choices) - 1)
        return {choice: probability if choice == chosen else rest for choice in choices}

    return odds


def choosing(
    word: str,
    probability: float = 0.95,
    *,
    question: str = "?",
    english: str = "",
    language: str = "English",
) -> ScriptedModel:
    """A model that chooses by a word, and restates every question as this one."""

    def script(request: ModelRequest) -> str:
        restated = {"question": question, "english": english or question, "language": language}
        return json.dumps({"follow_up": True, **restated}, ensure_ascii=False)

    return ScriptedModel(script, holding(word, probability))


def tasks(model: ScriptedModel) -> list[str]:
    """What the model was asked, in order; a choice is an empty string."""
    return [task(request) for request in model.requests]
