"""Find other documents that contradict an answer. A conflict is shown beside the answer, never settled silently."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

from core.answering.statements import Statement, statements
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import STOP_WORDS, distinct_terms, terms
from core.model.answer import Citation, Contradiction, Sentence
from core.model.document import DocumentKind

RIVALS = 10  # best passages of other documents whose statements are compared with the answer's
MAX_CONFLICTS = 3
SHARED_TERMS = 2  # minimum that two statements share, with the headings above them and without their values
LIKE = 0.5  # minimum similarity (shared terms by all terms) of two statements about the same thing
NEAR = 0.25  # minimum with the values, which may be half of the terms, and with opposites not normalised
ALIKE = 0.65  # minimum if one statement only denies the other, because no value differs
MAX_CLAIM = 300  # characters; a longer statement makes several claims
REMEMBERED = 5_000  # claims kept in memory: a few MB

_OLDEST = datetime.min.replace(tzinfo=UTC)
_NAME = re.compile(r"`[^`\n]+`|\b\w+(?:[-_./:]\w+)+\b|\b[a-z]+[A-Z]\w*|\b[A-Z]{2,}\w*\b|(?<=[a-z,;] )[A-Z]\w+")
_BAN = re.compile(
    r"\b(?:never|must not|do not|don['’]t|no longer) (?:run|use|call|execute|issue|set)\b(?:`[^`]*`|[^.;:`])*",
    re.IGNORECASE,
)
_REPLACED = re.compile(
    r"\b(?:replace[sd]|supersede[sd]|instead of)(?: (?!by\b|with\b)\w+){0,4} `[^`]*`"
    r"|`[^`]*`(?: \w+){0,2} (?:is|was|are|were|has been|have been) (?:now )?"
    r"(?:replaced|superseded|deprecated|obsolete|retired|removed|no longer)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\w.-]+")
_CODE = re.compile(r"`{1,3}([^`]+)`{1,3}")


_SECONDS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "day": 86_400, "week": 604_800, "month": 2_629_800, "year": 31_557_600,
}  # fmt: skip
_BYTES = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_THING = rf"(?!(?:{'|'.join(STOP_WORDS)})\b)[^\W\d_]{{3,}}"  # a word that says what is counted
_UNIT = "|".join((*_SECONDS, *_BYTES))
_NUMBER = rf"\d++(?:,\d{{3}}){{0,6}}+(?:\.\d++)?+|{'|'.join(_WORDS)}"
_VALUE = re.compile(
    rf"(?P<clock>\b\d{{1,2}}:\d{{2}}\b)"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}} (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}\b)"
    rf"|(?P<version>\bv?\d+\.\d+\.\d+\b)"
    rf"|(?P<weekday>\b(?:{_WEEKDAYS})s?\b)"
    rf"|(?P<share>(?<![\w.])(?:{_NUMBER}) ?(?:%|percent\b))"
    rf"|(?P<measure>(?<![\w.])(?P<amount>{_NUMBER})[ -]?(?P<unit>{_UNIT})s?\b)"
    rf"|(?P<count>(?<![\w.])(?P<quantity>{_NUMBER})(?![\w.]*\d) (?P<thing>{_THING}))"
    rf"|(?P<setting>(?P<name>[^\W\d_][\w.-]{{2,80}})`?(?: is| of|:| =|=)? ?(?P<set>\d+(?:\.\d+)?)\b"
    rf"(?![.,:]?\d| ?%|[ -]?(?:percent|{_UNIT})s?\b| {_THING}))",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|cannot|no longer|without|no)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITES = {"disabled": "enabled", "forbidden": "allowed", "unsupported": "supported", "optional": "required"}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_SAME_LETTERS = str.maketrans({"\u017f": "s", "\u0131": "i", "\u0130": "I"})  # for IGNORECASE, not for `lower`


@dataclass(frozen=True, slots=True)
class StatedValues:
    """The claim of a statement. `values` are keyed by measure (durations in seconds, sizes in bytes, counts by thing).

    `subject` holds the terms around the values, with an opposite replaced by the word that it denies. `denies` is True
    for a negative statement; an even number of denials cancels out.
    """

    subject: frozenset[str]
    values: Mapping[str, frozenset[float | str]]
    denies: bool

    def differs(self, other: StatedValues) -> bool:
        """Return whether both state values of the same measure and have none of them in common."""
        return any(
            self.values[kind].isdisjoint(other.values[kind]) for kind in self.values.keys() & other.values.keys()
        )


def claim(text: str) -> StatedValues:
    """Return the claim of a statement."""
    text = text.translate(_SAME_LETTERS)
    by_measure: dict[str, set[float | str]] = {}
    kept: list[str] = []
    end = 0
    for match in _VALUE.finditer(text):
        measure, value = _measured(match)
        by_measure.setdefault(measure, set()).add(value)
        kept += [text[end : match.start()], match["thing"] or match["name"] or ""]
        end = match.end()
    rest = " ".join([*kept, text[end:]])
    denials = len(_DENIAL.findall(rest)) + len(_OPPOSITE.findall(rest))
    positive = _OPPOSITE.sub(lambda word: _OPPOSITES[word[0].lower()], rest)
    values = {measure: frozenset(each) for measure, each in by_measure.items()}
    return StatedValues(frozenset(terms(positive)), values, denials % 2 == 1)


@dataclass(frozen=True, slots=True)
class _Said:
    """A statement as a claim, with the names in it. `context` holds its terms and those of the headings above it.

    `code` is the code in it, `banned` the code that it says not to use, and `replaced` the code that it says has a
    successor.
    """

    claim: StatedValues
    names: frozenset[str]
    context: frozenset[str]
    code: tuple[str, ...]
    banned: tuple[str, ...]
    replaced: tuple[str, ...]


def contradictions(
    sentences: Sequence[Sentence],
    citations: Sequence[Citation],
    retrieval: Retrieval,
    commands: Sequence[Sentence] = (),
) -> tuple[Contradiction, ...]:
    """Return statements of other retrieved documents that contradict a sentence of the answer, the newest source first.

    Two statements contradict each other if they are about the same thing and give different values for it, or if one
    denies the other. They are about the same thing if most of their other words are the same, each names only things
    that the other or the headings above it name too, and both contain the same words of the question. A statement not
    to run code that another one contains contradicts it if they share their subject, and so does a statement, unless it
    is older, that this code was replaced; `commands` are lines of code of the answer that are contradicted only so. A
    past incident contradicts nothing, because it describes the past.
    """
    cited = {source.number: source for source in citations}
    own = {source.document_id for source in citations}
    passages = [
        each.passage
        for each in retrieval.passages
        if each.passage.document_id not in own and each.passage.kind is not DocumentKind.INCIDENT
    ]
    own_statements = (*sentences, *commands)
    words = frozenset[str]().union(*(distinct_terms(sentence.text) for sentence in own_statements))
    rivals = [
        (each, _statement_of(each.text, each.passage.title, each.heading))
        for passage in passages[:RIVALS]
        for each in statements(passage)
        if len(each.text) <= MAX_CLAIM and not each.introduces and _is_near(distinct_terms(each.text), words)
    ]
    question_terms = frozenset(retrieval.weights)
    conflicts: dict[str, Contradiction] = {}
    for number, sentence in enumerate(own_statements):
        source = cited[sentence.citations[0]]
        if len(sentence.text) > MAX_CLAIM:
            continue
        own_claim = _statement_of(sentence.text, source.title, source.heading)
        for statement, other in rivals:
            later = _is_later(statement.passage.updated_at, source.updated_at)
            is_against = (
                _contradict(own_claim, other, question_terms, later=later)
                if number < len(sentences)
                else _bans(other, own_claim, later=later)
            )
            if statement.passage.document_id not in conflicts and is_against:
                conflicts[statement.passage.document_id] = _conflict(
                    source, sentence, statement, len(citations) + len(conflicts)
                )
    return tuple(conflicts.values())[:MAX_CONFLICTS]


def _is_near(terms: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a statement shares enough terms with the answer to be worth reading as a claim."""
    return len(terms & others) + 1 >= NEAR * len(terms)


