"""Rank the excerpts of the passages found for a question that may answer it.

A candidate is a contiguous run of at most EXCERPT_WORDS words of a passage. It begins at a heading or, in a longer
section, at a paragraph, and consists of whole pieces. It is scored as a whole, because the answer is often next to the
words of the question.

An excerpt that was cut within a section is completed, because half a rule does harm: a list is completed, and a sentence of
the section that forbids or limits something is shown as well, after dots if there is text between them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, pairwise, takewhile
from math import fsum, log1p

import numpy as np
from numpy.typing import NDArray

from core.answering.statements import Nearness, Piece, joined, pieces
from core.knowledge.markdown import BlockKind
from core.knowledge.retriever import KIND_PRIOR, RankedPassage, Retrieval, is_answered_by, support
from core.knowledge.terms import K1, B, distinct_terms, terms
from core.model.document import DocumentKind, Passage
from core.model.text import counted

EXCERPT_WORDS = 140  # maximum of an excerpt, unless a single piece is longer
WHOLE_WORDS = 200  # maximum of an excerpt that ends where a section ends
PART_WORDS = 115  # maximum of an excerpt that is hedged
USUAL_TERMS = 100.0  # terms of a typical candidate; BM25 discounts longer ones
REMEMBERED_ROWS = 10_000  # table rows whose terms are kept in memory: a few MB
FEW_ROWS = 3  # most rows of a table that is shown whole
HEADING_COUNTS = 2  # weight of a term in a heading

# Weights of the parts of a score, which are in [0, 1]; see docs/ablations.md.
PASSAGE = EXCERPT = RARE = 1.0  # BM25 scores as a share of the best: of the passage, of the excerpt, of its rare terms
TITLE = 0.6  # share of the question in the title of the page
PAGE = 0.7  # for a page, unless a question asks what happened or why something fails
ENTRY = 1.0  # for a table row that the question names by its key
FAMILY = 6.0  # for the best supported family of manuals: a clear vote outweighs all the rest
MEANING = 2.0  # cosine as a share of the best, for the first RERANKED by all others
RERANKED = 10

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


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run of pieces of a passage that may answer.

    `score` orders the candidates of one question. `lexical` is the BM25 score of the run, `telling` that with the
    weights of rare terms. `coverage` is the share of the question's term weight in the run, the headings above it and
    the page's title, `titled` that in the title; both in [0, 1]. `cosine` compares its meaning with the question's; 0
    without an embedding model. `marked` is the piece with most of the question.
    """

    found: RankedPassage
    pieces: tuple[Piece, ...]
    marked: Piece
    lexical: float
    telling: float
    coverage: float
    titled: float
    cosine: float = 0.0
    score: float = 0.0

    @property
    def passage(self) -> Passage:
        return self.found.passage

    @property
    def text(self) -> str:
        return joined(self.pieces)

    def overlaps(self, other: Candidate) -> bool:
        """Return whether both show the same text: a common piece of one document, or copies in two documents."""
        if self.passage.document_id != other.passage.document_id:
            return self.pieces[-1].text == other.pieces[-1].text and self.marked.text == other.marked.text
        return not {piece.text for piece in self.pieces if piece.kind is not BlockKind.HEADING}.isdisjoint(
            piece.text for piece in other.pieces
        )


