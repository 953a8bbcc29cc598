"""The numbered passages that a language model reads, and its reply, whose sentences, list items and table rows cite them.

The passages are as many as its context allows.

The sureness of a written answer, by further replies and by the analyses of LM-PACE, if the server has free slots.

None of it may cost the answer: what is not ready in time, or fails, is left out.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import fsum
from typing import Any, TypeVar

from core.answering.model_text import cleaned, wording
from core.answering.questions import compares
from core.answering.statements import sentences
from core.confidence.model_estimator import Claim, Effort, Reference, estimate
from core.knowledge.retriever import Retrieval, named_families
from core.model.badge import Evaluation
from core.model.document import Passage
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelRequest
from core.model_calls.choice import fitting_texts
from core.model_calls.prompts import answering as prompts
from core.model_calls.prompts.answering import Messages, Numbered
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


NOT_FOUND = "NOT FOUND"  # the reply of a model that finds no answer
MAX_CLAIMS = 12  # sentences, items and rows that are read of a reply

_MARKS = re.compile(r"[\[【]\s*+(\d{1,3}(?:\s*+,\s*+\d{1,3})*+)\s*+[\]】]")
_ITEM = re.compile(r"^\s*+(?:[-*+•]|(\d{1,2})[.)])\s+(?=\S)")
_RULE = re.compile(r"^[\s|:-]+$")
_MARK_AFTER = re.compile(r"([.!?。！？])((?:\s*+[\[【]\s*+\d{1,3}(?:\s*+,\s*+\d{1,3})*+\s*+[\]】])++)")
_MARKED_END = re.compile(r"(?<=[\]】][.!?。！？])\s+")  # a sentence may begin with a name in lower case
_NOT_FOUND = re.compile(r"\W*not[ _]found\b", re.IGNORECASE)


class Form(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    STEP = "step"  # of a numbered list
    ROW = "row"  # of a table


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence, list item or table row, without its marks, and the numbers of the passages that it cites."""

    text: str
    numbers: tuple[int, ...]
    form: Form = Form.SENTENCE


def is_not_found(reply: str) -> bool:
    """Return whether a model says that the passages do not answer."""
    return not reply.strip() or bool(_NOT_FOUND.match(reply))


def claims(reply: str) -> list[CitedSentence]:
    """Return the claims of a reply in order, at most MAX_CLAIMS.

    A claim without marks cites what the next one of the same line cites: a model may cite once after two sentences. The
    rows of a table keep their cells, separated by “ | ”.
    """
    result: list[CitedSentence] = []
    for line in reply.splitlines():
        result += _row(line) if _is_row(line) else _sentences(line)
    return result[:MAX_CLAIMS]


def complete_claims(growing: str) -> list[CitedSentence]:
    """Return the claims of a reply that still grows, without the last one, which may be incomplete."""
    return claims(growing)[:-1]


def _is_row(line: str) -> bool:
    bare = _MARKS.sub(" ", line).strip()
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def _row(line: str) -> list[CitedSentence]:
    if _RULE.match(line):
        return []
    cells = [" ".join(cleaned(cell).split()) for cell in _MARKS.sub(" ", line).strip().strip("|").split("|")]
    return [CitedSentence(" | ".join(cells), _numbers(line), Form.ROW)] if any(cells) else []


def _sentences(line: str) -> list[CitedSentence]:
    item = _ITEM.match(line)
    form = (Form.STEP if item[1] else Form.ITEM) if item else Form.SENTENCE
    text = _MARK_AFTER.sub(r"\2\1", line[item.end() :] if item else line)  # “It is. [1]” is “It is [1].”
    parts = [text] if item else [part for each in _MARKED_END.split(text) for part in sentences(each)]
    result: list[CitedSentence] = []
    later: tuple[int, ...] = ()
    for part in reversed(parts):
        later = _numbers(part) or later
        if statement := cleaned(part):
            result.append(CitedSentence(statement, later, form))
    return result[::-1]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(each) for group in _MARKS.findall(text) for each in group.split(",")))


