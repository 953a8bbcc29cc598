"""The hand of a simulated model: its words, its forms and its falsehoods, drawn from the habits of real models."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from enum import StrEnum

SHORT = 3  # statements that an answer is made of at most, before it is a list


class Error(StrEnum):
    OTHER_PASSAGE = "other passage"
    CHANGED_NUMBER = "changed number"
    CHANGED_UNIT = "changed unit"
    CHANGED_NAME = "changed name"
    DROPPED_CONDITION = "dropped condition"
    NEGATED = "negated"
    EXAGGERATED = "exaggerated"
    ADDED_REASON = "added reason"
    OTHER_PRODUCT = "other product"
    INVENTED_COMMAND = "invented command"
    NOT_FOUND = "not found"
    MALFORMED = "malformed"


_NUMBER = re.compile(r"\d+")
_CODE = re.compile(r"`([^`]+)`")
_CONDITION = re.compile(r"[,;]?\s*\b(?:if|unless|only|except|when|before|until)\b[^,.;]*", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|never)\s", re.IGNORECASE)
_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{3,}\b")
_MEASURED = re.compile(r"\b(\d+)( ?)(seconds?|minutes?|hours?|days?|MB|GB)\b")
_OTHER_UNIT = {"s": "minutes", "m": "hours", "h": "minutes", "d": "hours", "M": "GB", "G": "MB"}
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)])\s+")
_WORDS = (
    (r"\bdo not\b", "don't"),
    (r"\bdoes not\b", "doesn't"),
    (r"\bcannot\b", "can't"),
    (r"\bis not\b", "isn't"),
    (r"\bmust\b", "has to"),
    (r"\bneed to\b", "have to"),
    (r"\butili[sz]e\b", "use"),
    (r"\bin order to\b", "to"),
    (r"\bshould\b", "ought to"),
    (r"\bvia\b", "by means of"),
    (r"\bmultiple\b", "several"),
    (r"\bensure\b", "make sure"),
    (r"\ballows you to\b", "lets you"),
    (r"\bpercent\b", "%"),
    (r"(?<=\d) ?%", " percent"),
    (r"\b30 minutes\b", "half an hour"),
    (r"\b24 hours\b", "one day"),
    (r"\b60 minutes\b", "one hour"),
    (r"\b2 minutes\b", "two minutes"),
    (r"\b3 times\b", "three times"),
    (r"\b(\d+) seconds\b", r"\1s"),
    (r"\b(\d+) minutes\b", r"\1 min"),
    (r"\b(\d\d:\d\d):\d\d\b", r"\1"),
    (r"\b(\d),(\d{3})\b", r"\1\2"),
)  # fmt: skip
_OPENINGS = ("According to the documentation, ", "In short: ", "Specifically, ", "To do this, ", "In this setup, ")
_MARKS = ("[{n}]", "[{n}]", "[{n}]", "[^{n}]", "(passage {n})", "【{n}】", "[Passage {n}]", "({n})")
_YES_NO = re.compile(r"^\W*(?:is|are|do|does|can|may|should|must|will|has|have)\b", re.IGNORECASE)


def reworded(statements: Sequence[str], draw: random.Random, stated_in: Callable[[str], bool] | None) -> list[str]:
    """Return the statements in other words, merged or split; each change is kept that leaves the answer stated."""
    written = [_ITEM.sub("", each) for each in statements]

    def tried(changed: list[str]) -> list[str]:
        return changed if stated_in is None or stated_in("\n".join(changed)) else written

    for place, each in enumerate(written):
        if "`" in each or each.startswith("|"):
            continue
        for pattern, instead in _WORDS:
            if draw.random() < 0.7:
                other = re.sub(pattern, instead, each)
                written = tried([*written[:place], other, *written[place + 1 :]])
        if place == 0 and draw.random() < 0.4 and each[:1].isupper() and each[1:2].islower():
            opening = f"{draw.choice(_OPENINGS)}{written[0][:1].lower()}{written[0][1:]}"
            written = tried([opening, *written[1:]])
    if len(written) > 1 and draw.random() < 0.3 and not any("`" in each or "|" in each for each in written[:2]):
        first, second = written[0].rstrip("."), written[1]
        written = tried([f"{first}, and {second[:1].lower()}{second[1:]}", *written[2:]])
    elif draw.random() < 0.3 and "; " in written[0]:
        first, _, second = written[0].partition("; ")
        written = tried([f"{first}.", f"{second[:1].upper()}{second[1:]}", *written[1:]])
    return written


def formed(statements: Sequence[str], number: int, question: str, draw: random.Random) -> str:
    """Return the statements as a reply: sentences, a list, a table or a block of code, with or without a lead."""
    mark = draw.choice(_MARKS).format(n=number)
    lead = draw.choice(("", "", "", "Here is what the documents say:\n\n", "**Answer:** ", "## Answer\n\n"))
    rows = [each for each in statements if each.startswith("|")]
    codes = [each for each in statements if re.fullmatch(r"`[^`]+`", each)]
    if rows:
        width = max(each.strip("| ").count("|") + 1 for each in rows)
        head = f"| {' | '.join(['setting', 'value', 'meaning', 'note'][:width])} |\n|{'---|' * width}\n"
        body = [f"{each.rstrip().rstrip('|')} {mark} |" for each in rows if not re.fullmatch(r"[\s|:-]+", each)]
        return lead + head + "\n".join(body)
    if codes and len(codes) == len(statements):
        return f"Run this:\n\n```\n{chr(10).join(each.strip('`') for each in codes)}\n```\n{mark}"
    if len(statements) > SHORT:
        bullet = draw.choice(("- ", "* ", "• "))
        last_only = draw.random() < 0.3
        lines = [
            f"{bullet}{each}{'' if last_only and place < len(statements) else f' {mark}'}"
            for place, each in enumerate(statements, start=1)
        ]
        return lead + "\n".join(lines)
    text = " ".join(f"{each.rstrip('.')} {mark}." if draw.random() < 0.5 else f"{each} {mark}" for each in statements)
    if _YES_NO.match(question) and not lead and draw.random() < 0.5:
        return f"{'No' if _NEGATION.search(statements[0]) else 'Yes'}. {text}"
    return lead + text


def wrong(statement: str, error: Error, draw: random.Random) -> str:
    """Return the statement with an error of that kind; with another number, or denied, if it has no place for it."""
    measured = _MEASURED.search(statement)
    name = _NAME.search(statement)
    if error is Error.CHANGED_UNIT and measured:
        return f"{statement[: measured.start(3)]}{_OTHER_UNIT[measured[3][0]]}{statement[measured.end() :]}"
    if error is Error.DROPPED_CONDITION and _CONDITION.search(statement):
        return _CONDITION.sub("", statement, count=1)
    if error is Error.NEGATED and _NEGATION.search(statement):
        return _NEGATION.sub("", statement, count=1)
    if error in (Error.OTHER_PRODUCT, Error.CHANGED_NAME) and name:
        return f"{statement[: name.start()]}{draw.choice(('Nomad', 'Traefik', 'Consul'))}{statement[name.end() :]}"
    if error is Error.EXAGGERATED:
        return f"Always and in every case, {statement[:1].lower()}{statement[1:]}"
    if error is Error.ADDED_REASON:
        return f"{statement.rstrip('.')}, because that is faster."
    if number := _NUMBER.search(statement):
        other = str(int(number[0][:9]) + draw.randint(1, 9))
        return f"{statement[: number.start()]}{other}{statement[number.end() :]}"
    if code := _CODE.search(statement):
        return statement.replace(code[1], f"{code[1]}-all", 1)
    return f"Never {statement[:1].lower()}{statement[1:]}"