def candidates(query: str, retrieval: Retrieval) -> list[Candidate]:
    """Return every candidate of the retrieved passages, best first; none if nothing was found.

    An answer that people confirmed for this very question comes before all others.
    """
    rare = _rare(retrieval)
    runs = [run for ranked in retrieval.passages for run in _runs(ranked, retrieval.weights, rare, retrieval.vector)]
    rarity = max((run.telling for run in runs), default=0.0) or 1.0
    passage = max((run.found.score for run in runs), default=0.0) or 1.0
    lexical = max((run.lexical for run in runs), default=0.0) or 1.0
    families = support(query, retrieval)
    asks_what_holds = not (_SYMPTOM.search(query) or _PAST.search(query))

    def score(run: Candidate) -> float:
        is_page = asks_what_holds and run.passage.kind is DocumentKind.PAGE
        entry = _entry(run.pieces, rare)
        relative = PASSAGE * run.found.score / passage + EXCERPT * run.lexical / lexical + RARE * run.telling / rarity
        return relative + TITLE * run.titled + PAGE * is_page + ENTRY * entry + FAMILY * families[run.passage.family]

    ranked = _in_order(query, [replace(run, score=score(run)) for run in runs])
    first, rest = ranked[:RERANKED], ranked[RERANKED:]
    nearness = [KIND_PRIOR[run.passage.kind] * run.cosine for run in first]
    if (nearest := max(nearness, default=0.0)) > 0:
        first = [
            replace(run, score=run.score + MEANING * near / nearest) for run, near in zip(first, nearness, strict=True)
        ]
    return [*_in_order(query, first), *rest]


def nearest_part(candidate: Candidate, retrieval: Retrieval) -> Candidate:
    """Return a candidate cut to PART_WORDS words of whole blocks around the marked one and the nearest in meaning.

    It stays whole if it is that short, or the question has no vector. What introduces a block stays before it. The rest of
    the block's section comes before other sections.
    """
    if not candidate.cosine or sum(piece.words for piece in candidate.pieces) <= PART_WORDS:
        return candidate
    whole, chosen = pieces(candidate.passage), candidate.pieces
    start = next(place for place in range(len(whole)) if whole[place : place + len(chosen)] == chosen)
    parts = list(_introduced(chosen))
    nearness = Nearness.of(candidate.passage, retrieval.vector)
    near = [nearness.between(start + first, start + end) for first, end in parts]
    nearest, place = near.index(max(near)), chosen.index(candidate.marked)
    marked = next(number for number, (_, end) in enumerate(parts) if place < end)
    first, last = sorted((nearest, marked))
    section = chosen[parts[nearest][1] - 1].section
    while True:
        room = PART_WORDS - sum(piece.words for piece in chosen[parts[first][0] : parts[last][1]])
        beside = [each for each in (last + 1, first - 1) if 0 <= each < len(parts)]
        fitting = [each for each in beside if sum(piece.words for piece in chosen[slice(*parts[each])]) <= room]
        if not fitting:
            break
        best = max(fitting, key=lambda each: (chosen[parts[each][1] - 1].section == section, near[each]))
        first, last = min(first, best), max(last, best)
    return replace(candidate, pieces=chosen[parts[first][0] : parts[last][1]])


