"""Check the sentences of a language model against the passages that they cite: by rules, then by its own yes or no.

A sentence is compared with the statements of its passages (sentences, list items, table rows, lines of code), clause by
clause. It may use other words and another order, but no other literals, polarity, direction, condition or product.
`fault_of` returns the first fault; a sentence without one is a faithful paraphrase, as far as rules can tell.

Rules that compare literals, names and words decide alone. Rules that compare meanings are often wrong about a paraphrase,
so they only raise a doubt. A doubted claim is shown if the model says that the passages say it and, asked the other way
round, that it does not have this fault. A model that says yes to everything dispels no doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise

from core.answering.evidence import (
    SAMPLED_AT,
    SAMPLES,
    VERDICT_TOKENS,
    CitedSentence,
    Form,
    NumberedPassages,
    Written,
    in_time,
)
from core.answering.model_text import (
    EXCEPTIONS,
    RESTRICTIONS,
    adds_literals,
    cleaned,
    conditions,
    contradicts,
    directions,
    exaggerates,
    in_units_of,
    is_negative,
    limits,
    literals,
    names,
    overstates,
    softens,
    stands_in,
    swaps,
    unconditional,
    wording,
)
from core.answering.statements import sentences
from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.terms import STOP_WORDS, distinct_terms
from core.model.document import Passage
from core.model.language_model import Abilities, ModelRequest
from core.model_calls.constrained_reply import label_schema
from core.model_calls.prompts import answering as prompts
from core.ports import LanguageModel

SUPPORT = 0.45  # least share of a sentence's terms that are in its passages or in the question
NEAR = 0.8  # of the best overlap: a statement with so much of it is read as well
CONTEXT = 0.5  # weight of a term that only the rest of the sentence shares with a statement
NEARLY = 0.6  # the same, of a clause of a statement
SPOKEN_OF = 0.5  # share of a condition's terms that must be in the sentence or the question
REMEMBERED = 20_000  # clauses that are kept in memory: some 20 MB
BOUND = 2  # terms that a clause of the source must share with a clause, to say the same of another literal

_CLAUSE = re.compile(
    r"[,;:—–]\s|\s\((?=\w)|\)\s|\s(?:and|(?<!nothing )but|while|whereas|which|because|so that)\s", re.IGNORECASE
)
_COMPOUND = re.compile(r"(?<![\w`.-])[a-z]\w+-[a-z]\w+(?![\w.-])")  # “source-controller”
_WORD = re.compile(r"[^\W_]+")


class Objection(StrEnum):
    """The reason why a sentence is not shown. The value is its name in metrics and evaluations."""

    CONFIDENCE = "states a confidence or calls people"
    LITERAL = "a number, command or name that the passages do not contain"
    PRODUCT = "a name that the passages do not contain"
    SUPPORT = "words that the passages do not contain"
    CLAUSE = "a clause without a word of the passages"
    REPEAT = "nothing beyond the question"
    POLARITY = "denies what the passages say, or says what they deny"
    DIRECTION = "another direction or role"
    BINDING = "a value that belongs to something else"
    CONDITION = "a condition left out or added"
    UNCITED = "no passage cited"
    DOUBTED = "not supported, by the model's own judgement"


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a statement, with its terms and its literals, whether or not they stand between code marks."""

    text: str
    terms: frozenset[str]
    literals: frozenset[str]


@dataclass(frozen=True, slots=True)
class CitedText:
    """The text of the cited passages, and its statements as clauses."""

    text: str
    statements: tuple[str, ...]

    @property
    def whole(self) -> Iterator[Clause]:
        """Yield each statement as one clause."""
        return map(_clause, self.statements)

    @property
    def clauses(self) -> Iterator[Clause]:
        for statement in self.statements:
            yield from clauses(statement)


def source_of(passages: Sequence[Passage]) -> CitedText:
    """Return the source of a sentence that cites these passages, with their titles and headings."""
    text = "\n".join(f"{each.document_id}\n{each.title}\n{each.heading}\n{each.text}" for each in passages)
    return CitedText(text, tuple(statement for each in passages for statement in _statements(each)))


