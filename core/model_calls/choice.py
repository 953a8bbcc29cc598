"""A choice among candidates that a language model makes in one constrained call, and how much it counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.model.language_model import ChatMessage, ModelRequest
from core.ports import LanguageModel

NONE = "none of them"  # in place of the name of a candidate
NAME_TOKENS = 32  # room for a name


@dataclass(frozen=True, slots=True)
class Skill:
    """The worth of a model: the share of right choices that its exam proves, in [0, 1], and whether its sentences are shown."""

    right: float
    composes: bool = False


async def choose(
    model: LanguageModel, request: ModelRequest, messages: tuple[ChatMessage, ...], names: Sequence[str]
) -> list[float]:
    """Return the probability of each of `names`, in their order, and of NONE; they sum to 1.

    `request` says for whom and by when the model is asked; its messages are replaced. Raises what the port raises.
    """
    told = await model.expect(replace(request, messages=messages, max_tokens=NAME_TOKENS), [*names, NONE])
    return [told[name] for name in (*names, NONE)]


def weighed(told: Sequence[float], before: Sequence[float], right: float) -> list[float]:
    """Return the probability of each candidate and of none, by Bayes' rule; they sum to 1.

    `told` is what the model says of them, and sums to 1; `before` is what was measured without it. A model that is right
    in the share `right` of its choices is taken to choose at random in the others, so that one that always does changes
    nothing.
    """
    odds = [prior * (right * share + (1.0 - right) / len(told)) for prior, share in zip(before, told, strict=True)]
    total = math.fsum(odds) or 1.0
    return [each / total for each in odds]
