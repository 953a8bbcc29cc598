"""Ranked evidence → the statements that answer, quoted and cited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from core.answering.answer import Citation, Sentence
from core.answering.antecedents import antecedents, leans
from core.answering.coverage import coverage
from core.answering.intent import Intent, command_in, intent_of, satisfaction, says_how
from core.answering.statements import Statement, objects, statements
from core.knowledge.anchors import anchor
from core.knowledge.document import DocumentKind, Passage
from core.knowledge.layout import FIX, ROOT_CAUSE, url_of
from core.knowledge.markdown import BlockKind
from core.knowledge.ranking import RankedPassage
from core.knowledge.terms import distinct_terms, terms, tokens

READ_PASSAGES = 5  # best passages whose sections are considered
MAX_STATEMENTS = 5  # in an answer
MAX_OBJECTIONS = 2  # of a thread's answer
SHORT_SECTION = 3  # statements up to which a section is quoted as a whole
NEAR_BEST = 0.7  # share of the best statement's score that another one of its section needs
NEW_COVERAGE = 0.25  # share of the question's term weight that a second section must add
COMMAND_COVERAGE = 0.5  # share of the question's term weight that a command must name to be added
MAX_QUOTE = 500  # characters of a citation's quote

COVERAGE_SHARE = 0.65  # of a statement's score; the rest is for holding the kind of thing that was asked for
HEADING_BONUS = 0.2  # of a section whose heading is the question
TITLE_BONUS = 0.1  # of the section below the title, which is about the whole page
HEAD_WEIGHT = 1.5  # of the last word of a phrase, which says what it is about: a deployment freeze is a freeze
SPOT = 2  # neighbouring statements that are looked at together
PRIOR = 0.4  # of a section's score that depends on the retrieval of its passage alone

ONE_THING = (Intent.PERSON, Intent.MOMENT, Intent.DURATION, Intent.QUANTITY)


@dataclass(frozen=True, slots=True)
class Composition:
    """The sentences of an answer and their citations.

    `coverage` in [0, 1] is the share of the question's term weight that the quoted statements hold themselves or in
    their context; what stands only in the context counts for less. `is_of_kind` is False where one thing was asked for,
    such as a person or a date, and no statement holds any.
    """

    sentences: tuple[Sentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    coverage: float = 0.0
    is_of_kind: bool = True


@dataclass(frozen=True, slots=True)
class _Section:
    """The statements below one heading of a passage, and how well they answer."""

    passage: Passage
    heading: str
    statements: tuple[Statement, ...]
    score: float


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the question asks for: its terms with their weight, and the kind of thing."""

    weights: Mapping[str, float]
    intent: Intent
    compounds: Mapping[str, tuple[str, str]]

    def named_by(self, code: str) -> float:
        """The share of the term weight that a command names, in one word or two: `rollback` is "roll back"."""
        found = set(distinct_terms(code))
        found |= {part for term in found for part in self.compounds.get(term, ())}
        total = sum(self.weights.values())
        return sum(weight for term, weight in self.weights.items() if term in found) / total if total else 0.0

    def coverage(self, chosen: Iterable[Statement]) -> float:
        return coverage(self.weights, chosen)

    def named_in(self, heading: str) -> float:
        """How far a heading is about what is asked: the share of its words that the question holds, of all their weight.

        The geometric mean of both shares: a heading of one such word among many others is about something else.
        """
        words, total = distinct_terms(heading), sum(self.weights.values())
        asked = words & self.weights.keys()
        if not asked or not total:
            return 0.0
        return (len(asked) / len(words) * sum(self.weights[term] for term in asked) / total) ** 0.5

    def is_held_by(self, chosen: Iterable[Statement]) -> bool:
        """Whether the kind of thing is there, as far as it is one that can be told from others."""
        return self.intent not in ONE_THING or any(satisfaction(self.intent, item) for item in chosen)

    def answered_by(self, chosen: Sequence[Statement]) -> float:
        """How well statements answer, in [0, 1]: by what they cover, and by holding the kind of thing asked for."""
        kind = max((satisfaction(self.intent, statement) for statement in chosen), default=0.0)
        return COVERAGE_SHARE * self.coverage(chosen) + (1 - COVERAGE_SHARE) * kind


