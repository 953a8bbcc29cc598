"""Check what a language model composed, sentence by sentence, and withhold what its citations do not support."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from core.answering.answer import Sentence
from core.answering.contradictions import claim
from core.answering.model_evidence import Evidence
from core.answering.model_text import cleaned, oversteps
from core.knowledge.terms import distinct_terms
from core.model.language_model import ModelRequest
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

SUPPORT = 0.9  # share of a sentence's distinct terms that the passages that it cites must hold
VERDICT = 0.5  # least probability of a yes; at less the model itself holds a no for likelier
VERDICT_TOKENS = 4  # room for yes or no


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence that cites statements by number, and the probability that the model gives to their supporting it."""

    sentence: Sentence
    probability: float


async def checked(
    model: LanguageModel,
    request: ModelRequest,
    composed: prompts.Composed,
    evidence: Evidence,
    passed: Callable[[list[CheckedSentence]], Awaitable[None]] | None = None,
) -> list[CheckedSentence]:
    """Return the sentences that pass every check, in order; `passed` is told of each one more, if there is more to check.

    A sentence must cite statements that there are; hold no command, number, identifier, address, mention or tag and no
    claim of confidence that these and the headings above them do not; deny only where one of them denies; consist of
    words of the cited passages; and follow from the statements by the model's verdict. The cheap checks come first, so that
    the model judges only what may stay.
    """
    kept: list[CheckedSentence] = []
    left = [each for each in _cleaned(composed, evidence) if _is_plausible(each, evidence)]
    for position, sentence in enumerate(left, start=1):
        asked = prompts.verdict(evidence.sections, sentence.text, sentence.citations)
        probability = await probability_of_yes(model, request, asked)
        if probability >= VERDICT:
            kept.append(CheckedSentence(sentence, probability))
            if passed is not None and position < len(left):
                await passed(kept)
    return kept


async def probability_of_yes(model: LanguageModel, request: ModelRequest, messages: prompts.Messages) -> float:
    """Return the model's probability of a yes, in [0, 1]. Raises what the port raises."""
    asked = replace(request, messages=messages, max_tokens=VERDICT_TOKENS)
    return (await model.expect(asked, prompts.YES_NO))[prompts.YES]


def _cleaned(composed: prompts.Composed, evidence: Evidence) -> Iterator[Sentence]:
    """The sentences that say something for the first time and cite something."""
    seen: set[str] = set()
    for item in composed.sentences:
        text = cleaned(item.text)
        numbers = tuple(number for number in dict.fromkeys(item.statements) if number in evidence.statements)
        if text and numbers and text not in seen:
            seen.add(text)
            yield Sentence(text, numbers)


def _is_plausible(sentence: Sentence, evidence: Evidence) -> bool:
    cited = [evidence.statements[number] for number in sentence.citations]
    seen = "\n".join(part for item in cited for part in (item.passage.title, item.heading, item.lead_in, item.text))
    wanted = distinct_terms(sentence.text)
    held = {term for item in cited for term in distinct_terms(f"{item.passage.title}\n{item.passage.text}")}
    return (
        not oversteps(sentence.text, seen)
        and any(claim(item.text).denies == claim(sentence.text).denies for item in cited)
        and bool(wanted)
        and len(wanted & held) >= SUPPORT * len(wanted)
    )
