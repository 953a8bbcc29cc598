"""Check the sentences of a language model against the passages that they cite: by rules, then by a judge.

Rules decide only what can be compared exactly, after both sides were normalised alike: numbers with their units and times,
commands and identifiers, names, and the negation of a clause. A sentence that is one of a passage, word by word, needs no
judge. Everything else is the judge's: the model itself, if it proved in its exam that it can tell. It reads all open
sentences in one call, each with the passage's sentence that is nearest to it, and says whether the passages say the
sentence, and whether the sentence says what they say: entailment in both directions.

The place of a sentence that contradicts a rule, that the judge refuses, or about which nobody can be asked, is taken by the
passage's own sentence, if one is near: what was shown while the model wrote is corrected and does not vanish. Nothing takes the
place of what may obey an order in a page: it calls people, is sure of itself, or leads to an address that the passages lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise, repeat, takewhile

from core.answering.evidence import NumberedPassages, Written, in_time
from core.answering.model_text import (
    adds_addresses,
    adds_literals,
    adds_names,
    affirmed,
    cleaned,
    is_negative,
    overstates,
    wording,
)
from core.answering.reply import CitedSentence, Form
from core.answering.statements import Statement, sentences, statements
from core.knowledge.markdown import BlockKind, blocks, plain
from core.model.answer import Answer
from core.model.document import Passage
from core.model.errors import InvalidReply
from core.model_calls.judge import SourceVerdict, judged
from core.model_calls.prompts import Named
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

NEAR = 0.5  # share of a sentence's terms; a statement that has more of them may take its place
REMEMBERED = 20_000  # clauses that are kept in memory: some 20 MB

_CLAUSE = re.compile(
    r"[,;:—–]\s|\s\((?=\w)|\)\s|\s(?:and|(?<!nothing )but|while|whereas|which|because|so that)\s", re.IGNORECASE
)
_CONDITIONAL = re.compile(r"\b(?:if|when|once|unless|only|except|until|without|but|before|after)\b", re.IGNORECASE)
_ANSWER = re.compile(r"^(?:yes|no)[,.:;]\s+", re.IGNORECASE)  # and not the “No” of “No pod …”
_WORD = re.compile(r"[^\W_]+")


class Objection(StrEnum):
    """The reason why a sentence is not shown. The value is its name in metrics and evaluations."""

    INJECTION = "states a confidence, calls people, or leads to an address that the passages do not contain"
    LITERAL = "a number, command or identifier that the passages do not contain"
    PRODUCT = "a name that the passages do not contain"
    POLARITY = "denies what the passages say, or says what they deny"
    UNCITED = "no passage cited"
    REFUSED = "not what the passages say, by the model's own judgement"
    UNJUDGED = "left to the model's own judgement, which cannot be read"


NEVER_QUOTED = {Objection.INJECTION, Objection.UNJUDGED}
"""The objections to sentences whose place nothing takes: the passage that such a model cites is not relied on either."""


@dataclass(frozen=True, slots=True)
class CitedText:
    """The text of the cited passages, and its statements."""

    text: str
    statements: tuple[str, ...]


def source_of(passages: Sequence[Passage]) -> CitedText:
    """Return the source of a sentence that cites these passages, with their titles and headings."""
    return CitedText(
        "\n".join(f"{each.document_id}\n{each.title}\n{each.heading}\n{each.text}" for each in passages),
        tuple(statement for each in passages for statement in _statements(each)),
    )


def fault_of(sentence: str, question: str, source: CitedText) -> Objection | None:
    """Return the rule that a sentence contradicts; None if there is none.

    `sentence` is one line of prose without citation marks. What the question says may be repeated.
    """
    allowed, sentence = f"{source.text}\n{question}", _ANSWER.sub("", sentence)
    if overstates(sentence, source.text) or adds_addresses(sentence, allowed):
        return Objection.INJECTION
    if adds_literals(sentence, allowed):
        return Objection.LITERAL
    if adds_names(sentence, allowed):
        return Objection.PRODUCT
    is_denied = not is_verbatim(sentence, source) and any(_is_denied(each, source) for each in clauses(sentence))
    return Objection.POLARITY if is_denied else None


def is_verbatim(sentence: str, source: CitedText) -> bool:
    """Return whether a sentence is a whole statement, or a statement and the one after it, word by word."""
    own = [_words(each) for each in source.statements]
    return _words(sentence) in [*own, *(f"{first} {second}" for first, second in pairwise(own))]


@lru_cache(maxsize=REMEMBERED)
def clauses(statement: str) -> tuple[str, ...]:
    """Return the clauses of a statement that have two terms or more and no condition."""
    return tuple(
        part for part in _CLAUSE.split(statement) if len(wording(affirmed(part))) > 1 and not _CONDITIONAL.search(part)
    )


def _is_denied(clause: str, source: CitedText) -> bool:
    """Return whether clauses of the source have just these words, and all of them the other polarity."""
    own = wording(affirmed(clause))
    alike = [each for statement in source.statements for each in clauses(statement) if wording(affirmed(each)) == own]
    return bool(alike) and all(is_negative(each) != is_negative(clause) for each in alike)


def _statements(passage: Passage) -> Iterator[str]:
    lead = ""
    for block in blocks(passage.text):
        match block.kind:
            case BlockKind.HEADING:
                lead = ""
            case BlockKind.PARAGRAPH:
                lines = sentences(plain(block.text))
                yield from lines
                lead = lines[-1] if lines and lines[-1].endswith(":") else ""
            case BlockKind.CODE | BlockKind.TABLE:
                yield from (f"{lead} {line}".strip() for line in block.text.splitlines() if line.strip())
            case _:
                yield from (f"{lead} {each}".strip() for each in sentences(plain(block.text)))


def _words(text: str) -> str:
    return " ".join(_WORD.findall(cleaned(text).lower()))


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """A claim, and the fault for which it is not shown.

    An `is_open` one is for the judge to decide. An `is_quoted` one is a statement of a passage, in the place of a sentence
    with that fault.
    """

    claim: CitedSentence
    fault: Objection | None = None
    is_open: bool = False
    is_quoted: bool = False

    @property
    def is_shown(self) -> bool:
        return self.fault is None or self.is_quoted


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdicts on the claims of a reply, in order."""

    verdicts: tuple[SentenceVerdict, ...]

    @property
    def kept(self) -> tuple[SentenceVerdict, ...]:
        """Return the claims that may be shown: steps of a list all or none, and no lead without what it introduces.

        “Run this:” does not introduce a quote, which may say never to run it.
        """
        is_broken = any(not each.is_shown and each.claim.form is Form.STEP for each in self.verdicts)
        kept: list[SentenceVerdict] = []
        introduces = False
        for each in reversed(self.verdicts):
            is_lead = each.claim.is_lead
            if each.is_shown and not (is_broken and each.claim.form is Form.STEP) and (introduces or not is_lead):
                kept.append(each)
            introduces = introduces if is_lead else kept[-1:] == [each] and not each.is_quoted
        return tuple(kept[::-1]) if any(not each.claim.is_lead for each in kept) else ()

    @property
    def claims(self) -> tuple[CitedSentence, ...]:
        return tuple(each.claim for each in self.kept)

    def may_replace(self, engine_answer: Answer) -> bool:
        """Return whether it may be shown instead of the evidence engine's answer: quotes alone not instead of an abstention."""
        return any(not each.claim.is_lead and not (each.is_quoted and engine_answer.abstained) for each in self.kept)

    @property
    def left_out(self) -> int:
        """Return the number of sentences that are not shown, without leads."""
        return sum(not each.claim.is_lead for each in self.verdicts) - sum(not each.claim.is_lead for each in self.kept)

    @property
    def quoted(self) -> int:
        """Return the number of sentences that a passage's own words stand for."""
        return sum(each.is_quoted for each in self.kept)


