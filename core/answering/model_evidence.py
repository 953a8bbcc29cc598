"""Ranked passages → the numbered statements that a language model reads and may cite."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from core.answering.answer import Citation, Sentence
from core.answering.citations import citation, place_of
from core.answering.statements import Statement, statements
from core.knowledge.ranking import RankedPassage
from core.model.document import Passage
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts.answering import Messages, Section, section_line
from core.ports import LanguageModel


@dataclass(frozen=True, slots=True)
class Evidence:
    """Statements by number, those of the best passage first. What is left out of it leaves a gap in the numbers."""

    statements: Mapping[int, Statement]

    @property
    def sections(self) -> list[Section]:
        """As they are shown: the best first, the second best last, and so on inwards (Ericsson chatbot, section V-B).

        What stands in the middle of a long prompt is read with the least care.
        """
        ranked = self.ranked_sections
        return [*ranked[::2], *ranked[1::2][::-1]]

    @property
    def ranked_sections(self) -> list[Section]:
        """The statements below one heading of a passage together, the best passage first."""
        return [
            Section(place[1].passage.title, place[1].heading, {number: item.text for number, item in members})
            for place, members in self._grouped()
        ]

    @property
    def passages(self) -> dict[str, Passage]:
        """By id, those that the statements stand in."""
        return {statement.passage.id: statement.passage for statement in self.statements.values()}

    @property
    def citations(self) -> list[Citation]:
        """Each statement as a source of its own, under its own number."""
        return [citation(number, statement) for number, statement in self.statements.items()]

    def only(self, numbers: Collection[int]) -> Evidence:
        """Those statements alone; a number that none of them has names nothing."""
        return Evidence({number: item for number, item in self.statements.items() if number in numbers})

    def cited(self, sentences: Sequence[Sentence]) -> tuple[tuple[Sentence, ...], tuple[Citation, ...]]:
        """Sentences that cite statements → the same citing sections or, of a thread, messages, numbered in the order of their use.

        Each is quoted with the first of its statements that is cited.
        """
        firsts: dict[tuple[str, str, int, str], Statement] = {}
        for sentence in sentences:
            for number in sentence.citations:
                statement = self.statements[number]
                firsts.setdefault(place_of(statement), statement)
        numbers = {place: number for number, place in enumerate(firsts, start=1)}
        return (
            tuple(
                Sentence(item.text, tuple(dict.fromkeys(numbers[place_of(self.statements[n])] for n in item.citations)))
                for item in sentences
            ),
            tuple(citation(numbers[place], statement) for place, statement in firsts.items()),
        )

    def _grouped(self) -> Iterator[tuple[tuple[int, Statement], list[tuple[int, Statement]]]]:
        for _, group in groupby(self.statements.items(), key=lambda item: _section_of(item[1])):
            members = list(group)
            yield members[0], members


def gathered(ranked: Sequence[RankedPassage]) -> Evidence:
    """Every statement of the passages, each once: passages of a document overlap."""
    found: dict[tuple[str, str], Statement] = {}
    for passage in ranked:
        for statement in statements(passage.passage):
            found.setdefault((statement.passage.document_id, statement.text), statement)
    return Evidence(dict(enumerate(found.values(), start=1)))


async def fitting(model: LanguageModel, evidence: Evidence, instructions: Messages, max_tokens: int) -> Evidence:
    """The sections that fit into the model's context beside the instructions and the reply, the best first.

    Raises what `fit_context` raises.
    """
    sections = evidence.ranked_sections
    fitted = await fit_context(
        model,
        instructions=instructions,
        max_tokens=max_tokens,
        evidence=[section_line(section) for section in sections],
    )
    return evidence.only({number for position in fitted.evidence for number in sections[position].statements})


def _section_of(statement: Statement) -> tuple[str, str, int]:
    return statement.passage.id, statement.heading, statement.repeat
