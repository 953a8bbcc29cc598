"""Complete an excerpt that was cut within a section, because half a rule does harm.

A list that an excerpt cuts is completed. A sentence of its section that forbids or limits something is shown as well, after
dots if there is text between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from core.answering.pieces import Piece
from core.knowledge.markdown import BlockKind
from core.model.layout import counted

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
