"""Ranked evidence → the statements that answer, quoted and cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from core.answering.answer import Citation, Sentence
from core.answering.intent import Intent, intent_of, satisfaction
from core.answering.statements import Statement, statements
from core.knowledge.markdown import BlockKind, slug
from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import terms

MAX_STATEMENTS = 5
MAX_ANSWER = 900  # characters; what a person reads in a chat without scrolling
MAX_QUOTE = 800  # characters of a citation's quote
READ_PASSAGES = 5  # best passages whose statements are considered
MAX_RUN = 4  # neighbouring statements that are weighed together

HEADING_WEIGHT = 0.8
TITLE_WEIGHT = 0.4

COVERAGE_SHARE = 0.5  # of a run's score
HEADING_SHARE = 0.15
INTENT_SHARE = 0.15
PASSAGE_SHARE = 0.2
BREVITY = 0.02  # taken off for each further statement, so that a run ends where the answer does

ON_TOPIC = 0.5  # agreement of heading and question above which the section is the answer, from its first statement on
MISSING_SHARE = 0.25  # of the question that must be unanswered before another place is quoted as well


@dataclass(frozen=True, slots=True)
class Composition:
    """The sentences of an answer and their citations.

    `coverage` in [0, 1] is the share of the question's term weight that the sentences hold together, or their heading
    or title, which count less.
    """

    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    coverage: float


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring statements of one section, and how well they answer together."""

    section: Sequence[Statement]
    start: int
    length: int
    score: float

    @property
    def statements(self) -> list[Statement]:
        return list(self.section[self.start : self.start + self.length])


def compose(question: str, weights: Mapping[str, float], passages: Sequence[RankedPassage]) -> Composition:
    """Choose 1 to MAX_STATEMENTS statements from the passages of one evidence chain and cite them.

    Statements are weighed in runs of neighbours, because an answer is seldom one sentence. `weights` are the question's
    terms with their idf. No passages: an empty composition.
    """
    asked = _Asked(weights, intent_of(question), _compounds(question))
    runs = [run for found, section in _sections(passages) for run in asked.runs(section, found)]
    if not runs:
        return Composition((), (), 0.0)
    best = max(runs, key=lambda run: run.score)
    chosen = asked.filled_up(best)
    document = best.section[0].passage.document_id
    same = [run for run in runs if run.section[0].passage.document_id == document]
    chosen += asked.missing_part(chosen, same)
    chosen.sort(key=lambda statement: (statement.passage.number, statement.order))
    return cited(chosen, asked.coverage(chosen))


def cited(chosen: Sequence[Statement], coverage: float) -> Composition:
    """One numbered citation for each section that statements were taken from, in the order they are used."""
    sections: dict[tuple[str, str], list[Statement]] = {}
    for statement in chosen:
        sections.setdefault((statement.passage.document_id, statement.heading), []).append(statement)
    numbers = {key: number for number, key in enumerate(sections, start=1)}
    return Composition(
        sentences=tuple(
            Sentence(_shown(statement), (numbers[statement.passage.document_id, statement.heading],))
            for statement in chosen
        ),
        citations=tuple(citation(numbers[key], members) for key, members in sections.items()),
        coverage=coverage,
    )


def citation(number: int, members: Sequence[Statement]) -> Citation:
    """The citation of some statements of one section."""
    passage = members[0].passage
    quote = "\n".join(statement.text for statement in members)
    return Citation(
        number=number,
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        heading=members[0].heading,
        anchor=slug(members[0].heading),
        url=passage.url,
        quote=quote if len(quote) <= MAX_QUOTE else f"{quote[: MAX_QUOTE - 1]}…",
        updated_at=passage.updated_at,
    )


def _shown(statement: Statement) -> str:
    """Code is shown below the sentence that introduces it."""
    introduced = statement.kind is BlockKind.CODE and statement.lead_in
    return f"{statement.lead_in}\n{statement.text}" if introduced else statement.text


def _sections(passages: Sequence[RankedPassage]) -> list[tuple[RankedPassage, list[Statement]]]:
    """The statements of the best passages by section; what two overlapping passages share is taken once."""
    seen = set[tuple[str, str]]()
    result: list[tuple[RankedPassage, list[Statement]]] = []
    for found in passages[:READ_PASSAGES]:
        sections: dict[str, list[Statement]] = {}
        for statement in statements(found.passage):
            key = (found.passage.document_id, statement.text)
            if key not in seen and not statement.text.endswith(":"):
                seen.add(key)
                sections.setdefault(statement.heading, []).append(statement)
        result += [(found, section) for section in sections.values()]
    return result


