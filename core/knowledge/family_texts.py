"""What families of documents are told apart by: the titles, headings and short paragraphs that everybody may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.conversation import PUBLIC
from core.knowledge.document import Passage
from core.knowledge.markdown import BlockKind, blocks, plain
from core.knowledge.sentences import sentences

MIN_DOCUMENTS = 2  # of a family: what is said of it must be measurable on a document that it was not learned from
MAX_FAMILIES = 100  # the largest ones
MAX_PASSAGES = 1_500  # of all families together; twice as many where documents are long
MAX_TEXTS = 2_000  # of all families together: bounds the time of a fit to seconds
MAX_LENGTH = 250  # characters of a text that are read; a longer paragraph is taken by its sentences


@dataclass(frozen=True, slots=True)
class FamilyText:
    """A text of about the length of a question, of a document of this family."""

    text: str
    family: str
    document_id: str


def public_sample(passages: Sequence[Passage], generator: np.random.Generator) -> list[Passage]:
    """Documents that everybody may read, drawn at random, of every family about as many passages.

    Restricted documents leave no trace, not even in what is drawn: what is learned from the sample is felt by everybody.
    """
    documents: dict[str, dict[str, list[Passage]]] = {}
    for passage in passages:
        if PUBLIC in passage.readers:
            documents.setdefault(passage.family, {}).setdefault(passage.document_id, []).append(passage)
    sizes = Counter({name: sum(map(len, of.values())) for name, of in documents.items() if len(of) >= MIN_DOCUMENTS})
    chosen = sorted(name for name, _ in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:MAX_FAMILIES])
    return [passage for name in chosen for passage in _drawn(documents[name], MAX_PASSAGES // len(chosen), generator)]


def family_texts(passages: Sequence[Passage], generator: np.random.Generator) -> list[FamilyText]:
    """Of each family its name and what is drawn from its passages, about as much of each; what is said twice counts once."""
    families = sorted({passage.family for passage in passages})
    found: list[FamilyText] = []
    for family in families:
        said: dict[str, str] = {}
        for passage in passages:
            if passage.family == family:
                for text in filter(None, _texts(passage)):
                    said.setdefault(text, passage.document_id)
        texts = [FamilyText(text, family, document_id) for text, document_id in said.items()]
        kept = sorted(generator.permutation(len(texts))[: MAX_TEXTS // len(families)].tolist())
        found += [FamilyText(family[:MAX_LENGTH], family, ""), *(texts[spot] for spot in kept)]
    return found


def _drawn(documents: dict[str, list[Passage]], limit: int, generator: np.random.Generator) -> Iterator[Passage]:
    names, taken = sorted(documents), 0
    for spot in generator.permutation(len(names)).tolist():
        if taken >= limit:
            return
        drawn = documents[names[spot]][:limit]  # of a book, its beginning
        yield from drawn
        taken += len(drawn)


def _texts(passage: Passage) -> Iterator[str]:
    yield passage.title[:MAX_LENGTH].strip()
    yield passage.heading[:MAX_LENGTH].strip()
    for block in blocks(passage.text):
        if block.kind is BlockKind.HEADING:
            yield block.heading[:MAX_LENGTH].strip()
        elif block.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM):
            text = plain(block.text)
            yield from [text] if len(text) <= MAX_LENGTH else (part[:MAX_LENGTH].strip() for part in sentences(text))
