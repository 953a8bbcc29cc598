"""Caveats of an answer: documents that contradict it, sources that are out of date, and people who can be asked instead.

A conflict is shown beside the answer, never settled silently.

The owner of a thing that is no service, such as infrastructure, a contract or a page, is whom documents name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from core.answering.quantities import quantities
from core.answering.statements import Statement, statements
from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import distinct_terms, terms
from core.model.answer import Answer, Citation, Contact, Contradiction, Sentence
from core.model.conversation import Question
from core.model.document import DocumentKind, Passage
from core.model.team import Team, team_named
from core.model.text import name_key
from core.triage.candidates import matches, turns_away

RIVALS = 10  # best passages of other documents whose statements are compared with the answer's
MAX_CONFLICTS = 3
SHARED_TERMS = 2  # minimum that two statements share, with the headings above them and without their values
LIKE = 0.5  # minimum similarity (shared terms by all terms) of two statements about the same thing
NEAR = 0.25  # minimum with the values, which may be half of the terms, and with opposites not normalised
ALIKE = 0.65  # minimum if one statement only denies the other, because no value differs
MAX_CLAIM = 300  # characters; a longer statement makes several claims
REMEMBERED = 5_000  # claims kept in memory: a few MB

NUMBER = "number"  # the measure of a value without a unit

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


_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_NAMED_VALUE = re.compile(
    rf"(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}} (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}\b)"
    r"|(?P<version>\bv?\d+\.\d+\.\d+(?:[./]\d+)*+\b)"
    r"|(?P<weekday>\b(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b)",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|cannot|no longer|without|no)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITES = {"disabled": "enabled", "forbidden": "allowed", "unsupported": "supported", "optional": "required"}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_SAME_LETTERS = str.maketrans({"\u017f": "s", "\u0131": "i", "\u0130": "I"})  # for IGNORECASE, not for `lower`


@dataclass(frozen=True, slots=True)
class StatedValues:
    """The claim of a statement. `values` are keyed by measure: the kind of a quantity, in its base unit, or that of another value.

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


@lru_cache(maxsize=REMEMBERED)
def claim(text: str) -> StatedValues:
    """Return the claim of a statement."""
    by_measure: dict[str, set[float | str]] = {}
    text = text.translate(_SAME_LETTERS)
    for match in _NAMED_VALUE.finditer(text):  # “5 May” is “May 5”
        value = " ".join(sorted(match[0].lower().removeprefix("v").rstrip("s").split()))
        by_measure.setdefault(match.lastgroup or "", set()).add(value)
    measured, rest = quantities(_NAMED_VALUE.sub(" ", text))
    for each in measured:
        by_measure.setdefault(each.kind or NUMBER, set()).add(each.value)
    if len(by_measure.get(NUMBER, ())) > 1:
        del by_measure[NUMBER]  # which of them says what is not known
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
    passages = [each.passage for each in retrieval.passages if each.passage.kind is not DocumentKind.INCIDENT]
    own_statements = (*sentences, *commands)
    words = [distinct_terms(each.text) for each in own_statements]
    is_ban = any(_is_ban(each.text) for each in sentences)
    rivals = [
        (each, _statement_of(each.text, each.passage.title, each.heading))
        for passage in passages[:RIVALS]
        for each in statements(passage)
        if len(each.text) <= MAX_CLAIM
        and not each.text.endswith(":")  # that only introduces the text after it
        and any(
            _is_near(distinct_terms(each.text), own)
            for own in words[: len(words) if is_ban or _is_ban(each.text) else len(sentences)]
        )
    ]
    question_terms = frozenset(retrieval.weights)
    conflicts: dict[frozenset[str], Contradiction] = {}
    for number, sentence in enumerate(own_statements):
        source = cited[sentence.citations[0]]
        if len(sentence.text) > MAX_CLAIM:
            continue
        own_claim = _statement_of(sentence.text, source.title, source.heading)
        for statement, other in rivals:
            pair = frozenset((source.document_id, statement.passage.document_id))
            if len(pair) == 1 or pair in conflicts or not (number < len(sentences) or other.banned or other.replaced):
                continue
            changed = statement.passage.updated_at
            later = changed is None or source.updated_at is None or changed >= source.updated_at
            is_banned = _bans(other, own_claim, later=later)
            if is_banned or (number < len(sentences) and _contradict(own_claim, other, question_terms, later=later)):
                conflicts[pair] = _conflict(
                    source, sentence, statement, len(citations) + len(conflicts), is_banned=is_banned
                )
    return tuple(conflicts.values())[:MAX_CONFLICTS]


def _is_ban(text: str) -> bool:
    """Return whether a statement may say that some code is not to be run or was replaced."""
    return "`" in text and bool(_BAN.search(text) or _REPLACED.search(text))


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


def _contradict(first: _Said, second: _Said, question_terms: frozenset[str], *, later: bool) -> bool:
    if _bans(first, second, later=not later):
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


def _conflict(
    source: Citation, sentence: Sentence, statement: Statement, number: int, *, is_banned: bool
) -> Contradiction:
    other = statement.cited(number + 1)
    sources = sorted(
        (replace(source, quote=sentence.text), other), key=lambda each: each.updated_at or _OLDEST, reverse=True
    )
    return Contradiction(tuple(sources), is_replaced=is_banned and sources[0] is other)


