"""Divide the passages found for a question into pieces, and rank the excerpts that may answer it.

Pieces are sentences, list items, table rows, lines of code and headings. An embedding model reads a passage in chunks, each
once: excerpts overlap, so that encoding each would repeat its passage.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, takewhile
from math import fsum, log1p

import numpy as np
from numpy.typing import NDArray

from core.answering.fact_kinds import COMMAND, LEAVE, FactKind, kinds_asked, refuses
from core.answering.lookup import is_over
from core.answering.statements import REMEMBERED, cited, sentences, statements
from core.knowledge.markdown import Block, BlockKind, blocks, framed, has_header
from core.knowledge.passages import cosines
from core.knowledge.retriever import KIND_PRIOR, RankedPassage, Retrieval, support
from core.knowledge.terms import K1, STOP_WORDS, B, distinct_terms, terms, word_parts
from core.model.answer import Citation, Excerpt
from core.model.conversation import Question, Speaker
from core.model.document import DocumentKind, Passage
from core.model.text import counted

EXCERPT_WORDS = 140  # maximum of an excerpt, unless a single piece is longer
WHOLE_WORDS = 200  # maximum of an excerpt that ends where a section ends
QUOTE_WORDS = 50  # maximum of a quote of several that are offered, until it is given what they leave of SHOWN_WORDS
SHOWN_WORDS = WHOLE_WORDS  # of all of these quotes: as much as one whole excerpt
USUAL_TERMS = 100.0  # terms of a typical candidate; BM25 discounts longer ones
HEADING_COUNTS = 2  # weight of a term in a heading

# Weights of the parts of a score, which are in [0, 1]; see docs/ablations.md.
PASSAGE = EXCERPT = RARE = 1.0  # BM25 scores as a share of the best: of the passage, of the excerpt, of its rare terms
TITLE = 0.6  # share of the question in the title of the page
PAGE = 0.7  # for a page, unless a question asks what happened
HEADED = 1.0  # for a heading without terms, such as “Who may”, whose words stand in the question
ASKED = 1.0  # share of the question in a piece that states the kind of fact that is asked for
FAMILY = 6.0  # for the best supported family of manuals: a clear vote outweighs all the rest
MEANING = 2.0  # cosine as a share of the best, for the first RERANKED by all others
RERANKED = 10
STATES = 0.2  # for a piece that states the kind of fact that is asked for, when a quote is cut around it
NEARNESS = 2.0  # cosine with a piece beside the share of the question in it, for what to cut a quote around

_PAST = re.compile(
    r"\b(?:happened|incidents?|outages?|did|was|were|had|ever|last time|post-?mortem)\b"
    r"|\A(?:(?!\b(?:do|does)\b).)*?\b(?:has|have)\b",  # not “how many does it have?”
    re.IGNORECASE | re.DOTALL,
)
_LEANS = re.compile(
    r"^\W*(?:this|that|these|those|it|its|they|them|such|then|however|otherwise|also|instead|and|but|or|so)\b",
    re.IGNORECASE,
)


LONG_ITEM = 60  # words of a list item from which it can be cut at a line end

_WORD = re.compile(r"(?<!\S)[^\w\s]*+\w\S*")


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence, list item, table row, line of code or heading, verbatim.

    `block` and `section` are the numbers of its block and its heading within the passage. `level` is that of its heading, 0
    if the heading is in an earlier passage. `heading` is the text of its heading, `repeat` the number of earlier headings in
    the document with the same text, and `path` the terms of all headings above the piece, and of the header of its table.
    """

    text: str
    kind: BlockKind
    block: int
    section: int
    level: int
    heading: str
    repeat: int
    path: frozenset[str]
    terms: tuple[str, ...]
    words: int
    fence: str = ""

    @property
    def introduces(self) -> bool:
        """Return whether it only introduces the text after it."""
        return self.kind is BlockKind.HEADING or self.text.rstrip().endswith(":")

    @property
    def states(self) -> bool:
        """Return whether it can answer: it neither introduces the text after it nor asks."""
        return not self.introduces and not self.text.rstrip().endswith("?")


def word_count(text: str) -> int:
    """Return the number of words: runs without white space that contain a letter or digit."""
    return len(_WORD.findall(text))


