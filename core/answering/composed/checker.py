"""Check a sentence that a language model wrote against the passages that it cites.

A sentence is compared with the statements of its passages (sentences, list items, table rows, lines of code), clause by
clause. It may use other words and another order, but no other literals, polarity, direction, condition or product.
`fault_of` returns the first fault; a sentence without one is a faithful paraphrase, as far as rules can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from core.answering.composed.wording import (
    RESTRICTIONS,
    conditions,
    contradicts,
    directions,
    exaggerates,
    is_negative,
    limits,
    names,
    softens,
    swaps,
    unconditional,
)
from core.answering.model_text import adds_literals, cleaned, literals, overstates, wording
from core.answering.statements import sentences
from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.terms import STOP_WORDS, distinct_terms
from core.model.document import Passage

SUPPORT = 0.6  # least share of a sentence's terms that are in its passages or in the question
NEAR = 0.8  # of the best overlap: a statement with so much of it is read as well
NEARLY = 0.6  # the same, of a clause of a statement
SPOKEN_OF = 0.5  # share of a condition's terms that must be in the sentence or the question
BOUND = 2  # terms that a clause of the source must share with a clause, to say the same of another literal

_CLAUSE = re.compile(r"[,;:—–]\s|\s\((?=\w)|\)\s|\s(?:and|but|while|whereas|which|because|so that)\s", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")


class Fault(StrEnum):
    """The reason why a sentence is not shown. The value is its name in metrics and evaluations."""

    CONFIDENCE = "states a confidence or calls people"
    LITERAL = "a number, command or name that the passages do not contain"
    PRODUCT = "a name that the passages do not contain"
    SUPPORT = "words that the passages do not contain"
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
class Source:
    """The text of the cited passages, and its statements as clauses."""

    text: str
    statements: tuple[str, ...]

    @property
    def clauses(self) -> Iterator[Clause]:
        for statement in self.statements:
            yield from clauses(statement)


def source_of(passages: Sequence[Passage]) -> Source:
    """Return the source of a sentence that cites these passages, with their titles and headings."""
    text = "\n".join(f"{each.document_id}\n{each.title}\n{each.heading}\n{each.text}" for each in passages)
    return Source(text, tuple(statement for each in passages for statement in _statements(each)))


def fault_of(sentence: str, question: str, source: Source) -> Fault | None:
    """Return the first fault of a sentence; None if the passages say it.

    `sentence` is one line of prose without citation marks. What the question says may be repeated.
    """
    known = f"{source.text}\n{question}"
    terms = wording(sentence)
    if overstates(sentence, source.text):
        return Fault.CONFIDENCE
    if adds_literals(sentence, known):
        return Fault.LITERAL
    if names(sentence) - _name_words(source.text):
        return Fault.PRODUCT
    if len(terms & wording(known)) < SUPPORT * len(terms):
        return Fault.SUPPORT
    if not (terms - wording(question)) and not literals(sentence) - literals(question):
        return Fault.REPEAT
    if _is_verbatim(sentence, source):
        return None
    return next(filter(None, (_fault_of_clause(each, sentence, question, source) for each in clauses(sentence))), None)


def _is_verbatim(sentence: str, source: Source) -> bool:
    """Return whether a sentence is a whole statement, or a statement and the one after it, word by word."""
    said = _words(sentence)
    own = [_words(each) for each in source.statements]
    return said in own or said in [f"{first} {second}" for first, second in pairwise(own)]


def _fault_of_clause(clause: Clause, sentence: str, question: str, source: Source) -> Fault | None:
    nearest = _nearest(clause, source)
    if not nearest:
        return None
    if all(_other_polarity(clause.text, each) for each in nearest):
        return Fault.POLARITY
    if all(directions(clause.text).reverses(directions(each)) or swaps(clause.text, each) for each in nearest):
        return Fault.DIRECTION
    if _belongs_elsewhere(clause, source):
        return Fault.BINDING
    if all(_condition_fault(each, sentence, question) for each in nearest):
        return Fault.CONDITION
    return None


def clauses(statement: str) -> tuple[Clause, ...]:
    """Return the clauses of a statement; one of fewer than two terms is joined to its neighbour."""
    parts: list[str] = []
    for part in _CLAUSE.split(statement):
        if parts and min(len(distinct_terms(part)), len(distinct_terms(parts[-1]))) < 2:
            parts[-1] = f"{parts[-1]} {part}"
        elif part.strip():
            parts.append(part)
    return tuple(Clause(part, wording(part), literals(part.replace("`", ""))) for part in parts)


def _statements(passage: Passage) -> Iterator[str]:
    lead = ""
    for block in blocks(passage.text):
        match block.kind:
            case BlockKind.HEADING:
                lead = ""
            case BlockKind.PARAGRAPH:
                found = sentences(plain(block.text))
                yield from found
                lead = found[-1] if found and found[-1].endswith(":") else ""
            case BlockKind.CODE | BlockKind.TABLE:
                yield from (f"{lead} {line}".strip() for line in block.text.splitlines() if line.strip())
            case _:
                yield from (f"{lead} {each}".strip() for each in sentences(plain(block.text)))


def _nearest(clause: Clause, source: Source) -> list[str]:
    """Return the statements that share the most terms with a clause; none if two statements share hardly any."""
    overlap = [
        (len((clause.terms | clause.literals) & (wording(each) | literals(each))), each) for each in source.statements
    ]
    best = max((count for count, _ in overlap), default=0)
    return [each for count, each in overlap if count >= max(2, NEAR * best)]


def _other_polarity(clause: str, statement: str) -> bool:
    """Return whether a statement says the opposite of a clause, judged by its own clauses that are nearest to it.

    Conditions are left out, because “not … unless” is as negative as “not …”.
    """
    ours = unconditional(clause)
    terms = wording(ours)
    counted = [(len(each.terms & terms), each.text) for each in clauses(unconditional(statement))]
    most = max((count for count, _ in counted), default=0)
    near = [text for count, text in counted if most and count >= NEARLY * most]
    denied = all(is_negative(ours) != is_negative(each) and softens(ours) == softens(each) for each in near)
    return (bool(near) and denied) or contradicts(clause, statement)


def _belongs_elsewhere(clause: Clause, source: Source) -> bool:
    """Return whether a number of the clause stands in the source only beside other words than here.

    Also where the source says the words of the clause of another literal, and not of this one.
    """
    for number in (each for each in clause.literals if each[:1].isdigit()):
        others = (clause.terms | clause.literals) - distinct_terms(number) - {number}
        holders = [each for each in source.statements if number in literals(each.replace("`", ""))]
        if others and holders and not any(others & (wording(each) | literals(each)) for each in holders):
            return True
    words = clause.terms - {term for literal in clause.literals for term in distinct_terms(literal)}
    said = [(len(words & each.terms), each.literals) for each in source.clauses if each.literals]
    most = max((count for count, _ in said), default=0)
    if not clause.literals or most < max(BOUND, SPOKEN_OF * len(words)):
        return False
    holding = max((count for count, held in said if clause.literals & held), default=0)
    return holding < most - 1


def _condition_fault(statement: str, sentence: str, question: str) -> bool:
    """Return whether a sentence drops a condition of its statement, adds one, or makes it stronger."""
    spoken = wording(f"{sentence} {question}")
    for word, terms in conditions(statement):
        held = len(terms & spoken)
        least = SPOKEN_OF * len(terms) if word in RESTRICTIONS else 1
        if terms and held < least:
            return True
    if limits(statement) and not limits(sentence):
        return True
    return exaggerates(sentence, f"{statement} {question}")


def _words(text: str) -> str:
    return " ".join(_WORD.findall(cleaned(text).lower()))


def _name_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) | STOP_WORDS
