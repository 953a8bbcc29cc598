"""What a corpus can be asked about itself: the headings of its sections and the sentences in them.

Headings asked of their sections and sentences asked of what surrounded them are the nearest that a corpus has to
questions with known answers (the inverse cloze task of Lee, Chang and Toutanova 2019, section 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.knowledge.document import Passage
from core.knowledge.markdown import Block, BlockKind, blocks, plain
from core.knowledge.sentences import sentences

MAX_PAIRS = 20_000  # that are drawn at once: bounds the time of a fit to a minute
MIN_BODY = 100  # characters of a section below which it says nothing of its own
MIN_SENTENCE, MAX_SENTENCE = 20, 250  # characters of a sentence that could be a question


@dataclass(frozen=True, slots=True)
class Section:
    """`text` is all that it says, with the title of its page and its `heading`, which may be empty.

    `paragraphs` are the sentences of each paragraph that could be a question; a section of a single block has none.
    """

    text: str
    heading: str
    paragraphs: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """What is asked, and the text that is to be found once `asked`, which stands in it, is taken out."""

    asked: str
    text: str


def sections(passages: Iterable[Passage]) -> list[Section]:
    return [section for passage in passages for section in _sections_of(passage)]


def pairs(found: Sequence[Section], generator: np.random.Generator) -> list[Pair]:
    """The heading of each section and a random sentence of a random paragraph; of them all, MAX_PAIRS at random."""
    drawn = [Pair(asked, section.text) for section in found for asked in _asked(section, generator)]
    if len(drawn) <= MAX_PAIRS:
        return drawn
    return [drawn[index] for index in sorted(generator.choice(len(drawn), MAX_PAIRS, replace=False).tolist())]


def _asked(section: Section, generator: np.random.Generator) -> Iterator[str]:
    if section.heading:
        yield section.heading
    if section.paragraphs:
        usable = section.paragraphs[int(generator.integers(len(section.paragraphs)))]
        if usable:
            yield usable[int(generator.integers(len(usable)))]


def _sections_of(passage: Passage) -> Iterator[Section]:
    for heading, below in _headed(passage):
        body = "\n\n".join(block.text for block in below)
        if len(body) >= MIN_BODY:
            texts = [block.text for block in below if block.kind is BlockKind.PARAGRAPH and len(below) > 1]
            yield Section(f"{passage.title}\n{heading}\n{body}", heading, tuple(map(_usable, texts)))


def _headed(passage: Passage) -> Iterator[tuple[str, list[Block]]]:
    """Each heading with the blocks below it; what stands above the first belongs to the heading before the passage."""
    heading, below = passage.heading, list[Block]()
    for block in blocks(passage.text):
        if block.kind is BlockKind.HEADING:
            yield heading, below
            heading, below = block.heading, []
        else:
            below.append(block)
    yield heading, below


def _usable(paragraph: str) -> tuple[str, ...]:
    return tuple(plain(text) for text in sentences(paragraph) if MIN_SENTENCE <= len(text) <= MAX_SENTENCE)
