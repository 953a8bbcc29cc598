"""A question in a conversation → a query that stands alone (Ericsson chatbot, section V-B, step 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.conversation import Speaker, Turn
from core.knowledge.terms import terms

SHORT_QUESTION = 4  # terms below which a question that begins like a follow-up is taken for one
CARRIED_TURNS = 3  # earlier questions that a chain of follow-ups may lean on

_LEADING = re.compile(
    r"^\s*(?:(?:ok(?:ay)?|thanks|thank you|hm+|right|sorry|no|nope|yes|yeah|not that)\b[\s,.!:;-]*)*"
    r"(?:(?:and|but|or|so|then|also|instead|what about|how about|same)\b"
    r"|(?:it|its|that|this|those|these|they|them|there|he|she)\b)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(r"^\s*(?:no|nope|not that|sorry|i mean|i meant|actually)\b", re.IGNORECASE)
_PRONOUN = re.compile(
    r"\b(?:it|its|that|this one|those|these|they|them|there|the same|the other|the second|the first)\b"
    r"|\bthis(?=\s*(?:[^\w\s]|$))",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"^\s*(?:and\s+)?(?:in|on|for|with|from|at|to)\b", re.IGNORECASE)


def standalone(question: str, history: Sequence[Turn]) -> str:
    """The question itself, or, if it is a follow-up, the question that it follows with the new words added.

    In a thread of other people, it follows what the thread began with.
    The new words come twice, as they are what changed: “no, in staging” must outweigh the production asked about first.
    """
    asked = [turn.text for turn in history if turn.speaker is Speaker.PERSON]
    is_theirs = len(asked) == len(history)  # nobody asked us before: the thread is about what it began with
    asked = asked[:1] if is_theirs else asked[-CARRIED_TURNS:]
    topic = ""
    for earlier in asked:
        topic = f"{topic} {earlier}" if topic and is_follow_up(earlier) else earlier
    question = question.strip()
    return f"{topic.strip()} {question} {question}" if topic and is_follow_up(question) else question


def is_follow_up(question: str) -> bool:
    """Whether a question cannot be understood alone.

    A correction, a question that leans on an earlier one (“and …”, “what about …”, “in …”) or a pronoun in a short one.
    """
    words = len(terms(question))
    if _CORRECTION.match(question) or words == 0:
        return True
    if words < SHORT_QUESTION:
        return bool(_LEADING.match(question) or _PREPOSITION.match(question) or _PRONOUN.search(question))
    return bool(_LEADING.match(question)) and words < 2 * SHORT_QUESTION