def fault_of(sentence: str, question: str, source: CitedText) -> Objection | None:
    """Return the first fault of a sentence; None if the passages say it.

    `sentence` is one line of prose without citation marks. What the question says may be repeated.
    """
    allowed = f"{source.text}\n{question}"
    lead, _, rest = in_units_of(source.text, sentence).partition(" ")
    answer = lead[:-1].lower() if lead.endswith((",", ".", ":", ";")) else ""  # “No, …”, and not “No pod …”
    sentence = rest if answer in ("yes", "no") and rest else f"{lead} {rest}".strip()
    terms, source_words = wording(sentence), wording(source.text)
    if overstates(sentence, source.text):
        return Objection.CONFIDENCE
    if adds_literals(sentence, allowed):
        return Objection.LITERAL
    if names(sentence) - frozenset(_WORD.findall(source.text.lower())) - STOP_WORDS:
        return Objection.PRODUCT
    if len(terms & wording(allowed)) < SUPPORT * len(terms):
        return Objection.SUPPORT
    repeats = not (terms & source_words) - wording(question) and not literals(sentence) - literals(question)
    # What was asked is the answer to a question of yes or no, if a statement says it.
    contrary = "yes" if is_negative(sentence) != is_negative(question) else "no"
    if repeats and (
        answer == contrary or not any(len(terms & wording(each)) >= NEAR * len(terms) for each in source.statements)
    ):
        return Objection.REPEAT
    parts = clauses(sentence)
    # A clause without a word of the passages is from the question, or made up.
    if any(len(each.terms) >= BOUND and not each.terms & source_words for each in parts):
        return Objection.CLAUSE
    if _is_verbatim(sentence, source):
        return None
    return next(filter(None, (_fault_of_clause(each, sentence, question, source) for each in parts)), None)


def _is_verbatim(sentence: str, source: CitedText) -> bool:
    """Return whether a sentence is a whole statement, or a statement and the one after it, word by word."""
    own_words = _words(sentence)
    own = [_words(each) for each in source.statements]
    return own_words in own or own_words in [f"{first} {second}" for first, second in pairwise(own)]


def _fault_of_clause(clause: Clause, sentence: str, question: str, source: CitedText) -> Objection | None:
    nearest = _nearest(clause, sentence, source)
    if not nearest:
        return None
    if all(_other_polarity(clause.text, each) for each in nearest):
        return Objection.POLARITY
    if all(directions(clause.text).reverses(directions(each)) or swaps(clause.text, each) for each in nearest):
        return Objection.DIRECTION
    if _belongs_elsewhere(clause, source):
        return Objection.BINDING
    return Objection.CONDITION if all(_condition_fault(each, sentence, question) for each in nearest) else None


@lru_cache(maxsize=REMEMBERED)
def clauses(statement: str) -> tuple[Clause, ...]:
    """Return the clauses of a statement; one of fewer than two terms is joined to its neighbour."""
    parts: list[str] = []
    for part in _CLAUSE.split(statement):
        if parts and min(len(distinct_terms(part)), len(distinct_terms(parts[-1]))) < 2:
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part)
    return tuple(map(_clause, parts))


@lru_cache(maxsize=REMEMBERED)
def _clause(text: str) -> Clause:
    return Clause(text, wording(text), literals(text.replace("`", "")))


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


def _nearest(clause: Clause, sentence: str, source: CitedText) -> list[str]:
    """Return the statements that share the most terms with a clause, and with its sentence, which weighs less.

    None if no two terms are shared: nothing can be compared then.
    """
    own, around = clause.terms | clause.literals, wording(sentence) | literals(sentence)
    held = [(wording(each) | literals(each), each) for each in source.statements]
    overlap = [(len(own & terms) + CONTEXT * len(around & terms), each) for terms, each in held if len(own & terms) > 1]
    best = max((count for count, _ in overlap), default=0)
    return [each for count, each in overlap if count >= NEAR * best]