def compose(question: str, weights: Mapping[str, float], passages: Sequence[RankedPassage]) -> Composition:
    """Choose 1 to MAX_STATEMENTS statements from the passages of one evidence chain and cite them.

    `weights` are the question's terms with their weights. The best section answers; one more is added if it covers what
    the first one leaves open. No passages: an empty composition.
    """
    heads = _heads(question)
    weighted = {term: HEAD_WEIGHT * weight if term in heads else weight for term, weight in weights.items()}
    wanted = _Wanted(weighted, intent_of(question), _compounds(question))
    sections = sorted(_sections(wanted, passages[:READ_PASSAGES]), key=lambda section: -section.score)
    if not sections:
        return Composition()
    chosen = _chosen(wanted, sections[0], MAX_STATEMENTS)
    room = MAX_STATEMENTS - len(chosen)
    if room and (second := _complement(wanted, chosen, sections[1:])):
        chosen += [item for item in _chosen(wanted, second, room) if item not in chosen]
    room = MAX_STATEMENTS - len(chosen)
    if room and (command := _missing_command(wanted, chosen, sections)):
        chosen += [item for item in _standing([command], room) if item not in chosen]
        chosen.sort(key=lambda item: (item.passage.number, item.order))
    return _cited(chosen, wanted)


def citation(number: int, statement: Statement) -> Citation:
    """The citation of the section that a statement stands in; the statement is its quote."""
    passage, text = statement.passage, statement.text
    return Citation(
        number=number,
        document_id=passage.document_id,
        passage_id=passage.id,
        title=passage.title,
        heading=statement.heading,
        anchor=anchor(passage.anchors, passage.title, statement.heading, statement.repeat),
        url=_url(statement),
        quote=text if len(text) <= MAX_QUOTE else f"{text[: MAX_QUOTE - 1]}…",
        updated_at=passage.updated_at,
    )


def _cited(chosen: Sequence[Statement], wanted: _Wanted) -> Composition:
    """One numbered citation for each section, or message of a thread, in the order in which they are used."""
    firsts: dict[tuple[str, str, int, str], Statement] = {}
    for statement in chosen:
        firsts.setdefault(place_of(statement), statement)
    numbers = {place: number for number, place in enumerate(firsts, start=1)}
    return Composition(
        tuple(Sentence(statement.text, (numbers[place_of(statement)],)) for statement in chosen),
        tuple(citation(numbers[place], first) for place, first in firsts.items()),
        wanted.coverage(chosen),
        wanted.is_held_by(chosen),
    )


def place_of(statement: Statement) -> tuple[str, str, int, str]:
    """What is cited as one: the section of a passage, or the message of a thread."""
    return statement.passage.id, statement.heading, statement.repeat, _url(statement)


def _url(statement: Statement) -> str:
    """Of the very message in a thread, or of the document."""
    passage = statement.passage
    return url_of(passage.text, passage.part_urls, statement.text) or passage.url


def _sections(wanted: _Wanted, passages: Sequence[RankedPassage]) -> list[_Section]:
    """The sections of the passages, each once: passages of a document overlap."""
    best = max((found.score for found in passages), default=0.0) or 1.0
    seen: set[tuple[str, str]] = set()
    sections: list[_Section] = []
    for found in passages:
        new = [item for item in statements(found.passage) if (found.passage.document_id, item.text) not in seen]
        seen |= {(found.passage.document_id, item.text) for item in new}
        for (heading, _), members in groupby(new, key=lambda item: (item.heading, item.repeat)):
            section = tuple(members)
            if all(item.introduces for item in section):
                continue
            answered = max(wanted.answered_by(spot) for spot in _spots(section))
            title = found.passage.title
            bonus = TITLE_BONUS if heading == title else HEADING_BONUS
            stands_for_title = wanted.intent is Intent.PROCEDURE and says_how(heading)
            named = bonus * wanted.named_in(title if stands_for_title else heading)
            score = found.score / best * (PRIOR + (1 - PRIOR) * answered + named)
            sections.append(_Section(found.passage, heading, section, score))
    return sections


def _spots(section: Sequence[Statement]) -> Iterator[Sequence[Statement]]:
    """Every few neighbouring statements: an answer stands in one spot, and long sections hold words of everything."""
    yield from (section[start : start + SPOT] for start in range(max(1, len(section) - SPOT + 1)))


def _complement(wanted: _Wanted, chosen: Sequence[Statement], others: Sequence[_Section]) -> _Section | None:
    """The best section of the same document that adds enough of what the chosen statements do not cover."""
    document, covered = chosen[0].passage.document_id, wanted.coverage(chosen)
    for section in others:
        added = wanted.coverage([*chosen, *section.statements]) - covered
        if section.passage.document_id == document and added >= NEW_COVERAGE:
            return section
    return None


