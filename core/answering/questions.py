"""Questions before they are searched for: orders to act, which Plumbline refuses, and queries that stand alone.

A question in a conversation is rewritten as such queries (Ericsson chatbot, section V-B, step 1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from core.answering.statements import without_emoji
from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.terms import distinct_terms, terms
from core.model.answer import Answer, Citation
from core.model.conversation import Speaker, Turn
from core.model.text import WORD

CHANGES_NOTHING = "I change nothing in your systems: a person has to do this."
MAX_ORDER = 300  # characters

_VERBS = (
    "restart|reboot|roll(?: |-)?back|revert|undo|redeploy|deploy|promote|release|ship|roll out|delete|remove|drop|purge|flush|"
    "clear|clean(?: up)?|truncate|wipe|kill|stop|start|scale(?: up| down)?|drain|cordon|uncordon|reimage|rebuild|reindex|"
    "retry|rerun|re-run|run|execute|apply|merge|patch|upgrade|downgrade|rotate|renew|revoke|unlock|lock|enable|disable|"
    "turn (?:on|off)|switch (?:on|off|over)|fail over|failover|increase|decrease|raise|lower|resize|block|unblock|pause|"
    "resume|shut down|evict|fix|repair|reset|silence|mute|restore"
)
_ORDER = re.compile(
    r"\s*+(?:(?:hey|hi|ok(?:ay)?|and|so|now|then|plumbline)[\s,]++)*+"
    r"(?P<asked>(?:please|pls|kindly)[\s,]++|(?:please[\s,]++)?(?:can|could|will|would) (?:you|u) (?:(?:please|pls|kindly|just) )?)?"
    r"(?P<how>how (?:do|can|could|should|to) (?:(?:i|we|you|one) )?)?"
    rf"(?P<verb>{_VERBS})\s++(?P<object>\S++)",
    re.IGNORECASE,
)
_URGING = frozenset("please pls kindly now asap immediately".split())
_SIGNS = " ,.!?;:`*()"
_DEFINITE = frozenset("the all this that it them these those my our every both".split())


@dataclass(frozen=True, slots=True)
class Order:
    """An order such as “restart payment-gateway”, whose `verb` is “restart”, or a question of how that is done.

    `questions` ask how it is done with the named thing, and with any, because pages name `SERVICE`. `known` are
    the services and teams, in lower case.
    """

    text: str
    verb: str
    questions: tuple[str, str]
    known: frozenset[str]
    is_question: bool = False

    def explained_by(self, answer: Answer) -> int:
        """Return how well what an answer or its quotes show explains what is ordered; 0 if nothing does.

        A command for the thing, for any or for another of its kind does most, then a page about the action, or a section
        about it that names the thing.
        """
        sources = {each.number: each for each in answer.citations}
        return max(
            (self._explained_in(each.text, sources[each.citation]) for each in answer.quotes or answer.excerpts),
            default=0,
        )

    def _explained_in(self, text: str, source: Citation) -> int:
        parts = blocks(text)
        commands = [line for each in parts if each.kind is BlockKind.CODE for line in each.text.splitlines()]
        is_headed = any(map(self._names, (source.heading, *(each.heading for each in parts))))
        things = self.known.intersection(self.text.lower().split())
        return 2 * any(
            self._names(line) and _is_for(line, self.known if things else things) for line in commands
        ) or int(self._names(source.title) or (is_headed and _is_for(text, things)))

    def _names(self, text: str) -> bool:
        """Return whether a text names the action, in words or in one: “roll back” is “rollback” in a command."""
        return any(distinct_terms(each) <= distinct_terms(text) for each in (self.verb, self.verb.replace(" ", "")))


def _is_for(text: str, things: frozenset[str]) -> bool:
    """Return whether a text names one of these things, or any by a word in its place; true if there are none."""
    words = [word.strip(_SIGNS) for word in text.replace("/", " ").split()]
    return not things or any(
        word.lower() in things or (len(word) > 2 and (word.isupper() or word[0] == "<")) for word in words
    )


def order_in(text: str, names: Iterable[str]) -> Order | None:
    """Return what a message orders, or how it asks to do it with one of these services and teams; None if it orders nothing.

    An order says please, addresses the bot, or names a service or a definite thing right after the verb: “restart loops
    in the gateway” and “deploy failed” are none.
    """
    words = text.split()
    while words and words[-1].lower().strip(_SIGNS) in _URGING:
        words.pop()
    order = " ".join(words)
    if len(text) > MAX_ORDER or "\n" in text.strip() or (match := _ORDER.match(order)) is None:
        return None
    own_names, thing = set(map(str.lower, names)), match["object"].lower().strip(_SIGNS)
    is_urged = len(words) < len(text.split())
    if thing in own_names or (not match["how"] and (match["asked"] or is_urged or thing in _DEFINITE)):
        what = order[match.start("verb") :].rstrip(_SIGNS)
        general = [word for word in what.split() if word.lower() not in own_names and not any(map(str.isdigit, word))]
        questions = (f"how do I {what}?", f"how do I {' '.join(general)}?")
        return Order(what, match["verb"], questions, frozenset(own_names), is_question=bool(match["how"]))
    return None


SHORT_QUESTION = 4  # terms below which a question that begins like a follow-up is read as one
CARRIED_TURNS = 3  # earlier questions that a chain of follow-ups may refer to
MAX_PARTS = 3  # of a question; the last part contains the rest
MAX_LENGTH = 600  # characters of a question; the parts of a longer one explain each other

# “There” refers back, but not in “is there a freeze” and “there is no space”.
_THERE = r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )there(?! (?:is|are|was|were)\b)|there(?= one\b)"

# German, French and Spanish openings that no English question has, and Japanese and Chinese corrections.
_LEADING = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|thanks|thank you|hm+|right|sorry|no|nope|yes|yeah|not that"
    r"|danke|ja|nein|merci|oui|non|gracias|s[íi])\b[\s,.!:;¿¡-]*)*"
    r"(?:(?:and|but|or|so|then|also|instead|what about|how about|same"
    r"|und|aber|oder|was ist mit|wie ist es (?:mit|bei)|et|mais|qu['’]en est-il|y (?:en|para|con|si|qu[ée])|pero"
    r"|qu[ée] (?:pasa con|tal))(?![\w-])"  # not “same-day”
    rf"|(?:it|its|that|this|those|these|they|them|{_THERE}|he|she)\b)",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"^\W*(?:(?:not that|sorry|i mean|i meant|actually"
    r"|nein|doch nicht|ich meine|ich meinte|je veux dire|je voulais dire|quiero decir|quise decir)\b"
    # “No space left on device” is not a correction.
    r"|(?:no|nope)(?=\s*(?:[^\w\s]|$)|\s+(?:i|in|on|for|at|from|with|to|not|the|that|this|it|we|wait|en|para)\b)"
    r"|non(?=\s*[,.!…–—]|\s+(?:en|dans|sur|pour)\b)|(?:いいえ|いや|違います|不是|不对|不對|不)(?=[、，,。\s]))",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    rf"\b(?:it|its|that|this one|those|these|they|them|{_THERE}|the same|the other|the second|the first)\b"
    r"|\bthis(?=\s*(?:[^\w\s]|$))",
    re.IGNORECASE,
)
_CALL = frozenset(
    "hi hello hey good morning afternoon evening day dear team all folks guys everyone everybody anyone anybody somebody "
    "someone around here there available online awake quick question help please need can could you me us i a is have do "
    "does know any idea ideas thoughts suggestions pointers advice".split()
)
"""Words that only call for somebody, and name no subject."""

_PREPOSITION = re.compile(
    r"^\W*(?:and\s+)?(?:in|on|for|with|from|at|to|(?-i:[Ii]m|[Mm]it)|auf|bei|für|von|en|dans|sur|pour|avec|para|con)"
    r"(?![\w-])",  # “on-call”, “IM” and “MIT” are names
    re.IGNORECASE,
)
_ASKING = (
    r"(?:(?:who|whom|whose|what|when|where|which|why|how)|(?:is|are|can|could|do|does|did|should|may|must|will|would)"
    r"\s+(?:i|we|you|it|they|there|the))\b"
)
_NEXT = re.compile(
    rf"(?<=[?？])\s*+(?=[^?？]+[?？])|(?<![\s,;])[\s,;]++(?:and|but|plus)\s++(?={_ASKING})", re.IGNORECASE
)


_COMPARES = re.compile(r"\s(?:or|vs\.?|versus)\s|\b(?:differen|compar)\w+", re.IGNORECASE)


def standalone(question: str, history: Sequence[Turn]) -> str:
    """Return the question itself or, if it is a follow-up, the question that it follows with the new words added.

    In a thread of other people, it follows the first message that is more than a greeting. The new words are repeated,
    because they are what changed: “no, in staging” must outweigh the production asked about first.
    """
    questions = [turn.text for turn in history if turn.speaker is Speaker.PERSON]
    is_theirs = len(questions) == len(history)  # nobody asked the bot before: the thread is about its first message
    questions = [turn for turn in questions if not only_calls(turn)][:1] if is_theirs else questions[-CARRIED_TURNS:]
    topic = ""
    for earlier in questions:
        topic = f"{topic} {earlier}" if topic and is_follow_up(earlier) else earlier
    question = question.strip()
    return f"{topic.strip()} {question} {question}" if topic and is_follow_up(question) else question


def is_follow_up(question: str) -> bool:
    """Return whether a question cannot be understood alone.

    These are corrections, calls for help, continuations (“and …”, “what about …”, “in …”), and short ones with a
    pronoun.
    """
    words = len(terms(question))
    if _CORRECTION.match(question) or words == 0 or only_calls(question):
        return True
    if words < SHORT_QUESTION:
        return bool(_LEADING.match(question) or _PREPOSITION.match(question) or _PRONOUN.search(question))
    return bool(_LEADING.match(question)) and words < 2 * SHORT_QUESTION


def only_calls(text: str) -> bool:
    """Return whether a message only greets, or only asks for somebody or for help."""
    return _CALL.issuperset(WORD.findall(without_emoji(text).lower()))


def parts(question: str) -> tuple[str, ...]:
    """Return the questions that are asked at once, at most MAX_PARTS; only the question itself if it asks one thing.

    It is split after a question mark, and at a conjunction before the next question word. Each part stands alone.
    """
    question = question.strip()
    if len(question) > MAX_LENGTH or "```" in question:
        return (question,)
    questions = [each for each in _NEXT.split(question, MAX_PARTS - 1) if terms(each)]
    if len(questions) > 1:
        turns = [Turn(Speaker.PERSON, each) for each in questions]
        return tuple(standalone(each, turns[:place]) for place, each in enumerate(questions))
    return (question,)


def compares(question: str) -> bool:
    """Return whether a question may be about two things, so that a quote about one answers half of it."""
    return _COMPARES.search(question) is not None