@lru_cache(maxsize=REMEMBERED)
def pieces(passage: Passage) -> tuple[Piece, ...]:
    """Return every piece of a passage in order; for a chat thread or an incident, only its statements."""
    if passage.kind is not DocumentKind.PAGE:
        return tuple(
            Piece(each.text, each.kind, number, 0, 0, each.heading, each.repeat, frozenset(), tuple(terms(each.text)),
                  word_count(each.text))
            for number, each in enumerate(statements(passage))
        )  # fmt: skip
    return tuple(_pieces_of(passage))


def joined(chosen: Sequence[Piece]) -> str:
    """Return neighbouring pieces as Markdown again, with a fence around each part of a code block."""
    text, above = "", None
    for _, (first, *others) in groupby(chosen, key=lambda piece: piece.block):
        gap = " " if first.kind is BlockKind.PARAGRAPH else "\n"
        body = gap.join(piece.text for piece in (first, *others))
        if above is not None:
            text += "\n" if above.kind is first.kind is BlockKind.LIST_ITEM else "\n\n"
        text += f"{first.fence}\n{body}\n{first.fence}" if first.fence else body
        above = first
    return text


def _pieces_of(passage: Passage) -> Iterator[Piece]:
    heading, section, path = passage.heading, 0, [(0, passage.heading)] if passage.heading else []
    above = frozenset(terms(passage.heading))
    repeats = iter(passage.repeats)
    repeat = next(repeats, 0)
    for number, block in enumerate(blocks(passage.text)):
        if block.kind is BlockKind.HEADING:
            heading, section, repeat = block.heading, section + 1, next(repeats, 0)
            path = [*(each for each in path if each[0] < block.level), (block.level, heading)]
            above = frozenset(terms(" ".join(text for _, text in path)))
        header = terms(block.text.partition("\n")[0]) if block.kind is BlockKind.TABLE else ()
        for text, fence in _texts(block):
            piece_terms = tuple(terms(block.heading if block.kind is BlockKind.HEADING else text))
            yield Piece(
                text,
                block.kind,
                number,
                section,
                path[-1][0] if path else 0,
                heading,
                repeat,
                above.union(header),
                piece_terms,
                word_count(text),
                fence,
            )


def _texts(block: Block) -> Iterator[tuple[str, str]]:
    """Yield the texts that a block is split into, each with its code fence (empty if none)."""
    lines = block.text.splitlines()
    match block.kind:
        case BlockKind.PARAGRAPH:
            yield from ((text, "") for text in sentences(block.text))
        case BlockKind.TABLE if has_header(lines) and len(lines) > 2:
            yield "\n".join(lines[:3]), ""
            yield from ((line, "") for line in lines[3:])
        case BlockKind.CODE:
            opening, own, _ = framed(block)
            yield from ((line, "```" if opening else "") for line in own if line.strip() or opening)
        case BlockKind.LIST_ITEM if word_count(block.text) > LONG_ITEM:
            yield from ((line, "") for line in lines if line.strip())
        case _:
            yield block.text, ""


CHUNK_WORDS = 60  # maximum of a chunk of several pieces: about as much as a small embedding model reads


@lru_cache(maxsize=REMEMBERED)
def chunks(passage: Passage) -> tuple[tuple[int, int], ...]:
    """Return the start and the end of each chunk among the pieces of a passage: in order, and none is left out.

    A chunk consists of neighbouring pieces of one section.
    """
    all_pieces = pieces(passage)
    bounds: list[tuple[int, int]] = []
    start = words = 0
    for place, piece in enumerate(all_pieces):
        if place > start and (piece.section != all_pieces[start].section or words + piece.words > CHUNK_WORDS):
            bounds.append((start, place))
            start, words = place, 0
        words += piece.words
    return (*bounds, (start, len(all_pieces))) if all_pieces else ()


def chunk_texts(passage: Passage) -> list[str]:
    """Return the text of each chunk below its page's title and its heading; of a passage without any, all of it."""
    return [_text(passage, pieces(passage)[start:end]) for start, end in chunks(passage)] or [passage.indexed_text]


def _text(passage: Passage, chosen: Sequence[Piece]) -> str:
    above = dict.fromkeys(filter(None, (passage.title, chosen[0].heading)))
    body = [piece for piece in chosen if piece.kind is not BlockKind.HEADING]
    return "\n".join([*above, joined(body)] if body else above)


