"""The language model that plays all agents of one incident, within a budget."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from core.model.language_model import ModelReply, ModelRequest
from core.model_calls.choice import choose
from core.model_calls.prompts.triage import Messages
from core.model_calls.structured_reply import ANY, Choices, structured
from core.ports import LanguageModel

MAX_TOKENS = 60_000  # read and written by all agents, except those from a server's cache
MAX_SECONDS = 180.0  # for all of them
LAST_ROUND = 0.6  # share of the budget from which no further round begins, because it might not end

T = TypeVar("T")


@dataclass(slots=True)
class Session:
    """The calls of all agents of one incident. `request` gives requester, urgency and deadline."""

    model: LanguageModel
    request: ModelRequest
    tokens: int = 0  # spent so far
    began: float = field(default_factory=time.monotonic)

    @property
    def is_spent(self) -> bool:
        """Return whether the budget allows no further round."""
        return max(self.tokens / MAX_TOKENS, (time.monotonic() - self.began) / MAX_SECONDS) >= LAST_ROUND

    async def ask(self, messages: Messages, kind: type[T], max_tokens: int, choices: Choices = ANY) -> T:
        """Return a reply of type `kind`. Raises InvalidReply, and the errors of the port."""
        request = replace(self.request, messages=messages, max_tokens=max_tokens)
        return await structured(self.model, request, kind, choices, self._count)

    async def choose(self, messages: Messages, names: Sequence[str]) -> str | None:
        """Return the name that is chosen; None if none of them is. Raises the errors of the port."""
        distribution = await choose(self.model, self.request, messages, names)
        return [*names, None][distribution.index(max(distribution))]

    def _count(self, reply: ModelReply) -> None:
        self.tokens += reply.prompt_tokens - reply.cached_tokens + reply.generated_tokens
