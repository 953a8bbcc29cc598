"""The numbered passages that a language model reads, of the size that its context allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from core.answering.composed.reply import CitedSentence
from core.answering.families import named_families
from core.answering.rewrite import compares
from core.knowledge.retriever import Retrieval
from core.model.document import Passage
from core.model_calls.context_budget import fitting_texts
from core.model_calls.prompts.composing import Messages, Numbered
from core.ports import LanguageModel

VOTERS = 5  # best passages that vote on the family (Evidence-Chain RAG, family vote)
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

    def cited(self, numbers: Iterable[int]) -> list[Passage]:
        """Return the passages of these numbers. A number that was not shown names none."""
        return [self.passages[number] for number in numbers if number in self.passages]


def relevant(query: str, retrieval: Retrieval) -> list[Passage]:
    """Return the passages to read, best first: of one family, unless the question compares or no family is clear.

    The family is the one that the question names, else the one for which the best passages vote with their scores
    (Evidence-Chain RAG, family vote). Where no family has most of the votes, `of_one_family` filters what is cited.
    """
    ranked = retrieval.passages
    named = named_families(query, retrieval.families)
    if compares(query) or len(named) > 1:
        return [each.passage for each in ranked]
    votes = Counter[str]()
    for each in [each for each in ranked if not named or each.passage.family in named][:VOTERS] or ranked[:VOTERS]:
        votes[each.passage.family] += each.score  # pyright: ignore[reportArgumentType] a Counter adds any number
    family = max(votes, key=lambda family: votes[family], default="")
    is_clear = votes[family] >= CLEAR * fsum(votes.values())
    return [each.passage for each in ranked if each.passage.family == family or not is_clear]


def of_one_family(claims: Sequence[CitedSentence], query: str, evidence: NumberedPassages) -> list[CitedSentence]:
    """Return the claims that cite the family of the first one, all if the question compares (citation filter)."""
    families = [{passage.family for passage in evidence.cited(claim.numbers)} for claim in claims]
    first = next(filter(None, families), set[str]())
    return [
        claim for claim, cited in zip(claims, families, strict=True) if not cited or cited & first or compares(query)
    ]


async def fitting(
    model: LanguageModel, passages: Sequence[Passage], empty: Messages, max_tokens: int
) -> NumberedPassages:
    """Return the best passages that fit into the model's context, beside the prompt without them and the reply.

    A passage that does not fit is left out, and shorter ones after it may still fit. Raises PromptTooLong if none
    fits, and ModelUnavailable.
    """
    places = await fitting_texts(model, empty, max_tokens, [f"{_name(each)}\n{each.text}" for each in passages])
    return NumberedPassages(dict(enumerate((passages[place] for place in places), start=1)))


def _name(passage: Passage) -> str:
    return " › ".join(dict.fromkeys(filter(None, (passage.family, passage.title, passage.heading))))