MAX_CONTACTS = 2
_PUNCTUATION = ".,;:!?()[]\"'`“”"
NEAR_BEST = 0.75  # share of the best team's match that a second team needs to be named too


@dataclass(frozen=True, slots=True)
class HelpDesk:
    """The workspace's facts about answers. `fresh_for` maps a source to the time after which its documents are stale.

    `teams` can be asked. `channels` holds the names of public channels; a private one is not named.
    """

    fresh_for: Mapping[str, timedelta] = field(default_factory=dict[str, timedelta])
    teams: Sequence[Team] = ()
    channels: frozenset[str] = frozenset()

    def completed(self, answer: Answer, question: Question) -> Answer:
        """Return the answer with its stale sources marked and, if Plumbline abstains, with the teams to ask."""
        at = question.asked_at
        return replace(
            answer,
            citations=tuple(self._dated(source, at) for source in answer.citations),
            conflicts=tuple(
                replace(each, sources=tuple(self._dated(source, at) for source in each.sources))
                for each in answer.conflicts
            ),
            contacts=self.contacts(question.text) if answer.abstained else (),
        )

    def contacts(self, text: str) -> tuple[Contact, ...]:
        """Return the owners of a service that the question names; else the teams whose document fits best, best first."""
        named = {word.strip(_PUNCTUATION) for word in text.casefold().split()}
        if owners := [team for team in self.teams if not named.isdisjoint(map(name_key, team.services))]:
            return tuple(map(self._contact, owners[:MAX_CONTACTS]))
        scores = {team_id: match.score for team_id, match in matches(text, self.teams).items()}
        least = NEAR_BEST * max(scores.values(), default=0.0)
        fitting = sorted(
            (team for team in self.teams if scores.get(team.id, -1.0) >= least), key=lambda team: -scores[team.id]
        )
        return tuple(self._contact(team) for team in fitting[:MAX_CONTACTS])

    def _contact(self, team: Team) -> Contact:
        return Contact(team.name, team.channel if team.channel in self.channels else "", team.on_call[:1])

    def _dated(self, source: Citation, at: datetime) -> Citation:
        limit = self.fresh_for.get(source.document_id.partition("/")[0])
        if limit is None or source.updated_at is None or at - source.updated_at <= limit:
            return source
        return replace(source, stale_for=at - source.updated_at)


_OWNS = re.compile(
    r"\b(?:own(?:s|ed|ership)?|responsib\w+|maintain\w*|in charge|looks? after|scope|services)\b", re.IGNORECASE
)
# an owner of at most six words; what stands in parentheses after it explains it
_PASSED_ON = re.compile(r"^(?P<thing>[^:]+): (?P<owner>[^\s:.;,()]+(?: [^\s:.;,()]+){0,5})(?: \([^()]*\))?[.;]?$")
_PAGE = distinct_terms("page pages wiki document doc article guide runbook playbook manual")


@dataclass(frozen=True, slots=True)
class OwnershipLine:
    """A line of the document of the team `author`, and the owner that it names: a team, or others in its own words."""

    owner: str
    author: str
    line: str

    @property
    def is_own(self) -> bool:
        """Return whether it stands among what the team owns, and not among what it passes on to others."""
        return self.owner == self.author

    @property
    def sentence(self) -> str:
        """Return the claim as a sentence."""
        if self.is_own:
            return f"According to its own document, {self.owner} owns: {self.line}"
        return f"The document of {self.author} names {self.owner}: “{self.line}”"


def claims(thing: str, teams: Sequence[Team]) -> list[OwnershipLine]:
    """Return the lines of team documents with every word of a thing, what a team owns and the shortest line first."""
    thing_terms = distinct_terms(thing)
    matches = [claim for team in teams for claim in _claims(thing_terms, team, teams)] if thing_terms else []
    return sorted(matches, key=lambda claim: (not claim.is_own, len(claim.line)))


def _claims(thing_terms: frozenset[str], team: Team, teams: Sequence[Team]) -> Iterator[OwnershipLine]:
    for block in blocks(team.document):
        line = plain(block.text).lstrip("-+•. ")
        if block.kind is BlockKind.HEADING or not thing_terms <= distinct_terms(line):
            continue
        if not turns_away(block.heading):
            if _OWNS.search(block.heading) or _OWNS.search(" ".join(line.split()[:2])):
                yield OwnershipLine(team.name, team.name, line)
        elif (passed := _PASSED_ON.match(line)) and thing_terms <= distinct_terms(passed["thing"]):
            owner = team_named(passed["owner"], teams)
            yield OwnershipLine(owner.name if owner else passed["owner"], team.name, line)


def names_page(thing: str) -> bool:
    """Return whether the words for a thing say that it is a page."""
    return not _PAGE.isdisjoint(distinct_terms(thing))


def pages_titled(thing: str, passages: Sequence[Passage]) -> list[Passage]:
    """Return the pages that have an owner, and the words of a thing in their title: one passage of each."""
    thing_terms = distinct_terms(thing) - _PAGE
    titled = {
        passage.document_id: passage
        for passage in reversed(passages)
        if passage.kind is DocumentKind.PAGE
        and passage.owner
        and thing_terms
        and thing_terms <= distinct_terms(passage.title)
    }
    return [passage for passage in dict.fromkeys(passages) if titled.get(passage.document_id) is passage]
