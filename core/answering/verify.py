"""Every sentence must be supported by what it cites; one that is not is withheld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.answering.answer import Citation, Sentence
from core.knowledge.terms import distinct_terms
from core.model.document import Passage

SUPPORT = 0.9  # share of a sentence's distinct terms that its citations' passages must hold


def supported(
    sentences: Sequence[Sentence], citations: Sequence[Citation], passages: Mapping[str, Passage]
) -> tuple[Sentence, ...]:
    """The sentences whose terms stand in the passages that they cite. `passages` is by passage id."""
    cited = {citation.number: passages.get(citation.passage_id) for citation in citations}
    return tuple(
        sentence
        for sentence in sentences
        if _support(sentence.text, [cited.get(n) for n in sentence.citations]) >= SUPPORT
    )


def _support(text: str, passages: Sequence[Passage | None]) -> float:
    wanted = distinct_terms(text)
    held = {term for passage in passages if passage for term in distinct_terms(f"{passage.title}\n{passage.text}")}
    return len(wanted & held) / len(wanted) if wanted else 0.0
