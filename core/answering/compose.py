"""Ranked evidence → the statements that answer, quoted and cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.answering.answer import Citation, Sentence
from core.answering.intent import intent_of, satisfaction
from core.answering.statements import Statement, statements
from core.knowledge.markdown import BlockKind, slug
from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import terms

MAX_STATEMENTS = 5
MAX_QUOTE = 800  # characters of a citation's quote
READ_PASSAGES = 5  # best passages whose statements are considered
RELATIVE_THRESHOLD = 0.8  # of the best statement's score that a further one needs

LEAD_IN_WEIGHT = 0.8  # what a question term counts for where it stands
HEADING_WEIGHT = 0.6
TITLE_WEIGHT = 0.4

COVERAGE_SHARE = 0.6  # of a statement's score
INTENT_SHARE = 0.15
PASSAGE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class ScoredStatement:
    """A statement and how well it answers, in [0, 1]. `coverage`: the question's term weight that it holds itself
    or in its lead-in, its heading or its title, each counting less.
    """

    statement: Statement
    score: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Composition:
    """The sentences of an answer, their citations, and the statements they were made of."""

    sentences: tuple[Sentence, ...]
    citations: tuple[Citation, ...]
    statements: tuple[ScoredStatement, ...]


def compose(question: str, weights: Mapping[str, float], passages: Sequence[RankedPassage]) -> Composition:
    """Choose 1 to MAX_STATEMENTS statements from the passages of one evidence chain and cite them.

    `weights` are the question's terms with their idf. No passages: an empty composition.
    """
    scored = _scored(question, weights, passages[:READ_PASSAGES])
    return cited(_chosen(scored)) if scored else Composition((), (), ())


def cited(chosen: Sequence[ScoredStatement]) -> Composition:
    """One numbered citation for each section that statements were taken from, in the order they are used."""
    sections: dict[tuple[str, str], list[Statement]] = {}
    for item in chosen:
        sections.setdefault((item.statement.passage.document_id, item.statement.heading), []).append(item.statement)
    numbers = {key: number for number, key in enumerate(sections, start=1)}
    return Composition(
        sentences=tuple(
            Sentence(_shown(item.statement), (numbers[item.statement.passage.document_id, item.statement.heading],))
            for item in chosen
        ),
        citations=tuple(citation(numbers[key], members) for key, members in sections.items()),
        statements=tuple(chosen),
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
    return f"{statement.lead_in}\n{statement.text}" if statement.kind is BlockKind.CODE and statement.lead_in else statement.text


def _scored(
    question: str, weights: Mapping[str, float], passages: Sequence[RankedPassage]
) -> list[ScoredStatement]:
    intent = intent_of(question)
    best = max((found.score for found in passages), default=0.0) or 1.0
    seen = set[tuple[str, str]]()
    result: list[ScoredStatement] = []
    for found in passages:
        for statement in statements(found.passage):
            key = (found.passage.document_id, statement.text)
            if key in seen or statement.text.endswith(":"):
                continue
            seen.add(key)
            coverage = _coverage(weights, statement)
            score = (
                COVERAGE_SHARE * coverage
                + INTENT_SHARE * satisfaction(intent, statement)
                + PASSAGE_SHARE * found.score / best
            )
            result.append(ScoredStatement(statement, score, coverage))
    return result


def _coverage(weights: Mapping[str, float], statement: Statement) -> float:
    places = (
        (1.0, statement.text),
        (LEAD_IN_WEIGHT, statement.lead_in),
        (HEADING_WEIGHT, statement.heading),
        (TITLE_WEIGHT, statement.passage.title),
    )
    counted = dict.fromkeys(weights, 0.0)
    for share, text in places:
        for term in terms(text):
            if term in counted:
                counted[term] = max(counted[term], share)
    return sum(weights[term] * share for term, share in counted.items()) / (sum(weights.values()) or 1.0)


def _chosen(scored: Sequence[ScoredStatement]) -> list[ScoredStatement]:
    """The best statement, the steps it belongs to, and others of its document that answer nearly as well."""
    ranked = sorted(scored, key=lambda item: (-item.score, item.statement.order))
    best = ranked[0]
    steps = [item for item in scored if best.statement.step and _same_group(item, best)]
    further = [
        item
        for item in ranked
        if item.statement.passage.document_id == best.statement.passage.document_id
        and item.score >= RELATIVE_THRESHOLD * best.score
    ]
    chosen = list(dict.fromkeys([*_around(steps, best), *further]))[:MAX_STATEMENTS]
    return sorted(chosen, key=lambda item: (item.statement.passage.number, item.statement.order))


def _around(steps: Sequence[ScoredStatement], best: ScoredStatement) -> list[ScoredStatement]:
    """The steps from the first one, if the best is among the first few, else from the best one on."""
    if best not in steps:
        return [best]
    place = steps.index(best)
    first = 0 if place < MAX_STATEMENTS else place
    return list(steps[first : first + MAX_STATEMENTS])


def _same_group(item: ScoredStatement, other: ScoredStatement) -> bool:
    return item.statement.passage.id == other.statement.passage.id and item.statement.group == other.statement.group
