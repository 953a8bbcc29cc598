"""Read the reply of a language model: sentences, list items and table rows, each with the passages that it cites."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from core.answering.model_text import cleaned
from core.answering.statements import sentences

NOT_FOUND = "NOT FOUND"  # the reply of a model that finds no answer
MAX_CLAIMS = 12  # sentences, items and rows that are read of a reply

_MARKS = re.compile(r"[\[【]\s*+(\d{1,3}(?:\s*+,\s*+\d{1,3})*+)\s*+[\]】]")
_ITEM = re.compile(r"^\s*+(?:[-*+•]|(\d{1,2})[.)])\s+(?=\S)")
_RULE = re.compile(r"^[\s|:-]+$")
_MARK_AFTER = re.compile(r"([.!?。！？])((?:\s*+[\[【]\s*+\d{1,3}(?:\s*+,\s*+\d{1,3})*+\s*+[\]】])++)")
_MARKED_END = re.compile(r"(?<=[\]】][.!?。！？])\s+")  # a sentence may begin with a name in lower case
_NOT_FOUND = re.compile(r"\W*not[ _]found\b", re.IGNORECASE)


class Form(StrEnum):
    SENTENCE = "sentence"
    ITEM = "item"
    STEP = "step"  # of a numbered list
    ROW = "row"  # of a table


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence, list item or table row, without its marks, and the numbers of the passages that it cites."""

    text: str
    numbers: tuple[int, ...]
    form: Form = Form.SENTENCE


def is_not_found(reply: str) -> bool:
    """Return whether a model says that the passages do not answer."""
    return not reply.strip() or bool(_NOT_FOUND.match(reply))


def claims(reply: str) -> list[CitedSentence]:
    """Return the claims of a reply in order, at most MAX_CLAIMS.

    A claim without marks cites what the next one of the same line cites: a model may cite once after two sentences. The
    rows of a table keep their cells, separated by “ | ”.
    """
    result: list[CitedSentence] = []
    for line in reply.splitlines():
        result += _row(line) if _is_row(line) else _sentences(line)
    return result[:MAX_CLAIMS]


def complete_claims(growing: str) -> list[CitedSentence]:
    """Return the claims of a reply that still grows, without the last one, which may be incomplete."""
    return claims(growing)[:-1]


def _is_row(line: str) -> bool:
    bare = _MARKS.sub(" ", line).strip()
    return len(bare) > 1 and bare[0] == bare[-1] == "|"


def _row(line: str) -> list[CitedSentence]:
    if _RULE.match(line):
        return []
    cells = [" ".join(cleaned(cell).split()) for cell in _MARKS.sub(" ", line).strip().strip("|").split("|")]
    return [CitedSentence(" | ".join(cells), _numbers(line), Form.ROW)] if any(cells) else []


def _sentences(line: str) -> list[CitedSentence]:
    item = _ITEM.match(line)
    form = (Form.STEP if item[1] else Form.ITEM) if item else Form.SENTENCE
    text = _MARK_AFTER.sub(r"\2\1", line[item.end() :] if item else line)  # “It is. [1]” is “It is [1].”
    parts = [text] if item else [part for each in _MARKED_END.split(text) for part in sentences(each)]
    result: list[CitedSentence] = []
    later: tuple[int, ...] = ()
    for part in reversed(parts):
        later = _numbers(part) or later
        if statement := cleaned(part):
            result.append(CitedSentence(statement, later, form))
    return result[::-1]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(int(each) for group in _MARKS.findall(text) for each in group.split(",")))
