"""Numbers with units and clock times, read alike from what a model writes and from what it read.

Both are normalised to the base unit of their kind, and compared to the precision that was written: 09:19 holds for 09:19:04,
5.9 s for 5916 ms, half an hour for 30 minutes; four hours are never four minutes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache, partial
from itertools import product
from math import isclose

_NAMES = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours", "d": "days", "wk": "weeks"}
SECONDS = {unit: timedelta(**{name: 1}).total_seconds() for unit, name in _NAMES.items()}
SCALES = {
    **{unit: ("s", scale) for unit, scale in SECONDS.items()},
    **{unit: ("B", 1000.0**power) for power, unit in enumerate(("b", "kb", "mb", "gb", "tb"))},
    **{unit: ("B", 1024.0**power) for power, unit in enumerate(("ki", "mi", "gi", "ti"), start=1)},
    "%": ("%", 1.0),
    "share": ("%", 100.0),
    "times": ("times", 1.0),
}
"""Each unit, with the base unit of its kind, and what it is of it."""

_SPELLED = {
    "millisecond": "ms", "msec": "ms", "second": "s", "sec": "s", "minute": "min", "m": "min", "hour": "h", "hr": "h",
    "day": "d", "week": "wk", "byte": "b", "kilobyte": "kb", "megabyte": "mb", "gigabyte": "gb", "terabyte": "tb",
    "kib": "ki", "mib": "mi", "gib": "gi", "tib": "ti", "percent": "%", "per cent": "%", "×": "times", "x": "times",
    "fold": "times", "time": "times",
}  # fmt: skip
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
).split()
_FIGURES = {
    **{word: float(number) for number, word in enumerate(_SMALL)},
    **{word: float(10 * number) for number, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)},
}  # fmt: skip
TIME = "time of day"
_FACTORS = {"hundred": 1e2, "k": 1e3, "thousand": 1e3, "million": 1e6}
ALIKE = 0.1  # relative error within which a rounded number may be

_UNIT = "|".join(sorted(map(re.escape, {*SCALES, *_SPELLED}), key=len, reverse=True))
_WORD_NUMBER = "|".join(sorted(_FIGURES, key=len, reverse=True))
_QUANTITY = re.compile(
    rf"(?P<rough>\b(?:about|around|roughly|approximately|nearly|almost|some|over|under)\s+|[~≈])?"
    rf"(?<![\w.])(?<![A-Za-z_]-)(?:(?P<figure>\d++(?:[,_ \u202f]\d{{3}}(?!\d))*+(?:\.\d++)?(?!\.?\d))"
    rf"|(?P<word>(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty-)?\b(?:{_WORD_NUMBER})|twice|thrice)\b)"
    rf"(?:[ -]?(?P<factor>{'|'.join(_FACTORS)})(?=fold|\b))?(?P<half> and a half)?"
    rf"(?:(?:\s?(?:-|–|to|and|or)\s?(?=\d))"
    rf"|[ \u202f-]?(?P<unit>(?P<coarse>hour|hr|h|minute|min|m)(?=s?(?:\d|\b))|{_UNIT})"
    rf"(?:(?<=[a-z]{{2}})s)?(?!\w(?<!\d))"
    rf"(?(coarse)(?:(?:,? and|,)? ?(?P<more>\d{{1,2}}) ?(?P<finer>m|min|s|sec|minute|second)(?:(?<=[a-z]{{2}})s)?(?!\w))?))?",
    re.IGNORECASE,
)
_PARTLY = re.compile(
    r"\b(?:(?P<whole>an?|one|per|each|every) (?P<unit>hour|minute|second|day|week)(?P<more>(?:,? and)? a half)?"
    r"|(?P<part>half)(?: of)? an? (?P<of>hour|minute|day))\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<![\d:.])(?P<hour>[01]?\d|2[0-3])(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,]\d+)?)?)?(?![\d:])"
    r"(?P<half>\s?(?:[ap]\.?m\b\.?|o['’]clock|in the (?:morning|afternoon|evening)))?|\b(?P<named>noon|midday|midnight)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written, in a unit that is `scale` base units of its `kind`; empty without a unit.

    `step` is the unit of its last digit. A `loose` one is a word that may only count or name ("two ways", "a day").
    """

    number: float
    kind: str = ""
    scale: float = 1.0
    step: float = 1.0
    is_loose: bool = False

    @property
    def value(self) -> float:
        return self.number * self.scale

    def holds_for(self, other: Quantity) -> bool:
        """Return whether `other` is this quantity, to the precision of this one.

        A number without a unit has any of the kind, and what reads like a time of day may be a duration.
        """
        if self.kind and not other.kind:
            scales = (scale for kind, scale in SCALES.values() if kind == self.kind)
            return any(self.holds_for(replace(other, kind=self.kind, scale=scale)) for scale in scales)
        if self.kind not in ("", other.kind) and (self.kind, other.kind) != ("s", TIME):
            return False
        mine, theirs, scale = (self.value, other.value, self.scale) if self.kind else (self.number, other.number, 1.0)
        error, half = abs(theirs - mine), self.step * scale / 2
        if self.kind == TIME:
            return error <= half or 0 <= theirs - mine < self.step
        is_finer = other.step * other.scale < self.step * scale and (error <= half or isclose(error, half))
        return isclose(mine, theirs) or (is_finer and error <= ALIKE * theirs)


