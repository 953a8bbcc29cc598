"""Make text of a language model safe: plain, and without literals that its source does not contain."""

from __future__ import annotations

import re

from core.knowledge.markdown import LINK_TARGET
from core.knowledge.terms import distinct_terms

_CODE = re.compile(r"(?<!`)`++([^`]++)`+")
_CODE_OR_REST = re.compile(r"(`[^`]+`)")
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{LINK_TARGET}")
_CITATION_MARK = re.compile(r"(?:(?<!\s)\s++)?[\[【]\s*+\d{1,3}(?:\s*,\s*\d{1,3})*\s*[\]】]")
_LINE_MARK = re.compile(r"^\s*(?:#{1,6}|>+|[-*+•]|\|)\s+")
_EMPHASIS = re.compile(r"\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")

# Models write “95%” or “95 %”, and “4s” or “4 seconds”: the same number with the same unit.
_SPELLED = {
    "percent": "%",
    "per cent": "%",
    "millisecond": "ms",
    "milliseconds": "ms",
    "second": "s",
    "seconds": "s",
    "secs": "s",
    "sec": "s",
    "minute": "min",
    "minutes": "min",
    "mins": "min",
    "m": "min",
    "hour": "h",
    "hours": "h",
    "hrs": "h",
    "day": "d",
    "days": "d",
    "kilobytes": "KB",
    "megabyte": "MB",
    "megabytes": "MB",
    "gigabyte": "GB",
    "gigabytes": "GB",
}
_UNITS = "|".join(("%", "[kKMGT]i?B", "ms", "min", "s", "h", "d", *sorted(_SPELLED, reverse=True)))
_MEASURE = re.compile(rf"(?<![\w.-])(?<![\d,],)(\d++(?:[.,]++\d++)*+)[ -]?({_UNITS})(?!\w)")
_GROUPED = re.compile(r"(?<![\w.,])(\d{1,3})((?:,\d{3})+)(?![\w,])")  # “1,000” is “1000”

_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_FIGURES = {word: str(number) for number, word in enumerate(_WORDS, start=2)} | {
    "twice": "2 times",
    "thrice": "3 times",
    "fifteen": "15",
    "twenty": "20",
    "thirty": "30",
    "sixty": "60",
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_FIGURES)})\b", re.IGNORECASE)  # “three times” is “3 times”

# “An hour and a half” is read as a number with a unit, to be compared with “90 minutes”.
_SCALES = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_PARTLY = re.compile(
    r"\b(?:(one|an?) (hour|minute|day|second)\b(?: and a (half))?|one and a (half) (hour|minute|day|second)s?"
    r"|(half) (?:an? )?(hour|minute|day)\b)",
    re.IGNORECASE,
)

_TAG = re.compile(r"<[^<>]*>")
_TOKEN = re.compile(r"[^\s`'\"‘’“”()\[\]{}<>|,;]+")
_EDGE = ".:!?*_~…"
_SPECIAL = re.compile(r"\d|_|[a-z][A-Z]|^[A-Z]{2,}|^/|\w[.:/@=&\\]+\w\w|://|^--?\w|@")

_SURE = re.compile(
    r"\b(?:i|we)(?:['’]m|['’]re|\s+am|\s+are)\s+(?:\S+\s+){0,2}(?:sure|certain|positive|confident)\b"
    r"|%\s*(?:sure|certain|likely|confident)\b|[●○]",
    re.IGNORECASE,
)
_CONFIDENCE = re.compile(r"\b(?:confiden(?:t|ce|tly)|certainty|probability)\b", re.IGNORECASE)
_SUMMONS = re.compile(r"@(?:channel|here|everyone|all)\b|<[!@#][^<>]*>", re.IGNORECASE)


def cleaned(text: str) -> str:
    """Return one line of prose and inline code: no links, no citation marks, no emphasis, no list or heading marks.

    Empty if nothing visible is left.
    """
    visible = "".join(character if character.isprintable() else " " for character in text)
    pieces = _CODE_OR_REST.split(_LINE_MARK.sub("", " ".join(visible.split())))
    return "".join(piece if index % 2 else _unmarked(piece) for index, piece in enumerate(pieces)).strip()


