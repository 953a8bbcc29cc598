"""Teaches the dense encoder from the corpus itself: a heading, or a sentence taken out, is to find what it stood with.

Headings asked of their sections and sentences asked of what surrounded them are the nearest that a corpus has to
questions with known answers (the inverse cloze task of Lee, Chang and Toutanova 2019, section 4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.markdown import Block, BlockKind, blocks, plain
from core.knowledge.sentences import sentences

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_PAIRS = 1_000  # below, there is less to learn than to forget: runbooks alone had 400 and were found less well after
MAX_PAIRS = 20_000  # bounds the time to half a minute
MIN_BODY = 100  # characters of a section below which it says nothing of its own
MIN_SENTENCE, MAX_SENTENCE = 20, 250  # characters of a sentence that could be a question

# Chosen on headings and sentences of public documentation, each removed from its page and asked.
EPOCHS = 4
BATCH = 512  # pairs; each is told apart from the others of its batch
TEMPERATURE = 0.1  # of the cosines
LEARNING_RATE = 0.002
ROW_LENGTH = 0.1  # mean length that a feature's row begins with: what the learning rate is a share of

_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8  # the usual constants of Adam


@dataclass(frozen=True, slots=True)
class Pair:
    """What is asked, and the text that it is to find."""

    asked: str
    body: str


def pairs(passages: Sequence[Passage], generator: np.random.Generator) -> list[Pair]:
    """What a corpus can be asked about itself, at most MAX_PAIRS, drawn at random."""
    found = [pair for passage in passages for pair in _pairs_of(passage, generator)]
    if len(found) <= MAX_PAIRS:
        return found
    return [found[index] for index in sorted(generator.choice(len(found), MAX_PAIRS, replace=False).tolist())]


def trained(
    components: NDArray[np.float32], asked: csr_array, bodies: csr_array, generator: np.random.Generator
) -> NDArray[np.float32]:
    """`components` after they were moved so that each row of `asked` lies nearer to its row of `bodies` than to others.

    Both hold one text a row and one feature a column, TF-IDF weights. Symmetric cross-entropy over the cosines within a
    batch (Radford et al. 2021, figure 3), by Adam (Kingma and Ba 2015, algorithm 1) on the rows that a batch touches.
    """
    mean_length = float(np.linalg.norm(components, axis=1).mean())
    weights = components * np.float32(ROW_LENGTH / mean_length if mean_length else 1.0)
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    usable = np.flatnonzero((np.diff(asked.indptr) > 0) & (np.diff(bodies.indptr) > 0))
    step = 0
    for _ in range(EPOCHS):
        order = generator.permutation(usable)
        for begin in range(0, order.size, BATCH):
            chosen = order[begin : begin + BATCH]
            step += 1
            rows, gradient = _gradient(weights, asked[chosen], bodies[chosen])
            first[rows] = _DECAY * first[rows] + (1 - _DECAY) * gradient
            second[rows] = _SQUARE_DECAY * second[rows] + (1 - _SQUARE_DECAY) * gradient**2
            mean, square = first[rows] / (1 - _DECAY**step), second[rows] / (1 - _SQUARE_DECAY**step)
            weights[rows] -= LEARNING_RATE * mean / (np.sqrt(square) + _TINY)
    return weights


def _gradient(
    weights: NDArray[np.float32], asked: csr_array, bodies: csr_array
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The features that a batch touches, and the gradient of the loss in their rows of `weights`."""
    # Only a fit needs it, and a running bot is spared the import.
    from scipy.sparse import csr_array, vstack

    both = csr_array(vstack([asked, bodies]))
    touched, columns = np.unique(both.indices, return_inverse=True)
    rows = touched.astype(np.intp)
    small = csr_array((both.data, columns, both.indptr), shape=(both.shape[0], rows.size))
    projected = np.asarray(small @ weights[rows])
    lengths = np.maximum(np.linalg.norm(projected, axis=1, keepdims=True), _TINY)
    units = projected / lengths
    count = asked.shape[0]
    left, right = units[:count], units[count:]
    logits = left @ right.T / TEMPERATURE
    errors = (_softmax(logits) + _softmax(logits.T).T - 2 * np.eye(count, dtype=np.float32)) / (count * TEMPERATURE)
    moved = np.concatenate([errors @ right, errors.T @ left])
    moved = (moved - (moved * units).sum(axis=1, keepdims=True) * units) / lengths
    return rows, np.asarray(small.T @ moved, np.float32)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """By row."""
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _pairs_of(passage: Passage, generator: np.random.Generator) -> Iterator[Pair]:
    for heading, section in _sections(passage):
        body = "\n\n".join(block.text for block in section)
        if len(body) < MIN_BODY:
            continue
        if heading:
            yield Pair(heading, f"{passage.title}\n{body}")
        if len(section) > 1 and (sentence := _sentence(section, generator)):
            yield Pair(plain(sentence), f"{passage.title}\n{heading}\n{body.replace(sentence, '', 1)}")


def _sections(passage: Passage) -> Iterator[tuple[str, list[Block]]]:
    """Each heading with the blocks below it; what stands above the first belongs to the heading before the passage."""
    heading, section = passage.heading, list[Block]()
    for block in blocks(passage.text):
        if block.kind is BlockKind.HEADING:
            yield heading, section
            heading, section = block.heading, []
        else:
            section.append(block)
    yield heading, section


def _sentence(section: Sequence[Block], generator: np.random.Generator) -> str:
    """A sentence of a random paragraph, empty if it has none that could be a question."""
    paragraphs = [block.text for block in section if block.kind is BlockKind.PARAGRAPH]
    if not paragraphs:
        return ""
    chosen = sentences(paragraphs[int(generator.integers(len(paragraphs)))])
    usable = [text for text in chosen if MIN_SENTENCE <= len(text) <= MAX_SENTENCE]
    return usable[int(generator.integers(len(usable)))] if usable else ""
