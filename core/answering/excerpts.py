"""A question and the passages found for it → the excerpts that may answer, best first.

A candidate is a contiguous run of at most EXCERPT_WORDS words of a passage. It begins at a heading or, in a section that
is longer than that, at a paragraph, and is scored as a whole: what answers often stands beside the words that were asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from core.answering.pieces import Piece, joined, pieces
from core.knowledge.lexical import K1, B
from core.knowledge.markdown import BlockKind
from core.knowledge.ranking import RankedPassage
from core.knowledge.retriever import Retrieval
from core.knowledge.terms import terms, tokens
from core.model.document import DocumentKind, Passage

EXCERPT_WORDS = 140  # of an excerpt at most, unless a single piece is longer or
WHOLE_WORDS = 200  # it ends where a section does: then so many at most
USUAL_TERMS = 100.0  # terms of a usual candidate, which BM25 discounts longer ones against
REMEMBERED_ROWS = 10_000  # of tables, whose terms are kept in memory: a few MB
FEW_ROWS = 3  # of a table that is shown whole
HEADING_COUNTS = 2  # times that a term in a heading counts

# What the parts of a score count, each in [0, 1]. The first three are BM25 scores: of the passage, of the excerpt, and of
# the excerpt by terms that are rare among what was found. Chosen by forward selection, see the ablation table in
# CONTRIBUTING; halving any of them moves the figures by less than their interval.
PASSAGE = EXCERPT = RARE = 1.0
PAIRS = 0.25
TITLE = 0.6
SUBJECT = 0.6
REMEDY = 0.3
PAGE = 0.7  # of a page, where a question asks for what holds, not for what happened or why something fails
ENTRY = 1.0  # of the entry of a table that the question names by its key

_REMEDY = re.compile(r"\b(?:resol|mitigat|fix|workaround|solution|remed|how to|troubleshoot|recover)", re.IGNORECASE)
_SYMPTOM = re.compile(
    r"\b(?:error|fail\w*|stuck|can(?:not|['’]t)|unable|not working|(?:do|does|is|wo)n['’]t|does not|broken|crash\w*|timeout"
    r"|denied|refused|invalid|too many|exceeded|alert|fires?|firing|missing|wrong)\b",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:happened|incidents?|outages?|did|was|were|has|have|had|ever|last time|post-?mortem)\b", re.IGNORECASE
)
_ASIDE = re.compile(r"\([^()]*\)")
_LEANS = re.compile(
    r"^\W*(?:this|that|these|those|it|its|they|them|such|then|however|otherwise|also|instead|and|but|or|so)\b",
    re.IGNORECASE,
)
_NAME_PART = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run of pieces of a passage that may answer.

    `score` orders the candidates of one question. `lexical` is the BM25 score of the run and `coverage` the share of the
    question's term weight that it holds with the headings above it and the page's title, in [0, 1]. `marked` is the piece that
    holds most of the question.
    """

    found: RankedPassage
    pieces: tuple[Piece, ...]
    marked: Piece
    score: float
    lexical: float
    coverage: float
    pairs: float
    subject: float

    @property
    def passage(self) -> Passage:
        return self.found.passage

    @property
    def text(self) -> str:
        return joined(self.pieces)

    def overlaps(self, other: Candidate) -> bool:
        """Tell whether both show the same: pieces of one document with the same text."""
        if self.passage.document_id != other.passage.document_id:
            return self.pieces[-1].text == other.pieces[-1].text and self.marked.text == other.marked.text
        return not {piece.text for piece in self.pieces if piece.kind is not BlockKind.HEADING}.isdisjoint(
            piece.text for piece in other.pieces
        )