def by_rules(statements: Sequence[CitedSentence], query: str, evidence: NumberedPassages) -> Checked:
    """Return the verdicts of the rules."""
    return _once([_by_rules(claim, query, evidence) for claim in statements])


def _by_rules(claim: CitedSentence, query: str, evidence: NumberedPassages) -> SentenceVerdict:
    cited = evidence.cited(claim.numbers)
    if not cited and not claim.is_lead:
        return SentenceVerdict(claim, Objection.UNCITED)
    source = source_of(cited or list(evidence.passages.values()))
    lines, own = ([line.strip("$ `") for line in text.splitlines()] for text in (claim.text, source.text))
    is_code = claim.form is Form.CODE
    stated = [f"`{line}`" for line in lines[1:-1] if line and line not in own] if is_code else [claim.text]
    fault = next(filter(None, (fault_of(each, query, source) for each in stated)), None)
    return (
        SentenceVerdict(claim, is_open=not is_code and not is_verbatim(claim.text, source))
        if fault is None
        else _refused(claim, fault, evidence)
    )


async def by_judge(checked: Checked, written: Written, model: LanguageModel | None) -> Checked:
    """Return the verdicts with those of the model on the claims that the rules leave open.

    Refused are also those about which there is no model to ask, or none that answers in time.
    """
    open_claims = [each.claim for each in checked.verdicts if each.is_open]
    approved = (
        await in_time(_approved(open_claims, written, model), written) if model is not None and open_claims else None
    )
    fault = Objection.UNJUDGED if approved == [] else Objection.REFUSED
    judged = {
        claim: SentenceVerdict(claim) if is_right else _refused(claim, fault, written.evidence)
        for claim, is_right in zip(open_claims, approved or repeat(False), strict=False)
    }
    return _once([judged[each.claim] if each.is_open else each for each in checked.verdicts])