SAMPLES = 3  # further replies and analyses, if they can be generated concurrently
SAMPLED_AT = 0.7  # temperature of the replies
AGREES = 0.5  # share of a sentence's terms in another reply from which that reply agrees
ANALYSIS_TOKENS = 128
VERDICT_TOKENS = 4  # room for yes or no
RESERVED = 0.2  # of the deadline, which is left for what follows

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Written:
    """An answer: the claims that passed the rules, and the request that they were written for.

    `query` was asked at `asked_at`. `ends_at` is the end of the deadline by the clock of the event loop.
    """

    query: str
    asked_at: datetime
    evidence: NumberedPassages
    claims: tuple[CitedSentence, ...]
    writing: ModelRequest
    ends_at: float


@dataclass(frozen=True, slots=True)
class Sureness:
    """The share of replies that agree with the first sentence, and the model's rating of the answer (LM-PACE, RCE).

    Both are 1 if they are not known. `coe` is how probable it is that the passages answer, None if that is not known.
    """

    agreement: float = 1.0
    rating: float = 1.0
    coe: float | None = None


async def sureness_of(written: Written, model: LanguageModel, abilities: Abilities) -> Sureness:
    """Return how sure the answer is, as far as the server's abilities and the time allow."""
    if abilities.parallel <= SAMPLES:
        return Sureness(coe=await in_time(_coe(written, model), written) if abilities.odds else None)
    if not abilities.odds:
        agreement = await in_time(_agreement(written, model), written)
        return Sureness(1.0 if agreement is None else agreement)
    agreement, judged = await asyncio.gather(
        in_time(_agreement(written, model), written), in_time(_judged(written, model), written)
    )
    agreement = 1.0 if agreement is None else agreement
    return Sureness(agreement, judged.rce, judged.coe) if judged else Sureness(agreement)


async def in_time(call: Coroutine[Any, Any, T], written: Written) -> T | None:
    """Return the result; None if the model fails or the call takes too long."""
    try:
        async with asyncio.timeout_at(written.ends_at - RESERVED * written.writing.deadline):
            return await call
    except (ModelUnavailable, InvalidReply, PromptTooLong, TimeoutError):
        return None


async def _agreement(written: Written, model: LanguageModel) -> float:
    """Return the share of replies, the shown one included, that say what the first sentence says."""
    replies = await model.sample(
        replace(written.writing, temperature=SAMPLED_AT, seed=written.writing.seed + 1), SAMPLES
    )
    terms = wording(next(claim.text for claim in written.claims if claim.numbers))
    agreeing = sum(len(terms & wording(reply.text)) >= AGREES * len(terms) for reply in replies)
    return (1 + agreeing) / (1 + len(replies))


async def _coe(written: Written, model: LanguageModel) -> float:
    """Return how probable it is that the passages answer, by one yes or no (LM-PACE, section 4.2, without analyses)."""
    asking = prompts.suffices(written.evidence.shown, written.query)
    verdict = await model.expect(
        replace(written.writing, messages=asking, max_tokens=VERDICT_TOKENS), (prompts.YES, prompts.NO)
    )
    return verdict[prompts.YES]


async def _judged(written: Written, model: LanguageModel) -> Evaluation:
    """Return COE and RCE after analyses (LM-PACE, sections 4.2 and 4.3); the passages are the references, cited ones first."""
    cited = {number for claim in written.claims for number in claim.numbers}
    passages = sorted(written.evidence.passages.items(), key=lambda each: each[0] not in cited)
    room = min(Effort().reference_tokens, await model.context_tokens() // 2)
    return await estimate(
        model,
        Claim("", written.query, "\n".join(claim.text for claim in written.claims), written.asked_at),
        [Reference(passage.document_id, passage.text) for _, passage in passages],
        written.writing,
        Effort(SAMPLES, ANALYSIS_TOKENS, room),
    )