def candidates(query: str, retrieval: Retrieval) -> list[Candidate]:
    """Every candidate of the retrieved passages, best first; none if nothing was found."""
    asked = _Asked.of(query, retrieval)
    runs = [run for found in retrieval.passages for run in _runs(asked, found)]
    if not runs:
        return []
    rare = asked.rare(retrieval.passages)
    lexical = _bm25(runs, asked.weights)
    local = _bm25(runs, rare)
    passage = np.array([run.found.score for run in runs])
    pairs = np.array([run.pairs for run in runs])
    title = np.array([run.title for run in runs])
    subject = np.array([asked.subject(run.found.passage.family) for run in runs])
    remedy = np.array([asked.is_symptom and run.is_remedy for run in runs], float)
    asks_what_holds = not (asked.is_symptom or asked.is_past)
    page = np.array([asks_what_holds and run.found.passage.kind is DocumentKind.PAGE for run in runs], float)
    entry = np.array([run.entry(rare, asked) for run in runs])
    scores = (
        PASSAGE * _relative(passage) + EXCERPT * _relative(lexical) + RARE * _relative(local)
        + PAGE * page + ENTRY * entry + PAIRS * pairs + TITLE * title + SUBJECT * subject + REMEDY * remedy
    )  # fmt: skip
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    return [
        Candidate(
            runs[place].found,
            runs[place].pieces,
            runs[place].marked(rare),
            float(scores[place]),
            float(lexical[place]),
            runs[place].coverage,
            float(pairs[place]),
            float(subject[place]),
        )
        for place in order
    ]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question as candidates are compared with it: its distinct terms with their weights, and its word pairs."""

    terms: dict[str, int]
    weights: NDArray[np.float64]
    pairs: dict[tuple[str, str], int]
    is_symptom: bool
    is_past: bool
    named: frozenset[str]
    families: frozenset[str]

    @classmethod
    def of(cls, query: str, retrieval: Retrieval) -> _Asked:
        firsts = [token.terms[0] for token in tokens(query)]
        pairs = dict.fromkeys((first, second) for first, second in pairwise(firsts) if first != second)
        return cls(
            {term: place for place, term in enumerate(retrieval.weights)},
            np.array([*retrieval.weights.values()]),
            {pair: place for place, pair in enumerate(pairs)},
            bool(_SYMPTOM.search(query)),
            bool(_PAST.search(query)),
            named_families(query, retrieval.families),
            retrieval.families,
        )

    def subject(self, family: str) -> float:
        """1 for a family that the question names, -1 for others if it names any, else 0."""
        if not self.named or self.named == self.families:
            return 0.0
        return 1.0 if family in self.named else -1.0

    def rare(self, found: Sequence[RankedPassage]) -> NDArray[np.float64]:
        """The weights of the terms among the sections of what was found: what all of them hold tells none apart."""
        held = np.zeros(len(self.terms))
        count = 0
        for each in found:
            sections: dict[int, set[str]] = {}
            for piece in pieces(each.passage):
                sections.setdefault(piece.section, set()).update(piece.terms)
            for section in sections.values():
                count += 1
                for term in self.terms.keys() & section:
                    held[self.terms[term]] += 1
        return np.log1p((count - held + 0.5) / (held + 0.5))


def named_families(query: str, families: frozenset[str]) -> frozenset[str]:
    """The families that a question names: in one word or several, or else by one part of their name."""
    asked = query.lower()
    letters = "".join(_NAME_PART.findall(asked))
    whole = frozenset(each for each in families if "".join(_NAME_PART.findall(each.lower())) in letters)
    words = {part for part in _NAME_PART.findall(asked) if len(part) > 3}
    return whole or frozenset(each for each in families if not words.isdisjoint(_NAME_PART.findall(each.lower())))


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring pieces of a passage, and how often they hold each term of the question, headings counted more."""

    found: RankedPassage
    pieces: tuple[Piece, ...]
    counts: NDArray[np.float64]
    length: float
    held: NDArray[np.float64]  # of each piece, how often it holds each term
    above: NDArray[np.bool_]  # whether the headings above it hold it
    pairs: float
    title: float
    coverage: float

    @property
    def is_remedy(self) -> bool:
        return any(_REMEDY.search(piece.heading) for piece in self.pieces)

    def entry(self, weights: NDArray[np.float64], asked: _Asked) -> float:
        """The share of the question's weight that an entry of a table holds in what names it and in the header."""
        known = frozenset(asked.terms)
        best, header, block = 0.0, frozenset[str](), -1
        for piece in self.pieces:
            if piece.kind is not BlockKind.TABLE:
                continue
            *head, row = piece.text.splitlines()
            if head and piece.block != block:
                header, block = frozenset(terms(head[0])) & known, piece.block
            named = _named(row, known, header)
            if named:
                best = max(best, float(weights[[asked.terms[term] for term in named | header]].sum()))
        total = float(weights.sum())
        return best / total if total > 0 else 0.0

    def marked(self, weights: NDArray[np.float64]) -> Piece:
        """The piece that holds most of the question by these weights, with the headings above it; no heading, if it can be helped."""
        holding = ((self.held > 0) | self.above) @ weights
        said = [
            place for place, piece in enumerate(self.pieces)
            if piece.kind is not BlockKind.HEADING and not piece.text.rstrip().endswith("?")
        ]  # fmt: skip
        return self.pieces[max(said or range(len(self.pieces)), key=lambda place: (holding[place], -place))]


@lru_cache(maxsize=REMEMBERED_ROWS)
def _cells(row: str) -> tuple[frozenset[str], ...]:
    """The terms of each cell of a row, without what stands in parentheses."""
    return tuple(frozenset(terms(cell)) for cell in _ASIDE.sub("", row).strip().strip("|").split("|"))