def _once(verdicts: Sequence[SentenceVerdict]) -> Checked:
    """Return the verdicts, one for each text that is shown: two sentences may have the same quote in their place.

    A quote also gives way to the same sentence of the model, which may be a step of a list or stand below a lead.
    """
    best_first = sorted(verdicts, key=lambda each: each.is_quoted)  # of equal keys, a dictionary keeps the last value
    shown = {each.claim.text.rstrip("."): each for each in reversed(best_first) if each.is_shown}
    return Checked(tuple(each for each in verdicts if not each.is_shown or each is shown[each.claim.text.rstrip(".")]))


def _refused(claim: CitedSentence, fault: Objection, evidence: NumberedPassages) -> SentenceVerdict:
    """Return the verdict on a claim with a fault: if a statement of what it cites is near, that takes its place.

    An order in a page that calls people, or that claims to be sure, takes no place, and no item of what never to do.
    """
    number, nearest, share = max(nearest_statements(claim, evidence), key=lambda each: each[2], default=(0, None, 0.0))
    return (
        SentenceVerdict(CitedSentence(nearest.text, (number,)), fault, is_quoted=True)
        if nearest is not None
        and share > NEAR
        and not (claim.is_lead or fault in NEVER_QUOTED)
        and not (overstates(nearest.text, nearest.text) or is_negative(_lead_of(nearest)))
        else SentenceVerdict(claim, fault)
    )


def _lead_of(statement: Statement) -> str:
    """Return what introduces a list item, a row or code, such as “Never do any of these:”; empty if nothing does."""
    before = takewhile(lambda each: each != statement, statements(statement.passage))
    others = ["", *(each.text for each in before if each.kind is not statement.kind)]
    return others[-1] if others[-1].endswith(":") else ""


def nearest_statements(claim: CitedSentence, evidence: NumberedPassages) -> list[tuple[int, Statement, float]]:
    """Return of each passage that a claim cites its number, the statement that shares the most terms with the claim, and the
    share of these terms.
    """
    terms = wording(claim.text)
    nearest = [
        (number, max(stated, key=lambda each: len(terms & wording(each.text))))
        for number in claim.numbers
        for stated in map(statements, evidence.cited([number]))
        if stated
    ]
    return [(number, each, len(terms & wording(each.text)) / (len(terms) or 1)) for number, each in nearest]


async def _approved(claims: Sequence[CitedSentence], written: Written, model: LanguageModel) -> list[bool]:
    """Return of each claim whether the model says that its passages say just that; of a lead, that it only introduces.

    Empty if it gives no verdicts.
    """
    named = [
        Named(
            f"{claim.text} {''.join(f'[{number}]' for number in claim.numbers)}",
            next((each.text for _, each, _ in nearest_statements(claim, written.evidence)), ""),
        )
        for claim in claims
    ]
    try:
        verdicts = await judged(
            prompts.judge(written.evidence.shown, written.query, named), len(claims), model, written.writing
        )
    except InvalidReply:
        return []  # such a judge says nothing of what it wrote
    return [
        verdict is SourceVerdict.SAID or (verdict is SourceVerdict.LEAD and claim.is_lead)
        for claim, verdict in zip(claims, verdicts, strict=True)
    ]
