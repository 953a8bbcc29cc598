"""A question that asks for several things → the questions that it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from core.knowledge.terms import terms

MAX_PARTS = 3  # what is asked beyond stays with the last one
MAX_SIDE = 3  # words of a thing that is compared
MAX_LENGTH = 600  # characters of a question; a longer one tells a story, whose parts explain each other

_ASKING = r"(?:who|whom|whose|what|when|where|which|why|how)\b"
_AUXILIARY = (
    r"(?:is|are|can|could|do|does|did|should|may|must|will|would)\s+(?:i|we|you|it|they|there|the|an?|my|our)\b"
)
_CONJUNCTION = re.compile(
    rf"(?<![\s,;])[\s,;]++(?:and|but|plus)(?:\s++(?:also|then))?+\s++(?={_ASKING}|{_AUXILIARY})", re.IGNORECASE
)
_CHINESE_CONJUNCTION = re.compile(
    "[，,；;、]?(?:以及|并且|而且|另外|还有)[，,]?(?=谁|什么|如何|怎么|怎样|哪|为什么|为何|是否|多少|何时)"
)
_ARTICLES = frozenset({"a", "an", "the"})
_SIDE_WORD = re.compile(r"[^\s,;:?!()“”\"]+")
_DIFFERENCE = re.compile(
    r"\b(?:differences?|diff|compare[ds]?|comparison|differs?|distinguish)\b[^\n]{1,80}?\s(?P<by>and|to|with|from)\s",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(r"\s(?P<by>or|vs\.?|versus)\s", re.IGNORECASE)
_QUESTION_END = re.compile(r"(?<=[?？])(?=\s*\S)")
_ITEM = re.compile(r"(?:^|(?<=\s))\(?(\d)[.)]\s+|^[ \t]*[-*•]\s+", re.MULTILINE)
_ASKS = re.compile(rf"(?:and\s+|but\s+)?(?:{_ASKING}|{_AUXILIARY})", re.IGNORECASE)


def question_parts(question: str) -> tuple[str, ...]:
    """The parts in order, at most MAX_PARTS; the question itself where it cannot be split with confidence.

    It is split at the items of a list, after question marks, and at a conjunction before the next question word. A part
    may lean on one before it (“and who approves it?”).
    """
    question = question.strip()
    if len(question) > MAX_LENGTH or "```" in question:
        return (question,)
    parts = _joined([part for item in _items(question) for asked in _questions(item) for part in _clauses(asked)])
    return tuple(parts) if len(parts) > 1 else (question,)


def comparison_sides(question: str) -> tuple[str, ...]:
    """The same question about each of the two things that it compares (“canary or rolling?”); none if it compares nothing."""
    match = _DIFFERENCE.search(question) or _ALTERNATIVES.search(question)
    if match is None or len(question) > MAX_LENGTH:
        return ()
    before, after = question[: match.start("by")], question[match.end("by") :]
    first = _side(reversed(list(_SIDE_WORD.finditer(before))))
    second = _side(_SIDE_WORD.finditer(after))
    if not (first and second):
        return ()
    return f"{before}{after[second[-1].end() :]}".strip(), f"{before[: first[-1].start()]}{after}".strip()


def _side(words: Iterable[re.Match[str]]) -> list[re.Match[str]]:
    """The words of a thing that is compared, outwards from where it stands: up to the first that says nothing by itself."""
    named = list(takewhile(lambda word: terms(word[0]) or word[0].lower() in _ARTICLES, words))
    telling = [place for place, word in enumerate(named) if terms(word[0])][:MAX_SIDE]
    return named[: telling[-1] + 1] if telling else []


def _items(question: str) -> list[str]:
    """The items of a list without the words that announce it; the question itself if it holds none."""
    markers = list(_ITEM.finditer(question))
    numbers = [int(marker[1]) for marker in markers if marker[1]]
    if len(markers) < 2 or numbers not in ([], list(range(1, len(markers) + 1))):
        return [question]
    ends = [*(marker.start() for marker in markers[1:]), len(question)]
    return [question[marker.end() : end].strip() for marker, end in zip(markers, ends, strict=True)]


def _questions(item: str) -> list[str]:
    """The item after each question mark anew; what then only tells belongs to the question before it."""
    result: list[str] = []
    for piece in _QUESTION_END.split(item):
        if result and not (_ASKS.match(piece.strip()) or piece.rstrip().endswith(("?", "？"))):
            result[-1] += piece
        else:
            result.append(piece)
    return result


def _clauses(asked: str) -> Iterator[str]:
    for clause in _CONJUNCTION.split(asked):
        yield from (part.strip() for part in _CHINESE_CONJUNCTION.split(clause))


def _joined(parts: Sequence[str]) -> list[str]:
    """Parts that say nothing by themselves, or that are too many, stay with the one before them."""
    result: list[str] = []
    for part in parts:
        if result and (len(result) == MAX_PARTS or not terms(part)):
            result[-1] = f"{result[-1]} {part}"
        else:
            result.append(part)
    return result