def _introduced(chosen: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each block of an excerpt, together with the blocks that introduce it."""
    start = 0
    for place, (piece, after) in enumerate(pairwise(chosen), start=1):
        if after.block != piece.block and not piece.introduces:
            yield start, place
            start = place
    yield start, len(chosen)


def _in_order(query: str, runs: Sequence[Candidate]) -> list[Candidate]:
    # The order of sets differs between processes, and with it the last digits of sums: these decide nothing.
    return sorted(runs, key=lambda run: (not is_answered_by(query, run.passage), -round(run.score, 6), run.passage.id))


def _rare(retrieval: Retrieval) -> dict[str, float]:
    """Return the weights of the question's terms among the found sections: the fewer contain a term, the higher."""
    sections: dict[tuple[str, int], set[str]] = {}
    for ranked in retrieval.passages:
        for piece in pieces(ranked.passage):
            sections.setdefault((ranked.passage.id, piece.section), set()).update(piece.terms)
    held = Counter(term for section in sections.values() for term in section & retrieval.weights.keys())
    return {term: log1p((len(sections) - held[term] + 0.5) / (held[term] + 0.5)) for term in retrieval.weights}


def _runs(
    ranked: RankedPassage, weights: Mapping[str, float], rare: Mapping[str, float], vector: NDArray[np.float32]
) -> Iterator[Candidate]:
    """Yield the candidates of a passage without their scores. BM25 follows Robertson and Zaragoza 2009, section 3.3."""
    all_pieces = pieces(ranked.passage)
    total = sum(weights.values())
    if not total:
        return
    title = terms(ranked.passage.title)
    titled = Counter(weights.keys() & set(title))
    held = [[term for term in piece.terms if term in weights] for piece in all_pieces]
    counted = [
        each * HEADING_COUNTS if piece.kind is BlockKind.HEADING else each
        for each, piece in zip(held, all_pieces, strict=True)
    ]
    near = [
        fsum(rare[term] for term in weights.keys() & piece.path.union(each))
        for each, piece in zip(held, all_pieces, strict=True)
    ]
    nearness = Nearness.of(ranked.passage, vector)
    for start, end in _bounds(all_pieces):
        counts = titled + Counter(term for each in counted[start:end] for term in each)
        length = len(title) + sum(len(piece.terms) for piece in all_pieces[start:end])
        norm = K1 * (1 - B + B * length / USUAL_TERMS)
        shares = {term: count * (K1 + 1) / (count + norm) for term, count in counts.items()}
        stating = [
            place for place in range(start, end)
            if not all_pieces[place].introduces and not all_pieces[place].text.rstrip().endswith("?")
        ]  # fmt: skip
        marked = max(stating or range(start, end), key=lambda place: (near[place], -place))
        yield Candidate(
            ranked,
            all_pieces[start:end],
            all_pieces[marked],
            fsum(weights[term] * share for term, share in shares.items()),
            fsum(rare[term] * share for term, share in shares.items()),
            sum(weights[term] for term in weights if term in counts or term in all_pieces[start].path) / total,
            fsum(weights[term] for term in titled) / total,
            nearness.between(start, end),
        )


def _entry(chosen: Sequence[Piece], weights: Mapping[str, float]) -> float:
    """Return the largest share of the question's weight in the name of a table row and in the table's header."""
    best, header, block = 0.0, frozenset[str](), -1
    for piece in chosen:
        if piece.kind is not BlockKind.TABLE:
            continue
        *head, row = piece.text.splitlines()
        if head and piece.block != block:
            header, block = distinct_terms(head[0]) & weights.keys(), piece.block
        if named := _named(row, weights.keys(), header):
            best = max(best, fsum(weights[term] for term in named | header))
    return best / sum(weights.values()) if best else 0.0


@lru_cache(maxsize=REMEMBERED_ROWS)
def _cells(row: str) -> tuple[frozenset[str], ...]:
    """Return the terms of each cell of a row, without text in parentheses."""
    return tuple(frozenset(terms(cell)) for cell in _ASIDE.sub("", row).strip().strip("|").split("|"))


def asked_rows(chosen: Sequence[Piece], query: str) -> list[Piece]:
    """Return the pieces of an excerpt, with only those rows of a long table that the question names, and a row of dots.

    A table with few rows or without a named row stays whole.
    """
    words = distinct_terms(query)
    kept: list[Piece] = []
    for _, group in groupby(chosen, key=lambda piece: piece.block):
        rows = list(group)
        if rows[0].kind is not BlockKind.TABLE or len(rows) <= FEW_ROWS or not rows[0].opens:
            kept += rows
            continue
        *head, first = rows[0].text.splitlines()
        header = distinct_terms(head[0]) & words if head else frozenset[str]()
        lines = [first, *(piece.text for piece in rows[1:])]
        shown = [line for line in lines if _named(line, words, header)]
        if not shown:
            kept += rows
            continue
        dots = [f"| …{' |' * (first.count('|') - 1)}"] if len(shown) < len(lines) else []
        kept.append(replace(rows[0], text="\n".join([*head, *shown, *dots])))
    return kept


def _named(row: str, words: AbstractSet[str], header: frozenset[str]) -> frozenset[str]:
    """Return the terms by which a question names a row: its first cell, or any other if it also names a column."""
    key, *others = _cells(row)
    if key and key <= words and not key <= header:  # “stages” names the column of that name, not the row “staging”
        return key
    return frozenset(term for cell in others if cell <= words for term in cell) if header else frozenset()


def _bounds(all_pieces: Sequence[Piece]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each candidate of a passage."""
    words = [0, *accumulate(piece.words for piece in all_pieces)]
    sections = Counter[int]()
    for piece in all_pieces:
        sections[piece.section] += piece.words
    for start, piece in enumerate(all_pieces):
        first = start == 0 or all_pieces[start - 1].section != piece.section
        if not first and (sections[piece.section] <= EXCERPT_WORDS or not _can_begin(all_pieces, start)):
            continue
        end = max(start + 1, bisect_right(words, words[start] + EXCERPT_WORDS) - 1)
        whole = bisect_right(words, words[start] + WHOLE_WORDS) - 1
        while whole > end and whole < len(all_pieces) and all_pieces[whole].section == all_pieces[whole - 1].section:
            whole -= 1
        end = max(end, whole)
        while end > start + 1 and all_pieces[end - 1].introduces:
            end -= 1
        if any(each.kind is not BlockKind.HEADING for each in all_pieces[start:end]):
            yield start, end


def _can_begin(all_pieces: Sequence[Piece], start: int) -> bool:
    """Return whether an excerpt may begin here within a section: at a paragraph that does not refer to text above it."""
    piece, before = all_pieces[start], all_pieces[start - 1]
    return piece.opens and piece.kind is BlockKind.PARAGRAPH and not before.introduces and not _LEANS.match(piece.text)


MAX_REST = 150  # words of the rest of a list that is completed; of a longer rest, only the number of items is told
MAX_CAVEATS = 80  # words of sentences that are added on either side, the nearest first

_CAVEAT = re.compile(
    r"\b(?:never|not|no|none|only|unless|except|before|without|cannot|must|instead|warning|caution|danger)\b|n['’]t\b",
    re.IGNORECASE,
)
DOTS = "…"
NOTE = -1  # the block of text that is not of the page


def completed(chosen: Sequence[Piece], whole: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of an excerpt with the rest of its last list and the caveats of its section.

    `whole` are the pieces of its passage, in which `chosen` stand next to each other.
    """
    start = next(place for place in range(len(whole)) if tuple(whole[place : place + len(chosen)]) == tuple(chosen))
    end = start + len(chosen)
    items = list(takewhile(lambda place: whole[place].kind is BlockKind.LIST_ITEM, range(end, len(whole))))
    is_cut = chosen[-1].kind is BlockKind.LIST_ITEM and bool(items)
    is_short = sum(whole[place].words for place in items) <= MAX_REST
    shown = {*range(start, end), *(items if is_cut and is_short else ())}
    above = [place for place in range(start) if whole[place].section == chosen[0].section]
    below = [place for place in range(end, len(whole)) if whole[place].section == chosen[-1].section]
    shown |= {*_caveats(above[::-1], whole), *_caveats(below, whole)}
    completed_pieces: list[Piece] = []
    for place in sorted(shown):
        if place - 1 not in shown and completed_pieces and completed_pieces[-1].block != NOTE:
            completed_pieces.append(_note(DOTS, whole[place]))
        completed_pieces.append(whole[place])
        if place == end - 1 and is_cut and not is_short:
            completed_pieces.append(
                _note(f"{DOTS} and {counted(len(items), 'more item')} of this list on the page", whole[place])
            )
    return completed_pieces


def is_caveat(text: str) -> bool:
    """Return whether a text forbids or limits something."""
    return _CAVEAT.search(text) is not None


def _caveats(places: Sequence[int], whole: Sequence[Piece]) -> Iterator[int]:
    """Yield the places of pieces that forbid or limit something, in the order given, as far as they fit."""
    words = 0
    for place in places:
        piece = whole[place]
        if piece.kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM) and is_caveat(piece.text):
            words += piece.words
            if words > MAX_CAVEATS:
                return
            yield place


def _note(text: str, near: Piece) -> Piece:
    return replace(near, text=text, kind=BlockKind.PARAGRAPH, block=NOTE, fence="")
