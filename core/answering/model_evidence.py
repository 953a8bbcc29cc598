"""Ranked passages → the numbered statements that a language model reads and may cite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from core.answering.answer import Citation, Sentence
from core.answering.statements import Statement, statements
from core.knowledge.retriever import RankedPassage
from core.model_calls.context_budget import fit_context
from core.model_calls.prompts.answering import Messages, Section, section_line
from core.ports import LanguageModel


@dataclass(frozen=True, slots=True)
class Evidence:
    """Statements by number, those of the best passage first. What is left out of it leaves a gap in the numbers."""

    statements: Mapping[int, Statement]

    @property
    def sections(self) -> list[Section]:
        """Return them as they are shown: the best first, the second best last, and so on inwards.

        What stands in the middle of a long prompt is read with the least care (Ericsson chatbot, section V-B).
        """
        ranked = self.ranked_sections
        return [*ranked[::2], *ranked[1::2][::-1]]

    @property
    def ranked_sections(self) -> list[Section]:
        """Return the statements below one heading of a passage together, the best passage first."""
        found: dict[tuple[str, int, str, str], dict[int, str]] = {}
        for number, item in self.statements.items():
            place = (item.passage.id, item.repeat, item.passage.title, item.heading)
            found.setdefault(place, {})[number] = item.text
        return [Section(title, heading, members) for (*_, title, heading), members in found.items()]

    def only(self, numbers: Collection[int]) -> Evidence:
        """Return those statements alone; a number that none of them has names nothing."""
        return Evidence({number: item for number, item in self.statements.items() if number in numbers})

    def cited(self, sentences: Sequence[Sentence]) -> tuple[tuple[Sentence, ...], tuple[Citation, ...]]:
        """Return sentences that cite statements as the same citing sections or, of a thread, messages, in the order of use.

        Each is quoted with the first of its statements that is cited.
        """
        firsts: dict[tuple[str, str, int, str], Statement] = {}
        for sentence in sentences:
            for number in sentence.citations:
                firsts.setdefault(self.statements[number].place, self.statements[number])
        numbers = {place: number for number, place in enumerate(firsts, start=1)}
        return (
            tuple(
                Sentence(item.text, tuple(dict.fromkeys(numbers[self.statements[n].place] for n in item.citations)))
                for item in sentences
            ),
            tuple(statement.cited(numbers[place]) for place, statement in firsts.items()),
        )


def gathered(ranked: Sequence[RankedPassage]) -> Evidence:
    """Return every statement of the passages, each once."""
    found: dict[tuple[str, str], Statement] = {}
    for passage in ranked:
        for statement in statements(passage.passage):
            found.setdefault((statement.passage.document_id, statement.text), statement)
    return Evidence(dict(enumerate(found.values(), start=1)))


async def fitting(model: LanguageModel, evidence: Evidence, instructions: Messages, max_tokens: int) -> Evidence:
    """Return the sections that fit into the model's context beside the instructions and the reply, the best first.

    Raises what `fit_context` raises.
    """
    sections = evidence.ranked_sections
    lines = [section_line(section) for section in sections]
    fitted = await fit_context(model, instructions=instructions, max_tokens=max_tokens, evidence=lines)
    return evidence.only({number for position in fitted.evidence for number in sections[position].statements})