def _other_polarity(clause: str, statement: str) -> bool:
    """Return whether a statement says the opposite of a clause, judged by its own clauses that are nearest to it.

    Conditions are left out, because “not … unless” is as negative as “not …”.
    """
    ours = unconditional(clause)
    terms = wording(ours)
    counted = [(len(each.terms & terms), each.text) for each in clauses(unconditional(statement))]
    most = max((count for count, _ in counted), default=0)
    near = [text for count, text in counted if most and count >= NEARLY * most]
    denies = [is_negative(ours) != is_negative(each) and softens(ours) == softens(each) for each in near]
    return (bool(near) and all(denies)) != contradicts(clause, statement)


def _belongs_elsewhere(clause: Clause, source: CitedText) -> bool:
    """Return whether a literal of the clause stands in the source only beside other words or literals than here."""
    numbers = frozenset(each for each in clause.literals if each[:1].isdigit())
    compounds = (each.lower() for each in _COMPOUND.findall(clause.text))
    named = frozenset(each for each in (*literals(clause.text), *compounds) if not each[:1].isdigit())
    return (
        _is_apart(named, source)
        or any(_has_other_value(name, numbers, source) for name in named)
        or any(_is_misplaced(clause, frozenset({number}), source.clauses) for number in numbers)
        or _is_misplaced(clause, clause.literals - numbers, source.whole)
    )


def _is_apart(named: frozenset[str], source: CitedText) -> bool:
    """Return whether no statement has all of these names, although the source has each of them."""
    plain = [each.replace("`", "").lower() for each in source.statements]
    held = [[number for number, each in enumerate(plain) if stands_in(name, each)] for name in named]
    return len(held) > 1 and all(held) and not frozenset(held[0]).intersection(*held[1:])


def _has_other_value(name: str, numbers: frozenset[str], source: CitedText) -> bool:
    """Return whether the source gives numbers for a name, and other ones than these."""
    literal_sets = [each.literals for each in (*source.clauses, *source.whole) if name in each.literals]
    given = [values for held in literal_sets if (values := {each for each in held if each[:1].isdigit()})]
    return bool(numbers and given) and not any(numbers & values for values in given)


def _is_misplaced(clause: Clause, named: frozenset[str], parts: Iterable[Clause]) -> bool:
    """Return whether the source says the words of the clause of another literal of the kind, and not of these."""
    own = {term for literal in clause.literals for term in distinct_terms(literal)}
    words, is_number = clause.terms - own, any(each[:1].isdigit() for each in named)
    shares = [
        (len(words & each.terms), each.literals)
        for each in parts
        if any(literal[:1].isdigit() is is_number for literal in each.literals)
    ]
    most = max((count for count, _ in shares), default=0)
    own_most = max((count for count, held in shares if named & held), default=0)
    return bool(named) and most >= max(BOUND, SPOKEN_OF * len(words)) and own_most < most - 1


def _condition_fault(statement: str, sentence: str, question: str) -> bool:
    """Return whether a sentence drops a condition of its statement, adds one, or makes it stronger."""
    spoken = wording(f"{sentence} {question}")
    for word, terms in conditions(statement):
        held = len(terms & spoken)
        if word not in RESTRICTIONS and any(conditions(sentence)):
            continue
        if terms and held < (SPOKEN_OF * len(terms) if word in RESTRICTIONS else 1):
            return True
        if word in EXCEPTIONS and held and not limits(sentence, loosely=True):
            return True
    return (limits(statement) and not limits(sentence, loosely=True)) or exaggerates(
        sentence, f"{statement} {question}"
    )


def _words(text: str) -> str:
    return " ".join(_WORD.findall(cleaned(text).lower()))


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
    if support is None or support >= (DISPELLED if each.doubt else SUPPORTED):
        return replace(each, fault=each.doubt if support is None else None, support=support)
    return replace(each, fault=each.doubt or Objection.DOUBTED, support=support)


async def _share(model: LanguageModel, request: ModelRequest, answer: str) -> float:
    """Return the share of an answer among SAMPLES replies of yes or no."""
    schema = label_schema((prompts.YES, prompts.NO))
    replies = await model.sample(replace(request, schema=schema, temperature=SAMPLED_AT), SAMPLES)
    return sum(reply.text.strip().strip('"') == answer for reply in replies) / len(replies)
