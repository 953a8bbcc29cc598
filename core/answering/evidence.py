"""The numbered passages that a language model reads, as many as its context allows.

The model also says how sure a written answer is (LM-PACE). That may not cost the answer: what is not ready in time, or fails,
is left out.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from math import fsum
from typing import TypeVar

from core.answering.questions import parts
from core.answering.reply import CitedSentence
from core.confidence.model_estimator import Claim, Effort, Reference, estimate, mean_rating
from core.knowledge.retriever import Retrieval, named_families
from core.model.badge import Evaluation
from core.model.document import Passage
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelRequest
from core.model_calls.choice import fitting_texts
from core.model_calls.judge import VERDICT_TOKENS
from core.model_calls.prompts import answering as prompts
from core.model_calls.prompts.answering import Messages, Numbered
from core.ports import LanguageModel

VOTERS = 5  # best passages that vote on the family (Evidence-Chain RAG, family vote)
READ_TOKENS = 7_000  # of passages; what is asked about the answer is asked about those that it cites alone
CLEAR = 0.8  # share of the votes from which only the passages of that family are read


@dataclass(frozen=True, slots=True)
class NumberedPassages:
    """Passages by the number with which they are cited: 1 for the best."""

    passages: Mapping[int, Passage]

    @property
    def shown(self) -> list[Numbered]:
        """Return the passages as the prompt shows them: the best first, the second best last, and so on inwards.

        A model reads the middle of a long prompt with the least care (Ericsson chatbot, section V-B, reordering).
        """
        ranked = [Numbered(number, _name(each), each.text) for number, each in self.passages.items()]
        return [*ranked[::2], *ranked[1::2][::-1]]

    def of(self, claims: Iterable[CitedSentence]) -> NumberedPassages:
        """Return the passages that claims cite."""
        cited = {number for claim in claims for number in claim.numbers}
        return NumberedPassages({number: each for number, each in self.passages.items() if number in cited})

    def cited(self, numbers: Iterable[int]) -> list[Passage]:
        """Return the passages of these numbers. A number that was not shown names none."""
        return [self.passages[number] for number in numbers if number in self.passages]


def relevant(retrievals: Mapping[str, Retrieval], *, of_family: bool = True) -> list[Passage]:
    """Return the passages to read, best first, of each part of a question by turns: those `of_family`, if it is clear.

    The family of a part is the one that it names, else the one for which the best passages vote with their scores
    (Evidence-Chain RAG, family vote). Where no family has most of the votes, `of_their_families` filters what is cited.
    """
    read = [
        _of_family(part, retrieval) if of_family else [each.passage for each in retrieval.passages]
        for part, retrieval in retrievals.items()
    ]
    return list({each.id: each for turn in zip_longest(*read) for each in turn if each is not None}.values())


def _of_family(part: str, retrieval: Retrieval) -> list[Passage]:
    ranked = retrieval.passages
    named = named_families(part, retrieval.families)
    votes = Counter[str]()
    for each in [each for each in ranked if not named or each.passage.family in named][:VOTERS] or ranked[:VOTERS]:
        votes[each.passage.family] += each.score  # pyright: ignore[reportArgumentType] a Counter adds any number
    family = max(votes, key=lambda family: votes[family], default="")
    is_clear = len(named) < 2 and votes[family] >= CLEAR * fsum(votes.values())
    return [each.passage for each in ranked if each.passage.family == family or not is_clear]


def of_their_families(claims: Sequence[CitedSentence], query: str, evidence: NumberedPassages) -> list[CitedSentence]:
    """Return the claims that cite a family that the question names, or the first ones, one for each part of the question."""
    families = [{passage.family for passage in evidence.cited(claim.numbers)} for claim in claims]
    first = list(dict.fromkeys(chain.from_iterable(map(sorted, families))))[: len(parts(query))]
    kept = named_families(query, frozenset(each.family for each in evidence.passages.values())).union(first)
    return [claim for claim, cited in zip(claims, families, strict=True) if not cited or cited & kept]


async def fitting(
    model: LanguageModel, passages: Sequence[Passage], empty: Messages, max_tokens: int
) -> NumberedPassages:
    """Return the best passages that fit into the model's context, beside the prompt without them and the reply.

    A passage that does not fit is left out, and shorter ones after it may still fit. Raises PromptTooLong if none
    fits, and ModelUnavailable.
    """
    texts = [f"{_name(each)}\n{each.text}" for each in passages]
    places = await fitting_texts(model, empty, max_tokens, texts, READ_TOKENS)
    return NumberedPassages(dict(enumerate((passages[place] for place in places), start=1)))


def _name(passage: Passage) -> str:
    return " › ".join(dict.fromkeys(filter(None, (passage.family, passage.title, passage.heading))))


RESERVED = 0.2  # of the deadline, which is left for what follows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """An answer: the claims that passed the rules, the passages that they cite, and the request that they were written for.

    `ends_at` is the end of the deadline by the clock of the event loop.
    """

    query: str
    evidence: NumberedPassages
    claims: tuple[CitedSentence, ...]
    writing: ModelRequest
    ends_at: float


async def sureness_of(written: Written, model: LanguageModel, abilities: Abilities, analyses: int) -> Evaluation | None:
    """Return how probable it is that the passages answer (COE), and how far they support what is written (RCE).

    With `analyses`, LM-PACE's estimator judges by the passages as references (sections 4.1 to 4.3). Without, each measure is
    one reply, if the server reports probabilities. None if there is no result in time.
    """
    shown, text = written.evidence.shown, "\n".join(claim.text for claim in written.claims)
    if analyses:
        return await in_time(
            estimate(
                model,
                Claim("", written.query, text, datetime.now(UTC)),
                [Reference(each.id, f"{_name(each)}\n{each.text}") for each in written.evidence.passages.values()],
                written.writing,
                Effort(analyses, reference_tokens=READ_TOKENS),
            ),
            written,
        )
    if not (abilities.odds or abilities.draws > 1):
        return None

    async def odds(messages: Messages, choices: tuple[str, ...]) -> dict[str, float]:
        return await model.expect(replace(written.writing, messages=messages, max_tokens=VERDICT_TOKENS), choices)

    both = await in_time(
        asyncio.gather(
            odds(prompts.suffices(shown, written.query), (prompts.YES, prompts.NO)),
            odds(prompts.rates(shown, written.query, text), prompts.SCALE),
        ),
        written,
    )
    return Evaluation(both[0][prompts.YES], mean_rating(both[1])) if both else None


async def in_time(call: Awaitable[T], written: Written) -> T | None:
    """Return the result; None if the model fails or the call takes too long."""
    try:
        async with asyncio.timeout_at(written.ends_at - RESERVED * written.writing.deadline):
            return await call
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError):
        return None
