"""What a statement leans on: “The same command without `--to`.” says nothing where the command is not seen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.answering.statements import Statement
from core.knowledge.markdown import BlockKind

_CONJUNCTION = "if|when|while|once|because|since|until|unless|as soon as|as long as"
_PREPOSITION = "after|at|because of|before|by|for|from|in|of|on|to do|until|with|without"
_PRONOUN = "its?|this|that|these|those|they|them|their|he|she"
_CONNECTIVE = "then|there(?! (?:is|are|was|were|will|can|may|must)\\b)|otherwise|but|and|so|instead(?! of)|likewise"
_TEXT = "command|call|query|script|snippet|example|code|line|output|step|procedure|list|table|paragraph|sentence|point"

_OPENING = re.compile(
    rf"[^\w]*(?:(?:{_CONJUNCTION}|{_PREPOSITION})\s+)?(?:{_PRONOUN}|the\s+same)\b|[^\w]*(?:{_CONNECTIVE})\b",
    re.IGNORECASE,
)
_BACKWARDS = re.compile(
    rf"\b(?:same|above|previous|preceding|earlier|former|latter)\s+(?P<before>{_TEXT})s?\b"
    rf"|\b(?P<after>{_TEXT})s?\s+above\b|\b(?:as|see|the)\s+above\b(?!\s*\d)|\bthe\s+(?:former|latter)\b",
    re.IGNORECASE,
)
_COMMAND = frozenset({"command", "call", "query", "script", "snippet", "code", "line"})
_INLINE_CODE = re.compile(r"`[^`]+`")


def leans(statement: Statement) -> bool:
    """Whether it is not understood without what stands before it."""
    return statement.kind not in (BlockKind.CODE, BlockKind.TABLE) and bool(
        _OPENING.match(statement.text) or _BACKWARDS.search(statement.text)
    )


def antecedents(statement: Statement, members: Sequence[Statement]) -> Iterator[Statement]:
    """What a statement leans on, the nearest first, and what that leans on in turn; nothing for one that stands alone.

    `members` are the statements of its passage in order. A list item or a code block leans on what introduces it. A
    pronoun leans on the statement before it in its section, and at the beginning of a section on the heading, which is
    cited anyway. What names a piece of text (“the same command”) leans on the nearest one before it, in whichever section.
    """
    found = _antecedent(statement, members)
    while found is not None:
        yield found
        found = _antecedent(found, members)


def _antecedent(statement: Statement, members: Sequence[Statement]) -> Statement | None:
    nearest = [item for item in reversed(members) if item.order < statement.order]
    beside = [item for item in nearest if _together(item, statement)]
    if statement.lead_in:
        return next((item for item in beside if item.text == statement.lead_in), None)
    if not leans(statement):
        return None
    reference = _BACKWARDS.search(statement.text)
    if reference and (reference["before"] or reference["after"] or "").lower() in _COMMAND:
        blocks = [item for item in nearest if item.kind is BlockKind.CODE]
        return next(iter([*filter(_holds_code, beside), *blocks, *filter(_holds_code, nearest), *beside]), None)
    return next(iter(nearest if reference else beside), None)


def _holds_code(statement: Statement) -> bool:
    return statement.kind is BlockKind.CODE or bool(_INLINE_CODE.search(statement.text))


def _together(first: Statement, second: Statement) -> bool:
    return (first.heading, first.repeat) == (second.heading, second.repeat)
