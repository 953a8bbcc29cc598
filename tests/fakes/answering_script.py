"""A language model as answers are asked of it: it copies the statement with a word, and restates as it is told."""

from __future__ import annotations

import json

from core.answering.reply import NOT_FOUND
from core.model.language_model import ModelRequest
from tests.benchmarks.simulated import passages_of, statements_of
from tests.fakes.investigation import verdicts
from tests.fakes.language_model import ScriptedModel


def prompt(request: ModelRequest) -> str:
    return request.messages[-1].text


def task(request: ModelRequest) -> str:
    """The type that the reply is asked as; empty where text is asked for."""
    return request.schema.get("title", "") if request.schema else ""


def choosing(word: str, *, question: str = "?", english: str = "", language: str = "English") -> ScriptedModel:
    """A model that answers with the first statement that holds a word, and restates every question as this one.

    It judges everything as said, is sure of it, and finds no answer where no passage holds the word.
    """

    def script(request: ModelRequest) -> str:
        if (verdict := verdicts(request)) is not None:
            return verdict
        if request.schema:
            restated = {"question": question, "english": english or question, "language": language}
            return json.dumps({"follow_up": True, **restated}, ensure_ascii=False)
        read = [(number, each) for number, _, text in passages_of(prompt(request)) for each in statements_of(text)]
        return next((f"{each} [{number}]" for number, each in read if word in each), NOT_FOUND)

    return ScriptedModel(script, lambda _, choices: {each: float(each in ("yes", "5")) for each in choices})


def tasks(model: ScriptedModel) -> list[str]:
    """What the model was asked, in order; text is an empty string."""
    return [task(request) for request in model.requests]
