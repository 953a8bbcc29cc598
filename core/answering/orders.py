"""Recognise orders to act on the company's systems, which Plumbline only reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core.knowledge.markdown import BlockKind, blocks
from core.knowledge.terms import distinct_terms
from core.model.answer import Answer

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
    rf"(?P<verb>{_VERBS})\s++(?P<object>\S++)",
    re.IGNORECASE,
)
_URGING = frozenset("please pls kindly now asap immediately".split())
_SIGNS = " ,.!?"
_HOW = (BlockKind.HEADING, BlockKind.CODE)
_NUMBERED = re.compile(r"\d")
_DEFINITE = frozenset("the all this that it them these those my our every both".split())


@dataclass(frozen=True, slots=True)
class Order:
    """An order such as “restart payment-gateway”, whose `verb` is “restart”."""

    text: str
    verb: str

    def questions(self, services: Iterable[str]) -> tuple[str, ...]:
        """Return how to ask for the way to do it: for the named thing, and for any, because pages name `SERVICE`."""
        names = {service.lower() for service in services}
        general = [word for word in self.text.split() if word.lower() not in names and not _NUMBERED.search(word)]
        return tuple(dict.fromkeys(f"how do I {each}?" for each in (self.text, " ".join(general))))

    def is_explained_by(self, answer: Answer) -> bool:
        """Return whether a source, a heading or a command of an answer names what is ordered."""
        wanted = distinct_terms(self.verb)
        parts = [block for excerpt in answer.excerpts for block in blocks(excerpt.text)]
        texts = [
            block.heading if block.kind is BlockKind.HEADING else block.text for block in parts if block.kind in _HOW
        ]
        cited = [
            citation.name for citation in answer.citations if citation.number in {e.citation for e in answer.excerpts}
        ]
        return any(wanted <= distinct_terms(each) for each in (*cited, *texts))


def order_in(text: str, services: Iterable[str]) -> Order | None:
    """Return what a message orders; None if it orders nothing.

    An order says please, addresses the bot, or names a service or a definite thing right after the verb: “restart loops
    in the gateway” and “deploy failed” are none.
    """
    words = text.split()
    while words and words[-1].lower().strip(_SIGNS) in _URGING:
        words.pop()
    order = " ".join(words)
    if len(text) > MAX_ORDER or "\n" in text.strip() or (match := _ORDER.match(order)) is None:
        return None
    thing = match["object"].lower().strip(_SIGNS)
    is_urged = len(words) < len(text.split())
    if match["asked"] or is_urged or thing in _DEFINITE or thing in map(str.lower, services):
        return Order(order[match.start("verb") :].rstrip(_SIGNS), match["verb"])
    return None