def _compounds(question: str) -> dict[str, tuple[str, str]]:
    """Neighbouring words written as one ("roll back" → "rollback"), as names and commands do."""
    words = terms(question)
    return {f"{first}{second}": (first, second) for first, second in pairwise(words)}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question, prepared to weigh statements by."""

    weights: Mapping[str, float]
    intent: Intent
    compounds: Mapping[str, tuple[str, str]]
    read: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])  # a text is weighed many times

    def runs(self, section: Sequence[Statement], found: RankedPassage) -> list[_Run]:
        """Every run of neighbours in a section, scored."""
        about = self.agreement(section[0].heading)
        result: list[_Run] = []
        for start in range(len(section)):
            for length in range(1, min(MAX_RUN, len(section) - start) + 1):
                members = section[start : start + length]
                score = (
                    COVERAGE_SHARE * self.coverage(members)
                    + HEADING_SHARE * about
                    + INTENT_SHARE * max(satisfaction(self.intent, member) for member in members)
                    + PASSAGE_SHARE * found.score
                    - BREVITY * (length - 1)
                )
                result.append(_Run(section, start, length, score))
        return result

    def filled_up(self, run: _Run) -> list[Statement]:
        """The run; from the section's first statement if its heading says what was asked; with the rest of its list."""
        start, end = run.start, run.start + run.length
        if self.agreement(run.section[0].heading) >= ON_TOPIC and end <= MAX_STATEMENTS:
            start = 0
        last = run.section[end - 1]
        while end < len(run.section) and (
            run.section[end].group == last.group or (start == 0 and end < MAX_STATEMENTS)
        ):
            end += 1
        kept: list[Statement] = []
        for statement in run.section[start:end][:MAX_STATEMENTS]:
            if kept and sum(len(member.text) for member in kept) + len(statement.text) > MAX_ANSWER:
                break
            kept.append(statement)
        return kept

    def missing_part(self, chosen: Sequence[Statement], runs: Sequence[_Run]) -> list[Statement]:
        """One further statement of the same document, if much of the question is unanswered without it.

        Whoever asks for a procedure also gets the command, if what was chosen has none.
        """
        room = MAX_STATEMENTS - len(chosen)
        others = [run.statements[0] for run in runs if run.length == 1 and run.statements[0] not in chosen]
        if room < 1 or not others:
            return []
        if self.intent is Intent.PROCEDURE and all(satisfaction(self.intent, one) < 1 for one in chosen):
            commands = [
                one for one in others if one.kind is BlockKind.CODE and self.coverage([one], own=True) >= ON_TOPIC
            ]
            if commands:
                return [max(commands, key=lambda one: self.coverage([one]))]
        covered = self.coverage(chosen)
        gains = {index: self.coverage([*chosen, one], own=True) - covered for index, one in enumerate(others)}
        best = max(gains, key=lambda index: gains[index])
        return [others[best]] if gains[best] >= MISSING_SHARE else []

    def coverage(self, members: Sequence[Statement], *, own: bool = False) -> float:
        """The share of the question's term weight that the statements hold together; `own`: in their texts alone."""
        places = [(1.0, text) for member in members for text in (member.lead_in, member.text)]
        if not own:
            places += [(HEADING_WEIGHT, members[0].heading), (TITLE_WEIGHT, members[0].passage.title)]
        counted: dict[str, float] = {}
        for share, text in places:
            for term in self._terms(text) & self.weights.keys():
                counted[term] = max(counted.get(term, 0.0), share)
        total = sum(self.weights.values()) or 1.0
        return sum(self.weights[term] * share for term, share in counted.items()) / total

    def agreement(self, heading: str) -> float:
        """How far heading and question say the same: F1 of their terms, by weight."""
        named = self._terms(heading)
        if not named:
            return 0.0
        rarest = max(self.weights.values(), default=1.0)
        shared = sum(weight for term, weight in self.weights.items() if term in named)
        return 2 * shared / (sum(self.weights.values()) + sum(self.weights.get(term, rarest) for term in named))

    def _terms(self, text: str) -> frozenset[str]:
        if text not in self.read:
            found = terms(text)
            self.read[text] = frozenset([*found, *(part for term in found for part in self.compounds.get(term, ()))])
        return self.read[text]