@lru_cache(maxsize=4_000)
def quantities(text: str) -> tuple[tuple[Quantity, ...], str]:
    """Return the quantities of a text, and the text without them."""
    read: list[Quantity] = []

    def taken(parse: Callable[[re.Match[str]], Quantity | None], match: re.Match[str]) -> str:
        quantity = parse(match)
        read.extend([quantity] if quantity else [])
        return " " if quantity else match[0]

    for pattern, parse in ((_CLOCK, _clock), (_PARTLY, _partly), (_QUANTITY, _quantity)):
        text = pattern.sub(partial(taken, parse), text)
    return tuple(read), text


def _clock(match: re.Match[str]) -> Quantity | None:
    if not (match["named"] or match["minute"] or match["half"]):
        return None
    hour, half = int(match["hour"] or (match["named"].lower() != "midnight" and 12)), (match["half"] or "").lower()
    if half.replace(".", "").endswith(("pm", "afternoon", "evening")):
        hour = hour % 12 + 12
    elif half.replace(".", "").endswith("am"):
        hour %= 12
    number = hour * SECONDS["h"] + int(match["minute"] or 0) * SECONDS["min"] + int(match["second"] or 0)
    return Quantity(number, TIME, step=1.0 if match["second"] else SECONDS["min"])


def _partly(match: re.Match[str]) -> Quantity:
    if match["part"]:
        return _measure(0.5, match["of"], 0.0)
    number, is_loose = 1.5 if match["more"] else 1.0, not match["more"] and match["whole"].lower() != "one"
    return _measure(number, match["unit"], number - 1.0, is_loose=is_loose)


def _quantity(match: re.Match[str]) -> Quantity:
    if match["figure"]:
        figure = "".join(sign for sign in match["figure"] if sign.isdigit() or sign == ".")
        number, step = float(figure), 10.0 ** -len(figure.partition(".")[2])
        if match["rough"] and "." not in figure:
            step = 10.0 ** (len(figure) - len(figure.rstrip("0")))
    else:
        tens, _, word = match["word"].lower().rpartition("-")
        number = {"twice": 2.0, "thrice": 3.0}.get(word) or _FIGURES[word] + _FIGURES.get(tens, 0.0)
        step = 1.0
    factor = _FACTORS.get((match["factor"] or "").lower(), 1.0)
    unit = match["unit"] or ("times" if match["word"] in ("twice", "thrice") else "")
    read = _measure(number * factor, unit, step * factor, is_loose=not match["figure"] and not unit)
    if match["half"]:
        return replace(read, number=number + 0.5, step=0.5)
    finer = _measure(float(match["more"] or 0), match["finer"] or "", 1.0)
    return (
        replace(read, number=read.number + finer.value / read.scale, step=finer.scale / read.scale)
        if match["more"]
        else read
    )


def _measure(number: float, unit: str, step: float, *, is_loose: bool = False) -> Quantity:
    unit = _SPELLED.get(unit.lower(), unit.lower())
    return Quantity(number, *SCALES.get(unit, ("", 1.0)), step, is_loose)


def adds_quantities(text: str, source: str, *, only_times: bool = False) -> bool:
    """Return whether a text has a number or time that its source has not, and that does not follow from those it has.

    A share, a difference or a ratio of two numbers of the text itself follows from them, and so does the time between one of
    the text and one of the source. With `only_times`, only times of day are compared, which no calculation gives.
    """
    own, held = quantities(text)[0], quantities(source)[0]
    given = [each for each in own if any(map(each.holds_for, held))]
    compared = [each for each in own if not each.is_loose and (each.kind == TIME or not only_times)]
    return any(each not in given and not _follows(each, given, held) for each in compared)


def _follows(quantity: Quantity, given: Sequence[Quantity], held: Sequence[Quantity]) -> bool:
    results: list[float] = []
    for first, second in product(given, held if quantity.kind == "s" else given):
        a, b = first.value, second.value
        if first.kind != second.kind:
            continue
        if quantity.kind == "%" and a:
            results += (100 * b / a, 100 * (a - b) / a)
        elif quantity.kind == "times" and b:
            results.append(a / b)
        elif quantity.kind == first.kind or (quantity.kind, first.kind) == ("s", TIME):
            results.append(abs(a - b))
    return any(abs(quantity.value - each) <= quantity.step * quantity.scale / 2 for each in results)