def _nearness(passage: Passage, vector: NDArray[np.float32]) -> list[float]:
    """Return the cosine with a question of each piece's chunk; 0 if the passage has no vectors of the question's model."""
    bounds, values = chunks(passage), cosines(passage, vector).tolist()
    if len(bounds) != len(values):
        return [0.0] * len(pieces(passage))
    return [value for (start, end), value in zip(bounds, values, strict=True) for _ in range(start, end)]


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A found passage in its pieces, with what each of them has of the question.

    `weights` are those of the question's rare terms in a piece and the headings above it, `stated` the shares of the kinds
    of fact that are asked for, `near` the cosines with the question. `relevance` says where a quote is cut. It `is_named` if
    the question is nothing but the title of the page, such as the name of an alert, however it is written.
    """

    found: RankedPassage
    pieces: tuple[Piece, ...]
    weights: Sequence[float]
    stated: Sequence[float]
    near: Sequence[float]
    relevance: Sequence[float]
    is_named: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run of pieces of a passage, from its piece number `start` on, that may answer.

    `score` orders the candidates of one question. `lexical` is the BM25 score of the run, `telling` that with the weights of
    rare terms. `coverage` is the share of the question's term weight in the run, the headings above it and the page's title,
    `titled` that in the title; both in [0, 1]. `cosine` compares its meaning with the question's; 0 without an embedding
    model. `marked` is the piece with most of the question.
    """

    read: ReadPassage
    start: int
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
        return self.read.found.passage

    @property
    def text(self) -> str:
        return joined(self.pieces)

    @property
    def words(self) -> int:
        return sum(piece.words for piece in self.pieces)

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
    total = fsum(rare.values()) or 1.0
    passages = _read(query, retrieval, rare, total)
    runs = [run for each in passages for run in _runs(each, retrieval.weights, rare)]
    rarity = max((run.telling for run in runs), default=0.0) or 1.0
    passage = max((run.read.found.score for run in runs), default=0.0) or 1.0
    lexical = max((run.lexical for run in runs), default=0.0) or 1.0
    families = support(query, retrieval)

    def score(run: Candidate) -> float:
        read, places = run.read, range(run.start, run.start + len(run.pieces))
        relative = PASSAGE * read.found.score / passage + EXCERPT * run.lexical / lexical + RARE * run.telling / rarity
        stated = max(read.stated[place] * read.weights[place] for place in places) / total
        headed = PAGE * (run.passage.kind is DocumentKind.PAGE and not _PAST.search(query)) + HEADED * _is_headed(
            query, run.pieces[0].heading
        )
        context = TITLE * run.titled + headed + FAMILY * families[run.passage.family]
        return relative + context + ASKED * stated

    ranked = _in_order([replace(run, score=score(run)) for run in runs])
    first, rest = ranked[:RERANKED], ranked[RERANKED:]
    meant = [KIND_PRIOR[run.passage.kind] * run.cosine for run in first]
    if (nearest := max(meant, default=0.0)) > 0:
        first = [
            replace(run, score=run.score + MEANING * near / nearest) for run, near in zip(first, meant, strict=True)
        ]
    return [*_in_order(first), *rest]


def _read(query: str, retrieval: Retrieval, rare: Mapping[str, float], total: float) -> Iterator[ReadPassage]:
    """Yield the passages with what of a question their pieces have. `total` is the sum of the weights of rare terms."""
    kinds, words = kinds_asked(query), word_parts(query)
    for ranked in retrieval.passages:
        all_pieces = pieces(ranked.passage)
        weights = [
            fsum(weight for term, weight in rare.items() if term in piece.path or term in piece.terms)
            for piece in all_pieces
        ]
        stated = [_stated_share(kinds, piece) for piece in all_pieces]
        near = _nearness(ranked.passage, retrieval.vector)
        relevance = [
            weight / total + HEADED * _is_headed(query, piece.heading) + NEARNESS * cosine + STATES * share
            for piece, weight, cosine, share in zip(all_pieces, weights, near, stated, strict=True)
        ]
        is_named = (
            len(words) > 1 and ranked.passage.kind is DocumentKind.PAGE and words == word_parts(ranked.passage.title)
        )
        yield ReadPassage(ranked, all_pieces, weights, stated, near, relevance, is_named)


def _stated_share(kinds: Sequence[FactKind], piece: Piece) -> float:
    """Return the share of the kinds of fact that a piece of a page states; 0 if there are none."""
    stated = [
        (kind is COMMAND and piece.kind is BlockKind.CODE) or bool(kind.states.search(piece.text)) for kind in kinds
    ]
    return sum(stated) / len(stated) if stated else 0.0


def _is_headed(query: str, heading: str) -> bool:
    """Return whether a heading without terms, such as “Who may”, stands in the question."""
    words = heading.lower().split()
    return len(words) > 1 and STOP_WORDS.issuperset(words) and f" {' '.join(words)} " in f" {query.lower()} "


