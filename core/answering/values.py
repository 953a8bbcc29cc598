"""What a statement says in figures: the values in it, each under what it measures, and whether it denies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from core.knowledge.terms import STOP_WORDS, terms

REMEMBERED = 5_000  # texts whose claims are kept in memory: a few MB

_SECONDS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "day": 86_400, "week": 604_800, "month": 2_629_800, "year": 31_557_600,
}  # fmt: skip
_BYTES = {"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_WEEKDAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_THING = rf"(?!(?:{'|'.join(STOP_WORDS)})\b)[^\W\d_]{{3,}}"  # a word that says what is counted
_UNIT = "|".join((*_SECONDS, *_BYTES))
_NUMBER = rf"\d++(?:,\d{{3}}){{0,6}}+(?:\.\d++)?+|{'|'.join(_WORDS)}"
_VALUE = re.compile(
    rf"(?P<clock>\b\d{{1,2}}:\d{{2}}\b)"
    rf"|(?P<date>\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}} (?:{_MONTHS})\b|\b(?:{_MONTHS}) \d{{1,2}}\b)"
    rf"|(?P<version>\bv?\d+\.\d+\.\d+\b)"
    rf"|(?P<weekday>\b(?:{_WEEKDAYS})s?\b)"
    rf"|(?P<share>(?<![\w.])(?:{_NUMBER}) ?(?:%|percent\b))"
    rf"|(?P<measure>(?<![\w.])(?P<amount>{_NUMBER})[ -]?(?P<unit>{_UNIT})s?\b)"
    rf"|(?P<count>(?<![\w.])(?P<quantity>{_NUMBER})(?![\w.]*\d) (?P<thing>{_THING}))"
    rf"|(?P<setting>(?P<name>[^\W\d_][\w.-]{{2,80}})`?(?: is| of|:| =|=)? ?(?P<set>\d+(?:\.\d+)?)\b"
    rf"(?![.,:]?\d| ?%|[ -]?(?:percent|{_UNIT})s?\b| {_THING}))",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\b(?:not|never|cannot|no longer|without|no)\b|n['’]t\b", re.IGNORECASE)
_OPPOSITES = {"disabled": "enabled", "forbidden": "allowed", "unsupported": "supported", "optional": "required"}
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_SAME_LETTERS = str.maketrans({"\u017f": "s", "\u0131": "i", "\u0130": "I"})  # for IGNORECASE, not for `lower`


@dataclass(frozen=True, slots=True)
class Claim:
    """`values` by what they measure (durations in seconds, sizes in bytes, counts by the thing counted).

    `subject` are the terms around the values, an opposite put as what it denies. `denies` is whether the statement is
    a negative one: an even number of denials is none.
    """

    subject: frozenset[str]
    values: Mapping[str, frozenset[float | str]]
    denies: bool


@lru_cache(maxsize=REMEMBERED)
def claim(text: str) -> Claim:
    text = text.translate(_SAME_LETTERS)
    found: dict[str, set[float | str]] = {}
    kept: list[str] = []
    end = 0
    for match in _VALUE.finditer(text):
        measure, value = _measured(match)
        found.setdefault(measure, set()).add(value)
        kept += [text[end : match.start()], match["thing"] or match["name"] or ""]
        end = match.end()
    rest = " ".join([*kept, text[end:]])
    denials = len(_DENIAL.findall(rest)) + len(_OPPOSITE.findall(rest))
    positive = _OPPOSITE.sub(lambda word: _OPPOSITES[word[0].lower()], rest)
    values = {measure: frozenset(each) for measure, each in found.items()}
    return Claim(frozenset(terms(positive)), values, denials % 2 == 1)


def differing(first: Claim, second: Claim) -> bool:
    """Whether both state values of the same kind and have none of them in common."""
    shared = first.values.keys() & second.values.keys()
    return any(first.values[kind].isdisjoint(second.values[kind]) for kind in shared)


def _measured(match: re.Match[str]) -> tuple[str, float | str]:
    """What a value measures, and the value in one unit."""
    if match["measure"]:
        amount, unit = _number(match["amount"]), match["unit"].lower()
        return ("duration", amount * _SECONDS[unit]) if unit in _SECONDS else ("size", amount * _BYTES[unit])
    if match["share"]:
        return "share", _number(match["share"].rstrip("% ").lower().removesuffix("percent").strip())
    if match["count"]:
        return f"count of {' '.join(terms(match['thing']))}", _number(match["quantity"])
    if match["setting"]:
        return f"value of {match['name'].lower()}", float(match["set"])
    kind = next(name for name in ("clock", "date", "version", "weekday") if match[name])
    return kind, match[0].lower().removeprefix("v").rstrip("s") if kind != "date" else _day(match[0].lower())


def _day(text: str) -> str:
    """A day of a month, whichever of both comes first."""
    return " ".join(sorted(text.split()))


def _number(text: str) -> float:
    word = text.lower()
    return float(_WORDS.index(word)) if word in _WORDS else float(text.replace(",", ""))
