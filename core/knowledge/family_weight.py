"""How much a family model's opinion is worth on a corpus, learned by asking the corpus about itself.

A text is asked of the corpus without itself, and the model's opinion is that of a model without the text's document. Where
search finds what surrounded the text, opinions can only disturb; where little else is left that speaks of it, as in short
pages, knowing the family helps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from core.knowledge.document import Passage
from core.knowledge.family_texts import FamilyText
from core.knowledge.lexical import TermCounts, passage_vector, query_vector, term_counts
from core.knowledge.sections import MIN_BODY
from core.knowledge.statistics import TermStatistics
from core.knowledge.terms import terms
from core.knowledge.windows import windowed

MAX_TRIALS = 300  # texts that are asked
MIN_TRIALS = 30  # below, what is learned is chance
FLOOR = 1e-3  # least probability that a trial can give to what is right: one trial is not to decide
SURE = 2.0  # standard errors by which an opinion must make what is right likelier
FOUND = 24  # best passages that are looked at
SHARPNESS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # powers of a passage's score
WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of the opinion beside a logarithm of the score


@dataclass(frozen=True, slots=True)
class _Trial:
    """The best passages for a text: `scores` above 0 relative to the best, `opinions` of their families, `right` ones."""

    scores: NDArray[np.float64]
    opinions: NDArray[np.float64]
    right: NDArray[np.bool_]

    def log_likelihood(self, sharpness: float, weight: float) -> float:
        """Of what is right, where the probability of a passage goes with score^sharpness · exp(weight · opinion)."""
        logarithms = sharpness * np.log(self.scores) + weight * self.opinions
        chances = np.exp(logarithms - logarithms.max())
        return float(np.log(max(chances[self.right].sum() / chances.sum(), FLOOR)))


def family_weight(
    passages: Sequence[Passage],
    families: Sequence[str],
    texts: Sequence[FamilyText],
    held_out: NDArray[np.float64],
    generator: np.random.Generator,
) -> float:
    """That of the opinion beside the logarithm of a passage's score: the likeliest, 0 unless it is surely likelier.

    `held_out[i, j]` is the opinion of the j-th family on the i-th text, of a model without that text's document.
    """
    trials = list(islice(_trials(passages, families, texts, held_out, generator), MAX_TRIALS))
    if len(trials) < MIN_TRIALS:
        return 0.0
    table = np.array([[[trial.log_likelihood(*pair) for trial in trials] for pair in row] for row in _GRID])
    row, column = divmod(int(table.mean(axis=2).argmax()), len(WEIGHTS))
    gains = table[row, column] - table[table[:, 0].mean(axis=1).argmax(), 0]
    if not WEIGHTS[column] or gains.mean() <= SURE * gains.std(ddof=1) / np.sqrt(len(trials)):
        return 0.0
    return WEIGHTS[column] / SHARPNESS[row]


_GRID = [[(sharpness, weight) for weight in WEIGHTS] for sharpness in SHARPNESS]


def _trials(
    passages: Sequence[Passage],
    families: Sequence[str],
    texts: Sequence[FamilyText],
    held_out: NDArray[np.float64],
    generator: np.random.Generator,
) -> Iterator[_Trial]:
    search = _Search(passages)
    columns = np.array([families.index(passage.family) for passage in passages])
    order: list[int] = generator.permutation(len(texts)).tolist()
    for spot in order:
        text = texts[spot]
        if search.documents_with(text.text) != {text.document_id}:
            continue  # said in several places, it would be found in another one word for word
        scores, own = search.scores(text)
        best = np.argsort(-scores, kind="stable")[:FOUND]
        best = best[scores[best] > 0]
        right = np.isin(best, own) if own else columns[best] == families.index(text.family)
        if best.size:
            yield _Trial(scores[best] / scores[best[0]], held_out[spot, columns[best]], right)


class _Search:
    """BM25 over passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        # Only a fit needs it, and a running bot is spared the import.
        from scipy.sparse import csc_array

        self._passages = passages
        counted = [term_counts(windowed(passage)) for passage in passages]
        measured = [(each.numbers, each.repeated, each.length) for each in counted]
        self._statistics = TermStatistics.empty().changed(measured, ())
        vectors = [self._vector(each) for each in counted]
        self._matrix = csc_array(
            (
                np.concatenate([values for _, values in vectors]),
                (
                    np.repeat(np.arange(len(passages)), [places.size for places, _ in vectors]),
                    np.concatenate([places for places, _ in vectors]),
                ),
            ),
            shape=(len(passages), self._statistics.terms.size),
        )

    def documents_with(self, text: str) -> set[str]:
        holding = (found for found in self._passages if text in (found.title, found.heading) or text in found.text)
        return {found.document_id for found in holding}

    def scores(self, asked: FamilyText) -> tuple[NDArray[np.float64], list[int]]:
        """Of every passage without the text; and where those passages of its document stand that then have more to say."""
        query = query_vector(Counter(terms(asked.text)), self._statistics)
        places = np.searchsorted(self._statistics.terms, np.array(query.indices, np.uint32))
        weights = np.zeros(self._statistics.terms.size)
        weights[places] = query.values
        scores: NDArray[np.float64] = np.asarray(self._matrix[:, places] @ weights[places])
        own: list[int] = []
        for spot, passage in enumerate(self._passages):
            if passage.document_id != asked.document_id:
                continue
            rest = _without(passage, asked.text)
            if len(rest.text.strip()) < MIN_BODY:
                scores[spot] = 0.0
                continue
            own.append(spot)
            if rest != passage:
                held, values = self._vector(term_counts(windowed(rest)))
                scores[spot] = weights[held] @ values
        return scores, own

    def _vector(self, counted: TermCounts) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Where the terms of a passage stand in the statistics, and their weights."""
        vector = passage_vector(counted, self._statistics.average_length)
        return np.searchsorted(self._statistics.terms, np.array(vector.indices, np.uint32)), np.array(vector.values)


def _without(passage: Passage, text: str) -> Passage:
    return replace(
        passage,
        title="" if passage.title == text else passage.title,
        heading="" if passage.heading == text else passage.heading,
        text=passage.text.replace(text, ""),
    )
