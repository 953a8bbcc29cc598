"""A language model whose use is counted, and whose calls end with the budget of a question or an incident.

What an incident may use is shared by what is asked of it one after the other: its cause has a part of the budget, and so a
meter within that of the incident.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Annotated, Self

from pydantic import ConfigDict, Field

from core.model.errors import ModelUnavailable
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.model.text import counted
from core.ports import LanguageModel

ENOUGH = 0.75  # share of the budget from which an investigation only ends
LEAST_DEADLINE = 1.0  # seconds; a request needs some time even at the end of the budget
CHARACTERS_PER_TOKEN = 4  # of a choice, whose reply does not say what it cost


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """The most that is used for one thing, as `models` of plumbline.yaml says.

    `calls` are replies of the model, `tokens` those read and written, except those from a server's cache.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    calls: Annotated[int, Field(ge=1, le=1_000)] = 30
    tokens: Annotated[int, Field(ge=4_000, le=2_000_000)] = 60_000
    seconds: Annotated[float, Field(ge=1, le=1_800)] = 300.0

    def part(self, share: float) -> Self:
        """Return the budget with this share of the calls, tokens and seconds."""
        return replace(
            self, calls=max(1, int(share * self.calls)), tokens=int(share * self.tokens), seconds=share * self.seconds
        )


@dataclass(frozen=True, slots=True)
class Limits(ModelBudget):
    """The most that one incident may use.

    Of an investigation, `steps` are calls of tools, and `samples` the endings that vote beside the first (RCAgent, sections
    4.1 and 5.3).
    """

    steps: Annotated[int, Field(ge=3, le=15)] = 15
    samples: Annotated[int, Field(ge=0, le=20)] = 10


@dataclass(frozen=True, slots=True)
class QuestionLimits(ModelBudget):
    """The most that one question may use. `analyses` are made before the model says how sure a written answer is (LM-PACE)."""

    calls: Annotated[int, Field(ge=1, le=1_000)] = 24
    seconds: Annotated[float, Field(ge=1, le=1_800)] = 60.0
    analyses: Annotated[int, Field(ge=0, le=8)] = 0

    def calls_of_answer(self, draws: int) -> int:
        """Return the calls of a written answer: those that write and judge it, and those that say how sure it is (COE, RCE)."""
        return 2 + 2 * (self.analyses * (1 + draws) or draws)


Trace = Callable[[str, str], AbstractContextManager[None]]
"""Opens a context around the work of an agent (`invoke_agent`, its name) or a call of a tool (`execute_tool`, its name)."""


def untraced(_operation: str, _name: str) -> AbstractContextManager[None]:
    """Trace nothing."""
    return nullcontext()


class MeteredModel:
    """Implements the port over a model; a call beyond the limits raises ModelUnavailable.

    Over another meter, what is left there counts as well. `left_out` names what callers leave out because the limits allow no
    more, in the order of time.
    """

    def __init__(self, model: LanguageModel, limits: ModelBudget | None = None) -> None:
        self.limits = limits or ModelBudget()
        self.calls = 0
        self.tokens = 0
        self._whole = model if isinstance(model, MeteredModel) else None
        self.left_out: dict[str, None] = self._whole.left_out if self._whole is not None else {}
        self._model = model
        self._began = time.monotonic()
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
        """Return the largest share of the calls, tokens and seconds that is spent; above 1 if it is exceeded."""
        limits = self.limits
        return max(self.calls / limits.calls, self.tokens / limits.tokens, self.seconds / limits.seconds)

    @property
    def is_low(self) -> bool:
        """Return whether an investigation may only end: less than a quarter is left, or one call."""
        return self.spent >= ENOUGH or self.calls >= self.limits.calls - 1

    @property
    def summary(self) -> str:
        """Return what was used, and what was left out, in one line; empty if nothing was asked."""
        used = f"{counted(self.calls, 'call')}, {self.tokens:,} tokens, {self.seconds:.0f} s"
        return "; ".join([used, *self.left_out]) if self.calls or self.left_out else ""

    def replies_left(self, share: float = 1.0) -> int:
        """Return how many replies like those so far, one after another, fit into a share of what is left of the budget."""
        whole = self._whole.replies_left() if self._whole is not None else self.limits.calls
        calls = min(whole, share * (self.limits.calls - self.calls))
        if not self.calls:
            return int(calls)
        tokens = share * (self.limits.tokens - self.tokens) / max(1.0, self.tokens / self.calls)
        seconds = share * (self.limits.seconds - self.seconds) / max(1e-6, self._busy / self.calls)
        return max(0, int(min(calls, tokens, seconds)))

    async def context_tokens(self) -> int:
        return await self._model.context_tokens()

    async def count_tokens(self, text: str) -> int:
        return await self._model.count_tokens(text)

    async def abilities(self) -> Abilities:
        return await self._model.abilities()

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        bounded, began = self._bounded(request, 1), time.monotonic()
        reply = await self._model.generate(bounded, on_text)
        self._add([reply], time.monotonic() - began)
        return reply

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        bounded, began = self._bounded(request, count), time.monotonic()
        replies = await self._model.sample(bounded, count)
        self._add(replies, time.monotonic() - began)
        return replies

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        draws = (await self._model.abilities()).draws
        bounded, began = self._bounded(request, draws), time.monotonic()
        odds = await self._model.expect(bounded, choices)
        read = sum(len(message.text) for message in request.messages) // CHARACTERS_PER_TOKEN
        self._add([ModelReply("", read, 0, 0)] * draws, time.monotonic() - began)
        return odds

    def _bounded(self, request: ModelRequest, count: int) -> ModelRequest:
        """Return the request with what is left of the seconds. Counts its replies, so that concurrent calls see them."""
        if self.calls + count > self.limits.calls or self.tokens >= self.limits.tokens:
            self.left_out["a further call"] = None
            raise ModelUnavailable(f"The budget of {self.name} is spent: {self.summary}.")
        self.calls += count
        left = max(LEAST_DEADLINE, self.limits.seconds - self.seconds)
        return replace(request, deadline=min(request.deadline, left))

    def _add(self, replies: Sequence[ModelReply], seconds: float) -> None:
        self.tokens += sum(each.prompt_tokens - each.cached_tokens + each.generated_tokens for each in replies)
        self._busy += seconds