def _heads(question: str) -> set[str]:
    """The terms of each last word of a run of words between stop words."""
    words = tokens(question)
    ends = [
        word
        for word, after in zip(words, [*words[1:], None], strict=True)
        if not after or after.position > word.position + 1
    ]
    return {term for word in ends for term in word.terms}


def _compounds(question: str) -> dict[str, tuple[str, str]]:
    words = terms(question)
    return {f"{first}{second}": (first, second) for first, second in pairwise(words)}


def _missing_command(wanted: _Wanted, chosen: Sequence[Statement], sections: Sequence[_Section]) -> Statement | None:
    """What the same document says to run for a question that asks how, if nothing chosen is a step or says it."""
    if wanted.intent is not Intent.PROCEDURE or any(item.step or command_in(item) for item in chosen):
        return None
    document = chosen[0].passage.document_id
    members = [item for section in sections if section.passage.document_id == document for item in section.statements]
    named = {item: wanted.named_by(command) for item in members if (command := command_in(item))}
    best = max(named, key=lambda item: named[item], default=None)
    return best if best is not None and named[best] >= COMMAND_COVERAGE else None


def _chosen(wanted: _Wanted, section: _Section, room: int) -> list[Statement]:
    """A short section as a whole; of a longer one the statement that answers best and what belongs to it."""
    members = section.statements
    scores = {item.order: wanted.answered_by([item]) for item in members if not item.introduces}
    best = max((item for item in members if item.order in scores), key=lambda item: scores[item.order])
    if len(members) <= SHORT_SECTION:
        return _best_first(wanted, _standing([best, *members], room), best)
    if section.passage.kind is DocumentKind.INCIDENT:
        chosen = [best, *(item for item in members if item.text.startswith((ROOT_CAUSE, FIX)))]
    elif best.step:
        chosen = _steps(members, best)
    else:
        near = [item for item in members if scores.get(item.order, -1.0) >= NEAR_BEST * scores[best.order]]
        chosen = sorted(near, key=lambda item: (item is not best, -scores[item.order]))[: MAX_STATEMENTS - 1]
        chosen += [item for item in members if len(chosen) == 1 and _continues(best, item)]
    objections = _objections(members, chosen) if section.passage.kind is DocumentKind.THREAD else []
    quoted = [best, *objections, *_announced(members, chosen)]
    return _best_first(wanted, _standing(quoted, room), best)


def _standing(chosen: Sequence[Statement], room: int) -> list[Statement]:
    """The first of the chosen statements that there is room for, each with what it leans on, in the order of the page."""
    kept: dict[int, Statement] = {}
    for item in chosen:
        lacking = [each for each in (item, *antecedents(item, statements(item.passage))) if each.order not in kept]
        if len(kept) + len(lacking) <= room or not kept:
            kept |= {each.order: each for each in lacking[:room]}
    return [kept[order] for order in sorted(kept)]


def _objections(members: Sequence[Statement], chosen: Sequence[Statement]) -> list[Statement]:
    """What was said last against the chosen statements of a thread, or put them right: nobody quotes them without."""
    first = min(item.order for item in chosen)
    return [item for item in members if item.order > first and item not in chosen and objects(item.text)][
        -MAX_OBJECTIONS:
    ]


def _continues(best: Statement, item: Statement) -> bool:
    """Whether a sentence goes on with what another one began: one alone often says half of it."""
    return item.group == best.group and item.order == best.order + 1 and item.kind is BlockKind.PARAGRAPH


def _best_first(wanted: _Wanted, chosen: Sequence[Statement], best: Statement) -> list[Statement]:
    """The sentence that answers a question for one thing comes first, unless others lead to it."""
    moves = (
        wanted.intent in ONE_THING
        and best.kind is BlockKind.PARAGRAPH
        and not any(item.introduces for item in chosen)
        and satisfaction(wanted.intent, best) == 1.0
        and not leans(best)
    )
    return sorted(chosen, key=lambda item: item is not best) if moves and best in chosen else list(chosen)


def _steps(members: Sequence[Statement], best: Statement) -> list[Statement]:
    """The steps of the list in order, from the first one if the best is among the first few, else from the best on."""
    steps = [item for item in members if item.group == best.group]
    place = steps.index(best)
    return steps[place if place >= MAX_STATEMENTS else 0 :][:MAX_STATEMENTS]


def _announced(members: Sequence[Statement], chosen: Sequence[Statement]) -> list[Statement]:
    """The chosen statements in order, each that announces a list or code with that below it."""
    kept = {item.order for item in chosen}
    announced = {item.text for item in chosen if item.introduces}
    return [item for item in members if item.order in kept or item.lead_in in announced]