def literals(text: str) -> frozenset[str]:
    """Return the parts of a text that must be copied verbatim, in lower case.

    These are code between backticks as a whole, tags, mentions, and each word that is a number, an identifier, an
    address or a path.
    """
    text = _in_figures(text)
    prose = _CODE.sub(" ", text)
    marked = [*_CODE.findall(text), *_TAG.findall(prose)]
    special = [word for word in _words(prose) if _SPECIAL.search(word)]
    return frozenset(filter(None, (_plain(literal) for literal in (*marked, *special))))


def adds_literals(text: str, source: str) -> bool:
    """Return whether a text contains a command, number, identifier, address, mention or tag that its source does not.

    A number that has only other units in the source is another number.
    """
    measures, source_measures = _measures(text), _measures(source)
    if any(number in source_measures and not units <= source_measures[number] for number, units in measures.items()):
        return True
    source = _in_figures(source)
    words = {word.lower() for word in _words(source)}
    plain = _plain(source)
    return any(
        literal not in words and (_TOKEN.fullmatch(literal) or not stands_in(literal, plain))
        for literal in literals(text)
    )


def in_units_of(source: str, text: str) -> str:
    """Return the text with each duration as the source has it: “one hour” becomes “60 min” if the source says that."""
    source_measures = {(number, unit) for number, units in _measures(_in_figures(source)).items() for unit in units}
    spans = {_span(*each): " ".join(each) for each in source_measures if each[1] in _SCALES}

    def same(measure: re.Match[str]) -> str:
        each = measure[1], _SPELLED.get(measure[2], measure[2].lower())
        return measure[0] if each in source_measures or each[1] not in _SCALES else spans.get(_span(*each), measure[0])

    figures = _MEASURE.sub(same, _in_figures(_PARTLY.sub(_counted, text)))
    return figures if figures != _in_figures(text) else text


def _span(number: str, unit: str) -> float:
    """Return a duration in seconds; that of a number which is none is not comparable."""
    try:
        return round(float(number) * _SCALES[unit], 3)
    except ValueError:
        return -1.0


def _counted(match: re.Match[str]) -> str:
    whole, unit, more, longer, second, half, third = match.groups()
    if longer or more:
        return f"1.5 {second or unit}s"
    return f"0.5 {third}" if half else f"1 {unit}" if whole.lower() == "one" else match[0]


def wording(text: str) -> frozenset[str]:
    """Return the terms of a text without its measures, which are literals: “24h” is “24 hours”."""
    return frozenset(distinct_terms(_MEASURE.sub(" ", _in_figures(text))))


def oversteps(text: str, source: str) -> bool:
    """Return whether a text adds literals, or overstates (see `overstates`)."""
    return adds_literals(text, source) or overstates(text, source)


def overstates(text: str, source: str) -> bool:
    """Return whether a text states a confidence that its source does not, or notifies people.

    “I am sure”, a mention such as `@channel` and a chat's own markup count even if the source has them.
    """
    is_sure = _SURE.search(text) or _SUMMONS.search(text)
    return bool(is_sure or (_CONFIDENCE.search(text) and not _CONFIDENCE.search(source)))


def _unmarked(prose: str) -> str:
    """Remove marks until nothing changes, because removing one mark may reveal another."""
    before = ""
    while before != prose:
        before = prose
        prose = _EMPHASIS.sub("", _CITATION_MARK.sub("", _LINK.sub(r"\1", prose)))
    return prose


def _in_figures(text: str) -> str:
    """Return the text with a space before each unit, small numbers in figures, and no commas in large ones."""
    text = _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
    text = _NUMBER_WORD.sub(lambda word: _FIGURES[word[0].lower()], text)
    return _MEASURE.sub(r"\1 \2", text)


def _measures(text: str) -> dict[str, set[str]]:
    """Return the units of each number that has any."""
    units: dict[str, set[str]] = {}
    for measure in _MEASURE.finditer(text):
        unit = measure[2]
        units.setdefault(measure[1], set()).add(_SPELLED.get(unit, unit.lower()))
    return units


def _words(text: str) -> list[str]:
    return [word for token in _TOKEN.findall(text) if (word := token.strip(_EDGE))]


def stands_in(literal: str, plain: str) -> bool:
    """Return whether a text contains a literal, and not only as a part of a longer word."""
    before = r"(?<![\w-])" if literal[0].isalnum() else ""
    after = r"(?![\w-])" if literal[-1].isalnum() else ""
    return bool(re.search(f"{before}{re.escape(literal)}{after}", plain))


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(_EDGE)
