"""Other documents that state something else for the same thing: shown beside an answer, never settled silently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from core.answering.answer import Citation, Conflict, Sentence
from core.answering.citations import citation
from core.answering.statements import Statement, statements
from core.answering.values import Claim, claim, differing
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import distinct_terms, terms
from core.model.document import DocumentKind, Passage

RIVALS = 10  # best passages of other documents whose statements are compared with the answer's
MAX_CONFLICTS = 3
SHARED_TERMS = 2  # that two statements must share at least, with the headings above them and without their values
LIKE = 0.5  # terms that they share, as a share of the terms of either, from which they speak of the same thing
NEAR = 0.25  # the same with the values, which may be half of a statement, and with a word put as its opposite
ALIKE = 0.65  # the same for two statements of which one only denies the other: there nothing else tells
MAX_CLAIM = 300  # characters; a longer statement makes several claims
REMEMBERED = 5_000  # statements that were read as claims: a few MB

_OLDEST = datetime.min.replace(tzinfo=UTC)
_NAME = re.compile(r"`[^`\n]+`|\b\w+(?:[-_./:]\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*\b|(?<=[a-z,;] )[A-Z]\w+")
_BAN = re.compile(
    r"\b(?:never|must not|do not|don['’]t|no longer) (?:run|use|call|execute|issue|set)\b(?:`[^`]*`|[^.;:`])*",
    re.IGNORECASE,
)
_CODE = re.compile(r"`{1,3}([^`]+)`{1,3}")


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement as a claim: what it names, and all the terms of it and of the headings above it.

    `code` is what it holds of code, and `banned` the parts of it that it says not to use.
    """

    claim: Claim
    names: frozenset[str]
    context: frozenset[str]
    code: tuple[str, ...]
    banned: tuple[str, ...]


def contradictions(
    sentences: Sequence[Sentence], citations: Sequence[Citation], retrieval: Retrieval
) -> tuple[Conflict, ...]:
    """Statements of other retrieved documents that contradict a sentence of the answer, the newest source first.

    Two statements contradict each other if they speak of the same thing and give different values for it, or if one
    denies what the other says. They speak of the same thing if most of their other words are the same, each names only
    what the other or the headings above it name too, and both hold the same words of the question. One that says not to
    run what stands in the code of another contradicts it whatever else they say, if they share their subject. A past
    incident says what was once, and so contradicts nothing.
    """
    cited = {source.number: source for source in citations}
    own = {source.document_id for source in citations}
    passages = [
        found.passage
        for found in retrieval.passages
        if found.passage.document_id not in own and found.passage.kind is not DocumentKind.INCIDENT
    ]
    words = [distinct_terms(sentence.text) for sentence in sentences]
    rivals = [
        (each, _said(each.text, each.passage.title, each.heading))
        for each in _short(passages[:RIVALS])
        if _near(distinct_terms(each.text), words)
    ]
    asked = frozenset(retrieval.weights)
    found: dict[str, Conflict] = {}
    for sentence in sentences:
        source = cited[sentence.citations[0]]
        if len(sentence.text) > MAX_CLAIM:
            continue
        said = _said(sentence.text, source.title, source.heading)
        for statement, other in rivals:
            if statement.passage.document_id not in found and _contradict(said, other, asked):
                found[statement.passage.document_id] = _conflict(
                    source, sentence, statement, len(citations) + len(found)
                )
    return tuple(found.values())[:MAX_CONFLICTS]


def _short(passages: Sequence[Passage]) -> Iterator[Statement]:
    for passage in passages:
        yield from (each for each in statements(passage) if len(each.text) <= MAX_CLAIM and not each.introduces)


def _near(statement: frozenset[str], sentences: Sequence[frozenset[str]]) -> bool:
    """Whether it is worth reading a statement as a claim: one whose words are others has no chance to be like one."""
    return any(len(statement & sentence) + 1 >= NEAR * len(statement) for sentence in sentences)


@lru_cache(maxsize=REMEMBERED)
def _said(text: str, title: str, heading: str) -> _Said:
    names = {term for name in _NAME.findall(text) for term in terms(name)}
    said = claim(text)
    context = said.subject | claim(f"{title}\n{heading}").subject
    banned = [code for ban in _BAN.findall(text) for code in _CODE.findall(ban)]
    return _Said(said, frozenset(names), context, tuple(_CODE.findall(text)), tuple(banned))


def _contradict(first: _Said, second: _Said, asked: frozenset[str]) -> bool:
    if _bans(second, first) or _bans(first, second):
        return True
    likeness = _overlap(first.claim.subject, second.claim.subject)
    if likeness < LIKE or len(first.context & second.context) < SHARED_TERMS:
        return False
    same_names = first.names <= second.context and second.names <= first.context
    if not same_names or not first.context & asked <= second.context:
        return False
    return differing(first.claim, second.claim) or (first.claim.denies != second.claim.denies and likeness >= ALIKE)


def _bans(first: _Said, second: _Said) -> bool:
    """Whether one says not to run what stands in the code of the other, which does not say so too, for the same thing."""
    return not second.banned and any(
        len((first.context & second.context) - distinct_terms(banned)) >= SHARED_TERMS
        and re.search(rf"(?<![\w-]){re.escape(banned)}(?![\w-])", code)
        for banned in first.banned
        for code in second.code
    )


def _overlap(first: frozenset[str], second: frozenset[str]) -> float:
    return len(first & second) / (len(first | second) or 1)


def _conflict(source: Citation, sentence: Sentence, statement: Statement, number: int) -> Conflict:
    sources = (replace(source, quote=sentence.text), citation(number + 1, statement))
    return Conflict(tuple(sorted(sources, key=lambda each: each.updated_at or _OLDEST, reverse=True)))
