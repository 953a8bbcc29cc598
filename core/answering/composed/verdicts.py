"""Decide which claims of a reply may be shown: by rules, then by the model's own yes or no.

Rules that compare literals, names and words decide alone. Rules that compare meanings are often wrong about a paraphrase,
so they only raise a doubt. A doubted claim is shown if the model says that the passages say it and, asked the other way
round, that it does not have this fault. A model that says yes to everything dispels no doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.answering.composed.checker import Objection, fault_of, source_of
from core.answering.composed.evidence import CitedSentence, Form, NumberedPassages
from core.answering.composed.sureness import SAMPLED_AT, SAMPLES, VERDICT_TOKENS, Written, in_time
from core.model.language_model import Abilities, ModelRequest
from core.model_calls.label_odds import label_schema
from core.model_calls.prompts import composing as prompts
from core.ports import LanguageModel

SUPPORTED = 0.5  # least probability, by the model itself, that the passages say a claim
DISPELLED = 0.8  # the same of a claim that a rule doubts, by both answers of the model

DOUBTS = {
    Objection.CLAUSE: "add something",
    Objection.POLARITY: "deny what they say, or say what they deny",
    Objection.DIRECTION: "turn around a direction, an order, or who does what",
    Objection.BINDING: "give a value, command or name to something that it does not belong to",
    Objection.CONDITION: "leave out a condition, add one, or say more than they do",
}
"""The faults that a rule only suspects, in the words in which the model is asked about them."""


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """A claim, and the fault for which it is not shown. A `doubt` is a fault that only a rule suspects.

    `support` is the probability, by the model, that the passages say the claim; None if it gave no verdict.
    """

    claim: CitedSentence
    doubt: Objection | None = None
    fault: Objection | None = None
    support: float | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts on the claims of a reply."""

    verdicts: tuple[SentenceVerdict, ...]

    @property
    def kept(self) -> tuple[SentenceVerdict, ...]:
        """Return the claims that may be shown: none if the first one has a fault, or a step of a list of steps."""
        kept = tuple(each for each in self.verdicts if each.fault is None)
        is_lost = any(each.claim.form is Form.STEP for each in self.verdicts if each.fault)
        return () if is_lost or kept[:1] != self.verdicts[:1] or not any(each.claim.numbers for each in kept) else kept

    @property
    def claims(self) -> tuple[CitedSentence, ...]:
        return tuple(each.claim for each in self.kept)

    @property
    def faults(self) -> Mapping[Objection, int]:
        return Counter(each.fault for each in self.verdicts if each.fault)

    @property
    def support(self) -> float:
        """Return the lowest probability of those kept: an answer is as good as its weakest sentence."""
        return min((1.0 if each.support is None else each.support for each in self.kept), default=0.0)

    @property
    def by_rules(self) -> bool:
        """Return whether only the rules decided on a claim that is kept."""
        return any(each.support is None and each.claim.numbers for each in self.kept)


def by_rules(statements: Sequence[CitedSentence], query: str, evidence: NumberedPassages) -> Checked:
    """Return the verdicts of the rules. A claim that they doubt is kept if the model can be asked about it."""
    faults = [(claim, fault_in(claim, query, evidence)) for claim in statements]
    return Checked(
        tuple(
            SentenceVerdict(claim, doubt=fault)
            if fault in DOUBTS and claim.numbers
            else SentenceVerdict(claim, fault=fault)
            for claim, fault in faults
        )
    )


def fault_in(claim: CitedSentence, query: str, evidence: NumberedPassages) -> Objection | None:
    """Return the fault of a claim; None if it may be shown, as far as rules can tell.

    A sentence that introduces a list may cite nothing, but must not add anything to the question and the passages.
    """
    cited = evidence.cited(claim.numbers)
    if not claim.text:
        return Objection.REPEAT
    if claim.text.endswith(":") and not cited:
        fault = fault_of(claim.text, query, source_of(list(evidence.passages.values())))
        return fault if fault is not Objection.REPEAT else None
    return fault_of(claim.text, query, source_of(cited)) if cited else Objection.UNCITED


async def by_model(checked: Checked, written: Written, model: LanguageModel, abilities: Abilities) -> Checked:
    """Return the verdicts of the model on the claims that the rules kept, with those of the rules on the others.

    If the server reports no probabilities, a verdict is the share of SAMPLES replies; without these in time, only claims
    without a doubt are kept. Raises the errors of the port if it does report them.
    """
    verdicts = list(checked.verdicts)
    for place, each in enumerate(verdicts):
        if each.fault is None and each.claim.numbers:
            verdicts[place] = await _verdict(each, written, model, abilities)
        if not Checked(tuple(verdicts)).kept:
            break
    return Checked(tuple(verdicts))


async def _verdict(
    each: SentenceVerdict, written: Written, model: LanguageModel, abilities: Abilities
) -> SentenceVerdict:
    shown, claim = written.evidence.shown, each.claim

    async def answered(messages: prompts.Messages, answer: str) -> float | None:
        asking = replace(written.writing, messages=messages, max_tokens=VERDICT_TOKENS)
        if abilities.odds:
            return (await model.expect(asking, (prompts.YES, prompts.NO)))[answer]
        return await in_time(_share(model, asking, answer), written)

    support = await answered(prompts.supports(shown, written.query, claim.text, claim.numbers), prompts.YES)
    if each.doubt and support is not None and support >= DISPELLED:
        asking = prompts.alters(shown, written.query, claim.text, claim.numbers, DOUBTS[each.doubt])
        denied = await answered(asking, prompts.NO)
        support = None if denied is None else min(support, denied)
    if support is None:
        return replace(each, fault=each.doubt)
    is_kept = support >= (DISPELLED if each.doubt else SUPPORTED)
    return replace(each, fault=None if is_kept else each.doubt or Objection.DOUBTED, support=support)


async def _share(model: LanguageModel, request: ModelRequest, answer: str) -> float:
    """Return the share of an answer among SAMPLES replies of yes or no."""
    schema = label_schema((prompts.YES, prompts.NO))
    replies = await model.sample(replace(request, schema=schema, temperature=SAMPLED_AT), SAMPLES)
    return sum(reply.text.strip().strip('"') == answer for reply in replies) / len(replies)
