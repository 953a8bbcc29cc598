"""Let a language model choose among candidates in one constrained call, and weight its choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from core.model.language_model import ChatMessage, ModelRequest
from core.ports import LanguageModel

NONE = "none of them"  # in place of the name of a candidate
NAME_TOKENS = 32  # room for a name
PROVEN = 0.75  # share of right answers from which those with strong evidence need no hedge


class Use(StrEnum):
    """The uses of a language model. The value is its name in plumbline.yaml."""

    ANSWERS = "answers"
    CAUSES = "causes"
    OWNERS = "owners"


class Trust(StrEnum):
    """The trust of the operator in a model, for one use."""

    MEASURED = "measured"  # as far as its exam proves
    ALWAYS = "always"  # used without an exam
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Skill:
    """The skill of a model: the shares that its exam proves, in [0, 1], or that the operator vouches for.

    `right` is that of right choices, `writes` that of right answers in its own words, `tools` that of right calls of tools;
    0 if it is not used for that. With `always`, it is also asked where the evidence engine is certain.
    """

    right: float
    writes: float = 0.0
    tools: float = 0.0
    always: bool = False

    @property
    def is_proven(self) -> bool:
        """Return whether what it writes may be shown without a hedge, if the evidence for it is strong."""
        return self.writes >= PROVEN


VOUCHED = Skill(0.9, 0.9, 0.9, always=True)
"""The skill of a model that the operator trusts: as of one that is right in nine of ten cases."""


async def choose(
    model: LanguageModel, request: ModelRequest, messages: tuple[ChatMessage, ...], names: Sequence[str]
) -> list[float]:
    """Return the probability of each of `names`, in their order, and of NONE; they sum to 1.

    `request` gives requester, urgency and deadline; its messages are replaced. Raises the errors of the port.
    """
    distribution = await model.expect(replace(request, messages=messages, max_tokens=NAME_TOKENS), [*names, NONE])
    return [distribution[name] for name in (*names, NONE)]


def weighed(distribution: Sequence[float], before: Sequence[float], right: float) -> list[float]:
    """Return the probability of each candidate and of none, by Bayes' rule; they sum to 1.

    `distribution` is the model's distribution, which sums to 1; `before` are the probabilities without the model. A model that
    is right in the share `right` of its choices is assumed to choose at random otherwise, so that a model that always
    chooses at random changes nothing.
    """
    odds = [
        prior * (right * share + (1.0 - right) / len(distribution))
        for prior, share in zip(before, distribution, strict=True)
    ]
    total = math.fsum(odds) or 1.0
    return [each / total for each in odds]