def distinct(ranked: Iterable[Candidate], count: int) -> list[Candidate]:
    """Return the first `count` candidates, without those that overlap an earlier one."""
    kept: list[Candidate] = []
    for each in ranked:
        if len(kept) == count:
            break
        if not any(each.overlaps(other) for other in kept):
            kept.append(each)
    return kept


def choices(question: Question, query: str, ranked: Sequence[Candidate], count: int) -> list[Candidate]:
    """Return at most `count` quotes to choose from; last come those that share no word with the question.

    Before them come those about dates that are over, unless the question names what their section is about.
    One that a reply above holds, and that states not all that is asked for now, comes late, too. First comes what refuses
    that for which leave is asked.
    """
    kinds, query_terms = kinds_asked(question.text), distinct_terms(query)
    stale = "\n".join(turn.text for turn in question.history if kinds and turn.speaker is Speaker.PLUMBLINE)

    def is_past(quote: Candidate) -> bool:
        text = "\n".join(piece.text for piece in quote.pieces).replace("*", "")
        return is_over(text, question.asked_at) and query_terms.isdisjoint(distinct_terms(quote.marked.heading))

    fresh = sorted(
        quotes(ranked, count + 1, is_past),
        key=lambda each: (
            each.coverage == 0,
            is_past(each),
            each.marked.text in stale and not any(_stated_share(kinds, piece) == 1 for piece in each.pieces),
        ),
    )
    return distinct([*refusals(query, ranked)[:1], *fresh] if LEAVE in kinds else fresh, count)


def quotes(
    ranked: Sequence[Candidate], count: int, is_past: Callable[[Candidate], bool] = lambda _: False
) -> list[Candidate]:
    """Return the first `count` distinct candidates, each cut to what may answer, and not to what `is_past` if it can be."""
    return distinct((_cut(each, is_past) for each in ranked), count)


def _cut(candidate: Candidate, is_past: Callable[[Candidate], bool]) -> Candidate:
    """Return whole pieces around the one nearest to the question, by its words and its meaning.

    They are of one section; of a page whose title says most of the question, also of the first section below it, to which
    an introduction leads. What introduces a piece stays before it, and a list is shown from its first item if there is room.
    """
    whole, relevance = candidate.read.pieces, candidate.read.relevance
    sections = {piece.section for piece in candidate.pieces}
    stating = [place for place, piece in enumerate(whole) if piece.section in sections and piece.states]
    if not stating:
        return candidate
    cuts = (
        _grown(replace(candidate, start=core, pieces=whole[core : core + 1], marked=whole[core]), QUOTE_WORDS)
        for core in sorted(stating, key=lambda place: (-relevance[place], place))
    )
    first = next(cuts)
    others = (each for each in cuts if each.marked not in first.pieces and not is_past(each))
    return next(others, first) if is_past(first) else first


