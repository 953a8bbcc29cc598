"""A question in a conversation → a query that stands alone (Ericsson chatbot, section V-B, step 1)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.answering.statements import without_emoji
from core.knowledge.terms import terms
from core.model.conversation import Speaker, Turn

SHORT_QUESTION = 4  # terms below which a question that begins like a follow-up is taken for one
CARRIED_TURNS = 3  # earlier questions that a chain of follow-ups may lean on

# Of German, French and Spanish what no English question begins with, of Japanese and Chinese the corrections.
_WORD = re.compile(r"\w+")
_LEADING = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|thanks|thank you|hm+|right|sorry|no|nope|yes|yeah|not that"
    r"|danke|ja|nein|merci|oui|non|gracias|s[íi])\b[\s,.!:;¿¡-]*)*"
    r"(?:(?:and|but|or|so|then|also|instead|what about|how about|same"
    r"|und|aber|oder|was ist mit|wie ist es (?:mit|bei)|et|mais|qu['’]en est-il|y (?:en|para|con|si|qu[ée])|pero"
    r"|qu[ée] (?:pasa con|tal))(?![\w-])"  # “same-day” leads nowhere
    r"|(?:it|its|that|this|those|these|they|them|there|he|she)\b)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^\W*(?:(?:not that|sorry|i mean|i meant|actually"
    r"|nein|doch nicht|ich meine|ich meinte|je veux dire|je voulais dire|quiero decir|quise decir)\b"
    # “No space left on device” corrects nobody.
    r"|(?:no|nope)(?=\s*(?:[^\w\s]|$)|\s+(?:i|in|on|for|at|from|with|to|not|the|that|this|it|we|wait|en|para)\b)"
    r"|non(?=\s*[,.!…–—]|\s+(?:en|dans|sur|pour)\b)|(?:いいえ|いや|違います|不是|不对|不對|不)(?=[、，,。\s]))",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:it|its|that|this one|those|these|they|them|there|the same|the other|the second|the first)\b"
    r"|\bthis(?=\s*(?:[^\w\s]|$))",
    re.IGNORECASE,
)
_CALL = frozenset(
    "hi hello hey good morning afternoon evening day dear team all folks guys everyone everybody anyone anybody somebody "
    "someone around here there available online awake quick question help please need can could you me us i a is have do "
    "does know any idea ideas thoughts suggestions pointers advice".split()
)
"""Words that only call for somebody: they name no subject."""

_PREPOSITION = re.compile(
    r"^\W*(?:and\s+)?(?:in|on|for|with|from|at|to|(?-i:[Ii]m|[Mm]it)|auf|bei|für|von|en|dans|sur|pour|avec|para|con)"
    r"(?![\w-])",  # “on-call”, “IM” and “MIT” are names
    re.IGNORECASE,
)


def standalone(question: str, history: Sequence[Turn]) -> str:
    """The question itself, or, if it is a follow-up, the question that it follows with the new words added.

    In a thread of other people, it follows what the thread began with, a greeting left out.
    The new words come twice, as they are what changed: “no, in staging” must outweigh the production asked about first.
    """
    asked = [turn.text for turn in history if turn.speaker is Speaker.PERSON]
    is_theirs = len(asked) == len(history)  # nobody asked us before: the thread is about what it began with
    asked = [turn for turn in asked if not only_calls(turn)][:1] if is_theirs else asked[-CARRIED_TURNS:]
    topic = ""
    for earlier in asked:
        topic = f"{topic} {earlier}" if topic and is_follow_up(earlier) else earlier
    question = question.strip()
    return f"{topic.strip()} {question} {question}" if topic and is_follow_up(question) else question


def is_follow_up(question: str) -> bool:
    """Whether a question cannot be understood alone.

    A correction, a call for help, a question that leans on an earlier one (“and …”, “what about …”, “in …”) or a pronoun in a short one.
    """
    words = len(terms(question))
    if _CORRECTION.match(question) or words == 0 or only_calls(question):
        return True
    if words < SHORT_QUESTION:
        return bool(_LEADING.match(question) or _PREPOSITION.match(question) or _PRONOUN.search(question))
    return bool(_LEADING.match(question)) and words < 2 * SHORT_QUESTION


def only_calls(text: str) -> bool:
    """Whether a message greets, or asks for somebody or for help, and says nothing else."""
    return _CALL.issuperset(_WORD.findall(without_emoji(text).lower()))