def asked_rows(chosen: Sequence[Piece], query: str) -> list[Piece]:
    """Return the pieces of an excerpt with only those rows of a long table that the question names; a row of dots for others.

    A table of few rows, or of which no row is named, stays whole.
    """
    asked = frozenset(terms(query))
    kept: list[Piece] = []
    for _, group in groupby(chosen, key=lambda piece: piece.block):
        rows = list(group)
        if rows[0].kind is not BlockKind.TABLE or len(rows) <= FEW_ROWS or not rows[0].opens:
            kept += rows
            continue
        *head, first = rows[0].text.splitlines()
        header = frozenset(terms(head[0])) & asked if head else frozenset[str]()
        lines = [first, *(piece.text for piece in rows[1:])]
        shown = [line for line in lines if _named(line, asked, header)]
        if not shown:
            kept += rows
            continue
        dots = [f"| …{' |' * (first.count('|') - 1)}"] if len(shown) < len(lines) else []
        kept.append(replace(rows[0], text="\n".join([*head, *shown, *dots])))
    return kept


def _named(row: str, asked: frozenset[str], header: frozenset[str]) -> frozenset[str]:
    """The terms by which a question names an entry: its first cell, or any other if it names a column of the header too."""
    key, *others = _cells(row)
    if key and key <= asked and not key <= header:  # “stages” names the column of that name, not the entry “staging”
        return key
    return frozenset(term for cell in others if cell <= asked for term in cell) if header else frozenset()


def _runs(asked: _Asked, found: RankedPassage) -> Iterator[_Run]:
    all_pieces = pieces(found.passage)
    if not all_pieces or not asked.terms:
        return
    total = float(asked.weights.sum()) or 1.0
    held = np.zeros((len(all_pieces), len(asked.terms)))
    near = np.zeros((len(all_pieces), max(1, len(asked.pairs))), bool)
    for place, piece in enumerate(all_pieces):
        for term in piece.terms:
            if (spot := asked.terms.get(term)) is not None:
                held[place, spot] += 1
        for pair in pairwise(piece.terms):
            if (spot := asked.pairs.get(pair)) is not None:
                near[place, spot] = True
    paths = {piece.section: np.array([term in piece.path for term in asked.terms]) for piece in all_pieces}
    above = np.array([paths[piece.section] for piece in all_pieces])
    is_heading = np.array([piece.kind is BlockKind.HEADING for piece in all_pieces])
    counted = held * np.where(is_heading, HEADING_COUNTS, 1)[:, None]
    sums = np.vstack([np.zeros(counted.shape[1]), np.cumsum(counted, axis=0)])
    lengths = np.concatenate([[0], np.cumsum([len(piece.terms) for piece in all_pieces])])
    title_terms = terms(found.passage.title)
    title = np.array([term in title_terms for term in asked.terms], float)
    titled = float(title @ asked.weights) / total
    for start, end in _bounds(all_pieces):
        own = sums[end] - sums[start]
        yield _Run(
            found,
            all_pieces[start:end],
            own + title,
            float(lengths[end] - lengths[start]) + len(title_terms),
            held[start:end],
            above[start:end],
            float(near[start:end].any(axis=0).sum()) / max(1, len(asked.pairs)),
            titled,
            float(((own > 0) | (title > 0) | above[start]) @ asked.weights) / total,
        )


def _bounds(all_pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Where the candidates of a passage begin and end."""
    words = np.concatenate([[0], np.cumsum([piece.words for piece in all_pieces])])
    sections: dict[int, int] = {}
    for piece in all_pieces:
        sections[piece.section] = sections.get(piece.section, 0) + piece.words
    for start, piece in enumerate(all_pieces):
        first = start == 0 or all_pieces[start - 1].section != piece.section
        if not first and (sections[piece.section] <= EXCERPT_WORDS or not _can_begin(all_pieces, start)):
            continue
        end = max(start + 1, _within(words, start, EXCERPT_WORDS))
        whole = _within(words, start, WHOLE_WORDS)
        while whole > end and whole < len(all_pieces) and all_pieces[whole].section == all_pieces[whole - 1].section:
            whole -= 1
        end = max(end, whole)
        while end > start + 1 and all_pieces[end - 1].introduces:
            end -= 1
        if any(each.kind is not BlockKind.HEADING for each in all_pieces[start:end]):
            yield start, end


def _within(words: NDArray[np.int_], start: int, limit: int) -> int:
    """The end of the pieces from `start` on that have no more than `limit` words together."""
    places: NDArray[np.intp] = np.searchsorted(words, np.array([words[start] + limit]), side="right")
    return int(places[0]) - 1


def _can_begin(all_pieces: Sequence[Piece], start: int) -> bool:
    """Tell whether an excerpt may begin within a section here: at a paragraph that leans on nothing above it."""
    piece, before = all_pieces[start], all_pieces[start - 1]
    return piece.opens and piece.kind is BlockKind.PARAGRAPH and not before.introduces and not _LEANS.match(piece.text)


def _bm25(runs: Sequence[_Run], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The BM25 score of each run (Robertson and Zaragoza 2009, section 3.3)."""
    counts = np.stack([run.counts for run in runs])
    lengths = np.array([run.length for run in runs])
    norm = K1 * (1 - B + B * lengths / USUAL_TERMS)
    return (counts * (K1 + 1) / (counts + norm[:, None])) @ weights


def _relative(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    best = float(scores.max())
    return scores / best if best > 0 else scores