def refusals(query: str, ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return quotes of the first candidate's page that refuse what a question asks leave for, the nearest to it first.

    One names something else of the question too: not to drain on Thursdays says nothing of draining two. It is twice as
    long as others, because what to do instead stands around it.
    """
    words = distinct_terms(query)
    return sorted(
        (
            _grown(replace(each, start=place, pieces=(piece,), marked=piece), 2 * QUOTE_WORDS)
            for each in ranked
            for place, piece in enumerate(each.pieces, start=each.start)
            if each.passage.document_id == ranked[0].passage.document_id
            and len(words.intersection(piece.terms)) > 1
            and refuses(query, piece.text)
        ),
        key=lambda each: -len(words.intersection(each.marked.terms)),
    )


def _grown(quote: Candidate, most: int) -> Candidate:
    """Return a quote with the whole pieces before and after it that its limit of words has room for."""
    whole, core = quote.read.pieces, quote.marked
    first, room = quote.start, most - quote.words
    last = first + len(quote.pieces) - 1
    while beside := [
        (place, edge)
        for place, edge in ((first - 1, first), (last + 1, last))
        if 0 <= place < len(whole)
        and whole[place].words <= room
        and (
            (whole[place].section == core.section and whole[place].kind is not BlockKind.HEADING)
            or (quote.titled > 0.5 and whole[place].section == core.section + 1 and 0 < core.level < whole[place].level)
        )
    ]:
        best, _ = max(beside, key=lambda pair: (_belongs(*pair, whole), quote.read.near[pair[0]], pair[0]))
        first, last, room = min(first, best), max(last, best), room - whole[best].words
    while last > first and whole[last].introduces:
        last -= 1
    return replace(quote, start=first, pieces=whole[first : last + 1])


def filled(quoted: Sequence[Candidate]) -> list[Candidate]:
    """Return quotes to choose from, the first ones grown by what all of them leave of SHOWN_WORDS.

    The first answers most often. None takes up what another one shows.
    """
    shown, room = list(quoted), SHOWN_WORDS - sum(each.words for each in quoted)
    for place, each in enumerate(quoted):
        longer = _grown(each, each.words + room) if room > 0 else each
        if not any(longer.overlaps(other) for other in shown if other is not each):
            shown[place], room = longer, room + each.words - longer.words
    return shown


def _belongs(place: int, edge: int, whole: Sequence[Piece]) -> int:
    """Return how closely a piece belongs to its neighbour: what introduces it the most, then what is of its block or list."""
    upper, lower = (whole[each] for each in sorted((place, edge)))
    if upper.introduces:
        return 3
    is_list = upper.kind is lower.kind is BlockKind.LIST_ITEM
    return 1 + (place < edge) if is_list else 2 * (upper.block == lower.block)


def _in_order(runs: Sequence[Candidate]) -> list[Candidate]:
    # The order of sets differs between processes, and with it the last digits of sums: these decide nothing.
    return sorted(runs, key=lambda run: (not run.read.found.confirmed, -round(run.score, 6), run.passage.id))


def _rare(retrieval: Retrieval) -> dict[str, float]:
    """Return the weights of the question's terms among the found sections: the fewer contain a term, the higher."""
    sections: dict[tuple[str, int], set[str]] = {}
    for ranked in retrieval.passages:
        for piece in pieces(ranked.passage):
            sections.setdefault((ranked.passage.id, piece.section), set()).update(piece.terms)
    held = Counter(term for section in sections.values() for term in section & retrieval.weights.keys())
    return {term: log1p((len(sections) - held[term] + 0.5) / (held[term] + 0.5)) for term in retrieval.weights}


def _runs(read: ReadPassage, weights: Mapping[str, float], rare: Mapping[str, float]) -> Iterator[Candidate]:
    """Yield the candidates of a passage without their scores. BM25 follows Robertson and Zaragoza 2009, section 3.3."""
    all_pieces = read.pieces
    total = sum(weights.values())
    if not total:
        return
    title = terms(read.found.passage.title)
    titled = Counter(weights.keys() & set(title))
    held = [[term for term in piece.terms if term in weights] for piece in all_pieces]
    counted = [
        each * HEADING_COUNTS if piece.kind is BlockKind.HEADING else each
        for each, piece in zip(held, all_pieces, strict=True)
    ]
    weight = [own if piece.states else -1.0 for piece, own in zip(all_pieces, read.weights, strict=True)]
    for start, end in _bounds(all_pieces):
        counts = titled + Counter(term for each in counted[start:end] for term in each)
        length = len(title) + sum(len(piece.terms) for piece in all_pieces[start:end])
        norm = K1 * (1 - B + B * length / USUAL_TERMS)
        shares = {term: count * (K1 + 1) / (count + norm) for term, count in counts.items()}
        marked = max(range(start, end), key=lambda place: (weight[place], -place))
        yield Candidate(
            read,
            start,
            all_pieces[start:end],
            all_pieces[marked],
            fsum(weights[term] * share for term, share in shares.items()),
            fsum(rare[term] * share for term, share in shares.items()),
            sum(weights[term] for term in weights if term in counts or term in all_pieces[start].path) / total,
            fsum(weights[term] for term in titled) / total,
            max(read.near[start:end]),
        )


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
    is_paragraph = piece.block != before.block and piece.kind is BlockKind.PARAGRAPH
    return is_paragraph and not before.introduces and not _LEANS.match(piece.text)


MAX_REST = 150  # words of the rest of a list that is completed; of a longer rest, only the number of items is told
MAX_CAVEATS = 80  # words of sentences that are added on either side, the nearest first

_CAVEAT = re.compile(
    r"\b(?:never|not|no|none|only|unless|except|before|without|cannot|must|instead|warning|caution|danger)\b|n['’]t\b",
    re.IGNORECASE,
)
_REFERS = re.compile(r"\bsame (?:commands?|steps?|procedure)\b", re.IGNORECASE)  # to what stands above it
_BAN = re.compile(r"^\W*(?:never|do not|don['’]t|warning|caution|danger)\b", re.IGNORECASE)
DOTS = "…"
NOTE = -1  # the block of text that is not of the page


def excerpt_of(number: int, candidate: Candidate, *, short: bool = False) -> Excerpt:
    """Return a candidate as an excerpt with this citation number; a `short` one is completed only by what forbids it."""
    marked = "" if candidate.marked.kind in (BlockKind.CODE, BlockKind.HEADING) else candidate.marked.text
    end = candidate.start + len(candidate.pieces)
    return Excerpt(joined(completed(candidate.read.pieces, candidate.start, end, short=short)), marked, number)


def citation_of(number: int, candidate: Candidate) -> Citation:
    """Return the citation of a candidate with this number."""
    return cited(number, candidate.passage, candidate.marked.heading, candidate.marked.repeat, candidate.marked.text)


def completed(whole: Sequence[Piece], start: int, end: int, *, short: bool = False) -> list[Piece]:
    """Return the pieces of an excerpt with the rest of its last list and the caveats of its section.

    A `short` one gets only what forbids something. One that refers to “the same command” gets it. What is left out of its
    list and the header of its table are told. `whole` are the pieces of its passage, of which it has those from `start` on
    before `end`.
    """
    chosen = whole[start:end]
    before = list(takewhile(lambda place: _continues(whole[place], chosen[0]), range(start - 1, -1, -1)))
    items = list(takewhile(lambda place: whole[place].kind is BlockKind.LIST_ITEM, range(end, len(whole))))
    is_cut = chosen[-1].kind is BlockKind.LIST_ITEM and bool(items)
    is_short = not short and sum(whole[place].words for place in items) <= MAX_REST
    shown = {*range(start, end), *(items if is_cut and is_short else ())}
    above = [place for place in range(start) if whole[place].section == chosen[0].section]
    below = [place for place in range(end, len(whole)) if whole[place].section == chosen[-1].section]
    if _REFERS.search(joined(chosen)):
        code = [place for place in range(start) if whole[place].kind is BlockKind.CODE]
        shown |= {place for place in code if whole[place].block == whole[code[-1]].block}
    shown |= {*_caveats(above[::-1], whole, short=short), *_caveats(below, whole, short=short)}
    completed_pieces: list[Piece] = []
    for place in sorted(shown):
        if place - 1 not in shown and completed_pieces and completed_pieces[-1].block != NOTE:
            completed_pieces.append(_note(DOTS, whole[place]))
        if place == start and before and before[0] not in shown:
            completed_pieces += _begun(before, whole)
        completed_pieces.append(whole[place])
        if place == end - 1 and is_cut and not is_short:
            completed_pieces.append(
                _note(f"{DOTS} and {counted(len(items), 'more item')} of this list on the page", whole[place])
            )
    return completed_pieces


def _continues(piece: Piece, later: Piece) -> bool:
    """Return whether a piece is of the list or the table that a later one is of."""
    is_table = piece.kind is later.kind is BlockKind.TABLE and piece.block == later.block
    return is_table or piece.kind is later.kind is BlockKind.LIST_ITEM


def _begun(before: Sequence[int], whole: Sequence[Piece]) -> list[Piece]:
    """Return what stands for the beginning of a list or a table, of which the pieces at `before` are not shown."""
    first = whole[before[-1]]
    if first.kind is BlockKind.LIST_ITEM:
        return [_note(f"{DOTS} {counted(len(before), 'item')} of this list above", first)]
    return [replace(first, text="\n".join(first.text.splitlines()[:-1]))]


def is_caveat(text: str) -> bool:
    """Return whether a text forbids or limits something."""
    return _CAVEAT.search(text) is not None


def _caveats(places: Sequence[int], whole: Sequence[Piece], *, short: bool) -> Iterator[int]:
    """Return the places of pieces that forbid or limit something, in the order given, as far as they fit.

    To a short one, bans are added of half a quote on either side.
    """
    limit, counts = (QUOTE_WORDS // 2, _BAN) if short else (MAX_CAVEATS, _CAVEAT)
    stating = [
        place
        for place in places
        if whole[place].kind in (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM) and counts.search(whole[place].text)
    ]
    words = accumulate(whole[place].words for place in stating)
    return (place for place, total in zip(stating, words, strict=True) if total <= limit)


def _note(text: str, near: Piece) -> Piece:
    return replace(near, text=text, kind=BlockKind.PARAGRAPH, block=NOTE, fence="")
