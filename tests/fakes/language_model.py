"""A language model that a test scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from core.answering.model_exam import FULL, Marks
from core.model.errors import PromptTooLong
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from handlers.common.examine_model import ExaminedModel

Script = Callable[[ModelRequest], str]
Odds = Callable[[ModelRequest, Sequence[str]], dict[str, float]]


def _even(_: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
    return dict.fromkeys(choices, 1.0)


@dataclass
class ScriptedModel:
    """Replies with what `script` returns or raises; a token is a word. Every request is kept in `requests`."""

    script: Script = lambda _: ""
    odds: Odds = _even
    context: int = 8_192
    name: str = "scripted"
    requests: list[ModelRequest] = field(default_factory=list)
    able: Abilities = field(default_factory=Abilities)

    def position(self, _requester: str) -> int:
        """Nobody waits for it."""
        return 0

    async def context_tokens(self) -> int:
        return self.context

    async def count_tokens(self, text: str) -> int:
        return len(text.split())

    async def abilities(self) -> Abilities:
        return self.able

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        prompt_tokens = sum(len(message.text.split()) for message in request.messages)
        if prompt_tokens + request.max_tokens > self.context:
            raise PromptTooLong(f"{prompt_tokens} and {request.max_tokens} tokens do not fit into {self.context}.")
        self.requests.append(request)
        words = self.script(request).split(" ")
        text = " ".join(words[: request.max_tokens])
        generated = min(len(words), request.max_tokens)
        for end in range(1, len(words) + 1):
            on_text(" ".join(words[:end]))
        return ModelReply(text, prompt_tokens, 0, generated, complete=len(words) <= request.max_tokens)

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        return [await self.generate(request) for _ in range(count)]

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        self.requests.append(request)
        odds = self.odds(request, choices)
        total = math.fsum(odds.values())
        return {choice: odds.get(choice, 0.0) / total for choice in choices}


async def passed(
    model: ScriptedModel, right: int = FULL.find, *, writes: bool = False, tools: bool = False
) -> ExaminedModel:
    """Return the model with so many right choices in its exam, and with all or none of its right answers and calls."""
    marks = Marks(right, FULL.write if writes else 0, FULL.tool if tools else 0, FULL.judge if writes else 0)
    examined = ExaminedModel(model, lambda: marks)
    await examined.recall()
    return examined