@lru_cache(maxsize=REMEMBERED)
def _statement_of(text: str, title: str, heading: str) -> _Said:
    names = {term for name in _NAME.findall(text) for term in terms(name)}
    own = claim(text)
    context = own.subject | claim(f"{title}\n{heading}").subject
    banned = [code for ban in _BAN.findall(text) for code in _CODE.findall(ban)]
    replaced = [code for part in _REPLACED.findall(text) for code in _CODE.findall(part)]
    return _Said(own, frozenset(names), context, tuple(_CODE.findall(text)), tuple(banned), tuple(replaced))


def _is_later(time: datetime | None, other: datetime | None) -> bool:
    """Return whether a time may be later than another one; an unknown one may be."""
    return time is None or other is None or time >= other


def _contradict(first: _Said, second: _Said, question_terms: frozenset[str], *, later: bool) -> bool:
    if _bans(second, first, later=later) or _bans(first, second, later=not later):
        return True
    subject, other = first.claim.subject, second.claim.subject
    similarity = len(subject & other) / (len(subject | other) or 1)
    if similarity < LIKE or len(first.context & second.context) < SHARED_TERMS:
        return False
    same_names = first.names <= second.context and second.names <= first.context
    if not same_names or not first.context & question_terms <= second.context:
        return False
    return first.claim.differs(second.claim) or (first.claim.denies != second.claim.denies and similarity >= ALIKE)


