"""What kind of thing a question asks for."""

from __future__ import annotations

import re
from enum import StrEnum

from core.answering.statements import Statement, sentences
from core.answering.values import claim
from core.knowledge.layout import FIX, ROOT_CAUSE
from core.knowledge.markdown import BlockKind
from core.knowledge.terms import words


class Intent(StrEnum):
    """What the answer should hold."""

    PROCEDURE = "procedure"  # commands or steps
    PERSON = "person"  # a name, a team
    MOMENT = "moment"  # a date, a day, a time of day
    DURATION = "duration"  # how long something takes or lasts
    QUANTITY = "quantity"  # a number, a limit
    REASON = "reason"  # a cause
    OTHER = "other"


_QUESTIONS = (
    (Intent.PERSON, re.compile(r"\b(?:who|whom|whose|which team|on[- ]call|owner|owns)\b", re.IGNORECASE)),
    (
        Intent.MOMENT,
        re.compile(
            r"(?:^|[,;:] |\band )(?:when|(?:at |by |until )?what time|(?:on )?(?:which|what) day)\b", re.IGNORECASE
        ),
    ),
    (Intent.DURATION, re.compile(r"\bhow (?:long|far back|old|soon|quickly)\b", re.IGNORECASE)),
    (
        Intent.QUANTITY,
        re.compile(
            r"\b(?:how (?:many|much|often|large|big|far|fast)|which (?:port|version)"
            r"|limit|threshold|maximum|minimum|timeout|deadline)\b",
            re.IGNORECASE,
        ),
    ),
    (Intent.REASON, re.compile(r"\b(?:why|cause[sd]?|reason)\b", re.IGNORECASE)),
    (
        Intent.PROCEDURE,
        re.compile(
            r"\bhow\b|\bwhat (?:do|should|can|must|now|next|are the steps)\b|\b(?:steps|command|procedure)\b",
            re.IGNORECASE,
        ),
    ),
)
_MOMENTS = {"clock", "date", "weekday"}
_COMMAND = re.compile(r"`[^`\s]+\s[^`]+`")
_CODE = re.compile(r"`[^`]+`")
_HOW = frozenset(
    "how to do doing it this the a an and by hand in short command commands instruction instructions procedure procedures "
    "step steps usage using run running fix fixing remedy remedies resolution mitigation solution".split()
)
_FULL_NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z'-]+")
_ROLE = re.compile(r"@\w|\b(?:team|owner|owns|on[- ]call|captain|lead|ask|approval|page)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|never|always|daily|weekly|nightly)\b")
_BECAUSE = re.compile(r"\b(?:because|since|caused?|due to|so that|reason|usually|otherwise)\b", re.IGNORECASE)


def intent_of(question: str) -> Intent:
    return next((intent for intent, pattern in _QUESTIONS if pattern.search(question)), Intent.OTHER)


def says_how(heading: str) -> bool:
    """Whether a heading announces how to do a thing and leaves it to the headings above which thing that is."""
    said = {word.lower() for word in words(heading)}
    return bool(said) and said <= _HOW


def command_in(statement: Statement) -> str:
    """What a statement says to run: its code block, or the code in it of more than a name; empty if nothing, or not to."""
    if statement.kind is BlockKind.CODE:
        return statement.text
    said = [sentence for sentence in sentences(statement.text) if not claim(sentence).denies]
    return "\n".join(command for sentence in said for command in _COMMAND.findall(sentence))


def satisfaction(intent: Intent, statement: Statement) -> float:
    """How far a statement holds the kind of thing that was asked for, in [0, 1]."""
    text = statement.text
    match intent:
        case Intent.PROCEDURE:
            if statement.kind is BlockKind.CODE or statement.step or text.startswith(FIX):
                return 1.0
            return 0.7 if _CODE.search(text) else 0.4 if statement.kind is BlockKind.LIST_ITEM else 0.0
        case Intent.PERSON:
            return 1.0 if _FULL_NAME.search(text) else 0.5 if _ROLE.search(text) else 0.0
        case Intent.MOMENT:
            return 1.0 if claim(text).values.keys() & _MOMENTS else 0.4 if _NUMBER.search(text) else 0.0
        case Intent.DURATION:
            return 1.0 if "duration" in claim(text).values else 0.4 if _NUMBER.search(text) else 0.0
        case Intent.QUANTITY:
            return 1.0 if _NUMBER.search(text) else 0.0
        case Intent.REASON:
            return 1.0 if _BECAUSE.search(text) or text.startswith(ROOT_CAUSE) else 0.0
        case Intent.OTHER:
            return 0.0
