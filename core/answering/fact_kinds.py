"""Kinds of fact that a question asks for: a person, a permission, an amount, a time, a place or a command.

The kind decides which sentences count as an answer: “who …?” is answered where somebody is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.knowledge.terms import distinct_terms, terms

_TIME = (
    r"\d{1,2}[:.]\d\d|\d{1,2} ?[ap]m|\d{4}-\d\d|midnight|noon|(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
    r"|january|february|march|april|may \d|june|july|august|september|october|november|december"
    r"|hourly|daily|nightly|weekly|monthly|quarterly|yearly|every (?:\d+ \w+|hour|day|night|week|month|quarter|year)"
)


@dataclass(frozen=True, slots=True)
class FactKind:
    """A kind of fact: the pattern of questions that ask for it, and that of sentences that state it."""

    asks: re.Pattern[str]
    states: re.Pattern[str]

    @classmethod
    def of(cls, asks: str, states: str) -> FactKind:
        return cls(re.compile(asks, re.IGNORECASE), re.compile(states, re.IGNORECASE))


PERSON = FactKind.of(
    r"\b(?:who|whom|whose|(?:which|what) (?:team|group|person|channel))\b",
    r"(?<!\w)[@#][a-z][\w-]+|(?<![\w.])[\w.]++@\w++\.\w|\b(?:team|group|owne[rd]s?|owns|contact|anybody|nobody|on-call|responsible|manager|lead|maintain\w*)\b",
)
LEAVE = FactKind.of(
    r"^\W*(?:may|can|could|should|must|do)\s+(?:i|we|any(?:body|one)|one)\b|\b(?:allowed|permitted|ok|okay|need to|have to|who (?:may|can|must))\b",
    r"\b(?:may|must|can|cannot|never|need(?:s|ed)?|without|allowed|permitted|forbidden|refused|approvals?|not)\b|n['’]t\b",
)
AMOUNT = FactKind.of(
    r"\bhow (?:long|many|much|big|large|often|old|soon)\b",
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|once|twice|half)\b|\b(?:dai|hour|night|week|month|quarter|year)ly\b",
)
TIME = FactKind.of(r"\bwhat time\b|\bwhen (?:is|are|was|were|will|did)\b", rf"\b(?:{_TIME})\b")
PLACE = FactKind.of(
    r"\bwhere\b|\bwhich (?:page|link|form|file)\b", r"https?://|\]\(|(?<!\w)#[a-z][\w-]+|`[^`/.]*+[/.][^`]*+`"
)
COMMAND = FactKind.of(r"\b(?:commands?|cli|run|flags?|scripts?|syntax)\b", r"`[^`]+`")
KINDS = (PERSON, LEAVE, AMOUNT, TIME, PLACE, COMMAND)


def kinds_asked(question: str) -> tuple[FactKind, ...]:
    """Return the kinds of fact that a question asks for; empty if it may ask for any."""
    return tuple(kind for kind in KINDS if kind.asks.search(question))


def says_what_is_asked(question: str, text: str, marked: str) -> bool:
    """Return whether a text states the kinds of fact that a question asks for, and leave in the sentence that is nearest.

    `marked` is that sentence. Any text may name a person or a place, so nothing is concluded from that.
    """
    return all(
        kind.states.search((text if kind is AMOUNT else marked) or text)
        for kind in kinds_asked(question)
        if kind in (LEAVE, AMOUNT, TIME)
    )


def refuses(question: str, text: str) -> bool:
    """Return whether a text says not to do what a question asks leave for, as “never restart it” after “can I restart it?”.

    What does not happen (“it does not restart”) or need not be done refuses nothing.
    """
    leave = LEAVE.asks.search(question)
    deed = distinct_terms(" ".join(question[leave.end() :].split()[:2]) if leave else "")
    plain = " ".join(text.lower().replace("*", "").replace("’", "'").replace("can't", "cannot").split())
    return any(
        not deed.isdisjoint(terms(" ".join(after.split()[:2]))[:1])
        for ban in ("do not", "must not", "should not", "may not", "can not", "cannot", "never")
        for after in plain.replace("n't", " not").split(f"{ban} ")[1:]
    )