def _bans(first: _Said, second: _Said, *, later: bool) -> bool:
    """Return whether the first says not to run code of the second, which says so of none, about the same thing.

    What the first says was replaced counts only if it is `later`.
    """
    return not (second.banned or second.replaced) and any(
        len((first.context & second.context) - distinct_terms(banned)) >= SHARED_TERMS and _contains(code, banned)
        for banned in (*first.banned, *(first.replaced if later else ()))
        for code in second.code
    )


def _contains(code: str, banned: str) -> bool:
    """Return whether code contains the words of a command in their order, with others, such as options, between them."""
    words = iter(_WORD.findall(code))
    return all(word in words for word in _WORD.findall(banned))


def _conflict(source: Citation, sentence: Sentence, statement: Statement, number: int) -> Contradiction:
    sources = (replace(source, quote=sentence.text), statement.cited(number + 1))
    return Contradiction(tuple(sorted(sources, key=lambda each: each.updated_at or _OLDEST, reverse=True)))


def _measured(match: re.Match[str]) -> tuple[str, float | str]:
    """Return the measure of a value, and the value in the measure's unit."""
    if match["measure"]:
        amount, unit = _number(match["amount"]), match["unit"].lower()
        return ("duration", amount * _SECONDS[unit]) if unit in _SECONDS else ("size", amount * _BYTES[unit])
    if match["share"]:
        return "share", _number(match["share"].rstrip("% ").lower().removesuffix("percent").strip())
    if match["count"]:
        return f"count of {' '.join(terms(match['thing']))}", _number(match["quantity"])
    if match["setting"]:
        return f"value of {match['name'].lower()}", float(match["set"])
    kind = next(name for name in ("clock", "date", "version", "weekday") if match[name])
    return kind, " ".join(sorted(match[0].lower().removeprefix("v").rstrip("s").split()))  # “5 May” is “May 5”


def _number(text: str) -> float:
    word = text.lower()
    return float(_WORDS.index(word)) if word in _WORDS else float(text.replace(",", ""))
