"""The budget of one investigation, and the measured speed of its model."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.ports import LanguageModel

ENOUGH = 0.75  # share of the tokens or seconds from which only finalising is allowed
LEAST_DEADLINE = 1.0  # seconds; a request needs some time even at the end of the budget


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one investigation may use. `models.investigation` of plumbline.yaml sets them."""

    steps: int = 15  # RCAgent, section 5.3
    samples: int = 10  # endings drawn beside the first; RCAgent, section 4.1
    tokens: int = 60_000  # read and written, except those from a server's cache
    seconds: float = 180.0


class MeteredModel:
    """A LanguageModel whose use is measured, and whose requests end with the budget."""

    def __init__(self, model: LanguageModel, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.tokens = 0
        self._model = model
        self._began = time.monotonic()
        self._replies = 0
        self._busy = 0.0  # seconds

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._began

    @property
    def spent(self) -> float:
        """Return the larger share of the tokens and seconds that is spent; above 1 if it is exceeded."""
        return max(self.tokens / self.limits.tokens, self.seconds / self.limits.seconds)

    def replies_left(self, share: float = 1.0) -> int:
        """Return how many replies like those so far, one after another, fit into a share of what is left of the budget."""
        if not self._replies:
            return self.limits.tokens
        tokens = share * (self.limits.tokens - self.tokens) / max(1.0, self.tokens / self._replies)
        seconds = share * (self.limits.seconds - self.seconds) / max(1e-6, self._busy / self._replies)
        return max(0, int(min(tokens, seconds)))

    async def context_tokens(self) -> int:
        return await self._model.context_tokens()

    async def count_tokens(self, text: str) -> int:
        return await self._model.count_tokens(text)

    async def abilities(self) -> Abilities:
        return await self._model.abilities()

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        began = time.monotonic()
        reply = await self._model.generate(self._bounded(request), on_text)
        self._add([reply], time.monotonic() - began)
        return reply

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        began = time.monotonic()
        replies = await self._model.sample(self._bounded(request), count)
        self._add(replies, time.monotonic() - began)
        return replies

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        return await self._model.expect(self._bounded(request), choices)

    def _bounded(self, request: ModelRequest) -> ModelRequest:
        left = max(LEAST_DEADLINE, self.limits.seconds - self.seconds)
        return replace(request, deadline=min(request.deadline, left))

    def _add(self, replies: Sequence[ModelReply], seconds: float) -> None:
        self.tokens += sum(each.prompt_tokens - each.cached_tokens + each.generated_tokens for each in replies)
        self._replies += len(replies)
        self._busy += seconds
