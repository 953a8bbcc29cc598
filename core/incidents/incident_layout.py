"""The parts of an incident's message, and how the message is shortened to fit a phone."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter

from core.model.message_view import Line, MessageView

PHONE_WIDTH = 45  # characters of one line on a phone
PHONE_LINES = 12  # of a message without its controls: what a phone shows at once
# A truncated text does not end with one of these.
LEADING_WORDS = frozenset("a an and at by for from in of on or that the to with".split())

OWNER, CAUSE, OR_CAUSE, NEXT, HELPED, EXPLAINS = "Owner", "Cause", "Or", "Next", "Last time", "Explains"

SHORTEST = 20  # characters; a truncated text that is shorter says nothing
LEFT = 0.5  # share of a text that its first clauses must make up to replace it
_ASIDE = re.compile(r"\(([^()]{30,})\)")
_CLAUSE_END = re.compile(r"(?<!…)(?<!Possibly)(?<!; or)[,;:.](?= )(?! or: )")


def phone_lines(view: MessageView) -> int:
    """Return the number of lines of PHONE_WIDTH characters that a message takes, without its controls."""
    return sum(map(_wrapped, (view.headline, view.state, view.progress))) + sum(
        _wrapped(line.plain) for line in view.lines
    )


def fitted(view: MessageView) -> MessageView:
    """Return the view of lines, shortened step by step until a phone shows all of it at once, the least important first.

    A command is never cut, and a sentence is cut at the end of a clause if possible.
    """
    if phone_lines(view) <= PHONE_LINES:
        return view
    for applies, shorten in _STEPS:
        for number in reversed(range(len(view.lines))):
            while (
                applies(view.lines[number])
                and phone_lines(view) > PHONE_LINES
                and (shorter := shorten(view.lines[number])) is not None
            ):
                view = _replaced(view, number, shorter)
    for spared in (attrgetter("is_subtle"), _labelled(HELPED)):  # the details show these too
        while phone_lines(view) > PHONE_LINES and any(map(spared, view.lines)):
            view = _replaced(view, max(number for number, line in enumerate(view.lines) if spared(line)))
    for kept in ((OWNER, CAUSE, OR_CAUSE), (OWNER,)):  # the owner and the causes are cut last, if at all
        while phone_lines(view) > PHONE_LINES:
            lengths = [_wrapped(line.text) if line.label not in kept else 0 for line in view.lines]
            number = max(reversed(range(len(lengths))), key=lengths.__getitem__, default=-1)
            if number < 0 or not lengths[number] or (shorter := _any(view.lines[number])) is None:
                break
            view = _replaced(view, number, shorter)
    return view


def _replaced(view: MessageView, number: int, *lines: Line) -> MessageView:
    return replace(view, parts=(*view.lines[:number], *lines, *view.lines[number + 1 :]))


def _labelled(*labels: str) -> Callable[[Line], bool]:
    return lambda line: line.label in labels


def _aside(line: Line) -> Line | None:
    """Return the line with a shorter parenthesis; None if it has no long one."""
    aside = _ASIDE.search(line.text)
    if aside is None:
        return None
    named, *more = _CLAUSE_END.split(aside[1], maxsplit=1)
    return replace(line, text=line.text.replace(aside[1], _even(named if more else cut(aside[1], SHORTEST)), 1))


def _clause(line: Line, shortest: float | None = None) -> Line | None:
    """Return the line without its last clause; None if less than `shortest` characters, or than LEFT, would remain."""
    least = len(line.text) * LEFT if shortest is None else shortest
    end = max((match.start() for match in _CLAUSE_END.finditer(line.text) if match.start() >= least), default=0)
    if end == 0:
        return None
    left = line.text[:end]
    shorter = _even(left if left.endswith(("…", "…”")) else f"{left}…")
    # If it ends with an aside that is whole, the sentence goes on after that: “(CHG-9212)…”.
    return replace(line, text=f"{shorter[:-2]})…" if shorter.endswith("…)") else shorter)


def _any(line: Line) -> Line | None:
    """Return the line cut so that it takes one line less on a phone; None if it cannot be cut that far."""
    wanted = _wrapped(line.plain) - 1

    def cut_to(limit: int) -> Line:
        return replace(line, text=_even(cut(line.text, limit)))

    limits = range(SHORTEST, len(line.text))
    fitting = bisect_right(limits, wanted, key=lambda limit: _wrapped(cut_to(limit).plain))
    return cut_to(limits[fitting - 1]) if fitting else None


def _even(text: str) -> str:
    """Return the text with its last quotation and parenthesis closed, and without code marks if one is unpaired."""
    closed = text + "”" * (text.count("“") > text.count("”")) + ")" * (text.count("(") > text.count(")"))
    return closed if closed.count("`") % 2 == 0 else closed.replace("`", "")


_STEPS: tuple[tuple[Callable[[Line], bool], Callable[[Line], Line | None]], ...] = (
    (
        lambda line: line.label not in (OWNER, CAUSE, OR_CAUSE, NEXT, HELPED, EXPLAINS) and not line.is_subtle,
        lambda line: _clause(line) or _any(line),
    ),
    (_labelled(NEXT), _clause),
    (lambda line: line.label != OWNER, _aside),
    # The command and the link without the instruction, because half an instruction misleads.
    (lambda line: line.label == NEXT and bool(line.code and line.text), lambda line: replace(line, text="")),
    # The first clause of the past fix, or the number of the parts; if it is alone, the line without links to incidents.
    (
        _labelled(HELPED, EXPLAINS),
        lambda line: _clause(line, SHORTEST) or (replace(line, links=()) if line.links else None),
    ),
    (_labelled(CAUSE, OR_CAUSE), _clause),
)
"""The steps by which a message is shortened: the lines that each is for, and the line that it makes of one; None if it cannot."""


@lru_cache(maxsize=1024)  # unchanged lines are counted again whenever another one is shortened
def _wrapped(text: str) -> int:
    return len(textwrap.wrap(text, PHONE_WIDTH))


def cut(text: str, limit: int) -> str:
    """Return one line of at most `limit` characters. Reads only the beginning of a huge text."""
    head = text[: 4 * limit]
    line = " ".join(head.split())
    if len(line) <= limit and len(head) == len(text):
        return line
    whole = line[:limit].rsplit(" ", 1)[0] if " " in line[limit // 2 : limit] else line[: limit - 1]
    words = whole.split(" ")
    while len(words) > 1 and words[-1].casefold() in LEADING_WORDS:
        words.pop()
    return f"{' '.join(words).rstrip(' ,;.:')}…"
