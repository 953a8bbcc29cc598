"""Text of a language model: made plain, without literals that its source does not contain, and its small words.

The small words decide the meaning of a sentence: negation, opposites, conditions, directions, obligations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from core.knowledge.markdown import LINK_TARGET
from core.knowledge.terms import distinct_terms, terms_of

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


_NEGATION = re.compile(
    r"\b(?:not(?! (?:only|more than|less than))|never|cannot|neither|nor|(?:nobody|nothing|none)(?! (?:but|except|other))|no longer|no(?= \w)(?! (?:more|less|fewer|later) than))\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:without|unless|except|fail\w*|ignor\w+|skip\w*|omit\w*|exclud\w+|prevent\w*|unable|impossible|unsupported"
    r"|invalid|missing|lack\w*|refus\w+|reject\w*|den(?:y|ies|ied)|forbid\w*|disabl\w+|unset|absent|avoid\w*|stop\w*"
    r"|instead of|rather than|only|too|unaffected|unchanged|disallow\w*|prohibit\w*|leav\w+|keep\w*|kept)\b",
    re.IGNORECASE,
)
_OPPOSITES = [
    ("enable", "disable"), ("enabled", "disabled"), ("allow", "deny"), ("allowed", "denied"), ("allows", "denies"),
    ("allow", "forbid"), ("increase", "decrease"), ("increase", "reduce"), ("raise", "lower"), ("raises", "lowers"),
    ("before", "after"), ("above", "below"), ("minimum", "maximum"), ("min", "max"), ("true", "false"), ("on", "off"),
    ("include", "exclude"), ("includes", "excludes"), ("optional", "required"), ("optional", "mandatory"),
    ("synchronous", "asynchronous"), ("first", "last"), ("oldest", "newest"), ("more", "less"), ("more", "fewer"),
    ("add", "remove"), ("adds", "removes"), ("start", "stop"), ("starts", "stops"), ("open", "close"),
    ("internal", "external"), ("public", "private"), ("automatic", "manual"), ("automatically", "manually"),
    ("always", "never"), ("encrypted", "unencrypted"), ("read", "write"), ("create", "delete"), ("creates", "deletes"),
    ("upgrade", "downgrade"), ("success", "failure"), ("succeeds", "fails"), ("healthy", "unhealthy"), ("with", "without"),
    ("keep", "delete"), ("keeps", "deletes"), ("kept", "deleted"), ("temporary", "permanent"), ("inside", "outside"),
    ("push", "pull"), ("upstream", "downstream"), ("client", "server"), ("supported", "unsupported"), ("least", "most"),
    ("higher", "lower"), ("single", "multi"), ("single", "multiple"), ("greater", "less"), ("ascending", "descending"), ("global", "local"), ("older", "newer"),
]  # fmt: skip
_OPPOSED_STEMS = {tuple(next(iter(terms_of(word)), word) for word in pair) for pair in _OPPOSITES}
_WORD = re.compile(r"[^\W_]+")

EXCEPTIONS = frozenset({"unless", "except"})
RESTRICTIONS = frozenset({"unless", "only", "except", "until", "provided", "as long as", "before", "after", "with"})
_CONDITION = re.compile(
    r"\b(unless|only(?= (?:if|when|for|in|on|with|after|before|during|by|from)\b)|except|until|provided|as long as"
    r"|(?:(?<=^)|(?<=, ))(?:before|after)|if|when|with(?= [\w-]+ (?:en|dis)abled\b))\b([^,.;:()]{2,120})",
    re.IGNORECASE,
)

_DIRECTION = re.compile(
    r"\b(from|to|into|before|after|instead of|rather than|than|over|by)\s+(?:the |a |an |its |your )?(`[^`]+`|[\w./:-]+)",
    re.IGNORECASE,
)
_OPPOSED = {
    "from": {"to", "into"}, "to": {"from"}, "into": {"from"}, "before": {"after"}, "after": {"before"},
}  # fmt: skip
_INSTEAD = frozenset({"instead of", "rather than"})

_MUST = re.compile(r"\b(?:must|have to|has to|required?|requires|mandatory|needs? to)\b", re.IGNORECASE)
_MAY = re.compile(r"\b(?:may|might|could|optional(?:ly)?|sometimes|usually|often|typically)\b", re.IGNORECASE)
_ALL = re.compile(
    r"\b(?:always|only|never|every\w*|all|each|any\w*|whole|just|solely|exclusively|entire\w*|both|no|not|must)\b|n['’]t\b",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(r"(?<!not )\b(?:always|only(?! then)|every)\b", re.IGNORECASE)
_CONCESSION = re.compile(
    r"\b(?:even (?:if|when|though|after|before)|whether or not|regardless|no matter|in any case|without (?:any|first))\b",
    re.IGNORECASE,
)
_CONCEDED = re.compile(r"\b(?:even|whether|regardless|no matter|any\w*|always|all|without)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"(?<!not )\b(?:only|solely|exclusively|except|unless|nobody|no one|no other|limited|restricted|alone)\b",
    re.IGNORECASE,
)
_LOOSE_LIMIT = re.compile(
    r"\b(?:(?<!even )(?:if|when)|once|just|single|none|nothing|must|has to|have to|until|before|not)\b|n['’]t\b",
    re.IGNORECASE,
)
_PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+\s+)?\w+(?:ed|en|wn|nt|de|ld|ought)\b|\bby\b", re.IGNORECASE
)
_LINKS = frozenset("a an and as at for in of on or the with".split())
_PROPER = re.compile(r"(?<=[\w,;] )[A-Z][a-z]+(?:[A-Z]\w*)?\b")


def is_negative(text: str) -> bool:
    """Return whether a clause is negative. An even number of negations cancels out."""
    return len(_NEGATION.findall(text)) % 2 == 1


def contradicts(clause: str, source: str) -> bool:
    """Return whether a clause has the opposite of a word that the source has, and not that word itself."""
    ours, theirs = _stems(clause), _stems(source)
    return any(
        (a in ours and b in theirs and b not in ours and a not in theirs)
        or (b in ours and a in theirs and a not in ours and b not in theirs)
        for a, b in _OPPOSED_STEMS
    )


def softens(text: str) -> bool:
    """Return whether a clause denies in other words than a negation: “ignored” is “not read”."""
    return bool(_WEAK.search(text))


def conditions(statement: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each condition of a statement: the word that introduces it, in lower case, and its terms."""
    for match in _CONDITION.finditer(statement):
        yield match[1].lower(), distinct_terms(match[2])


def unconditional(text: str) -> str:
    """Return a text without its conditions."""
    return _CONDITION.sub(" ", text)


def limits(text: str, *, loosely: bool = False) -> bool:
    """Return whether a text limits what it says to some: “only members”, “nobody but”; loosely, “must not”, “once”."""
    return bool(_LIMIT.search(text)) or (loosely and bool(_LOOSE_LIMIT.search(text)))


def swaps(clause: str, source: str) -> bool:
    """Return whether two names stand on the other sides of the same word than in the source, neither of both passive."""
    if bool(_PASSIVE.search(clause)) != bool(_PASSIVE.search(source)):
        return False
    ours, theirs = _once(clause), _once(source)
    place = {word.lower(): number for number, word in enumerate(theirs)}
    named = {word.lower() for word in (*ours, *theirs) if word[:1].isupper()} & place.keys()
    shared = [(word.lower(), place[word.lower()]) for word in ours if word.lower() in place]
    for middle, (word, there) in enumerate(shared):
        if word in named or word in _LINKS:
            continue
        before = [at for name, at in shared[:middle] if name in named]
        after = [at for name, at in shared[middle + 1 :] if name in named]
        if any(at > there for at in before) and any(at < there for at in after):
            return True
    return False


def _once(text: str) -> list[str]:
    """Return the words that occur once in a text, in order."""
    counted = Counter(word.lower() for word in _WORD.findall(text))
    return [word for word in _WORD.findall(text) if counted[word.lower()] == 1]


@dataclass(frozen=True, slots=True)
class Directions:
    """The names in a clause by the preposition before them, as (preposition, name)."""

    pairs: frozenset[tuple[str, str]]
    others: frozenset[str]

    def reverses(self, source: Directions) -> bool:
        """Return whether a name has the opposite preposition here, and never the same one as in `source`."""
        return any(
            (other, name) in source.pairs and (word, name) not in source.pairs
            for word, name in self.pairs
            for other in _OPPOSED.get(word, ())
        ) or any(
            word in _INSTEAD and name not in source.instead and source.instead & self.others
            for word, name in self.pairs
        )

    @property
    def instead(self) -> frozenset[str]:
        """Return the names that something else is used instead of."""
        return frozenset(name for word, name in self.pairs if word in _INSTEAD)


def directions(clause: str) -> Directions:
    """Return the directions of a clause."""
    pairs = frozenset((match[1].lower(), _name(match[2])) for match in _DIRECTION.finditer(clause))
    return Directions(pairs, frozenset(_word_set(clause)) - {name for _, name in pairs})


def exaggerates(text: str, source: str) -> bool:
    """Return whether a text demands what the source only permits, or speaks of all where the source does not."""
    return bool(
        (_MUST.search(text) and _MAY.search(source) and not _MUST.search(source))
        or (_CONCESSION.search(text) and not _CONCEDED.search(source))
        or (_ABSOLUTE.search(text) and not _ALL.search(source))
    )


def names(sentence: str) -> frozenset[str]:
    """Return the capitalised words within a sentence, in lower case: names of products, teams and places."""
    return frozenset(match.lower() for match in _PROPER.findall(sentence))


def _name(text: str) -> str:
    bare = text.strip("`.").lower()
    return next(iter(terms_of(bare)), bare)


def _stems(text: str) -> frozenset[str]:
    return frozenset(next(iter(terms_of(word)), word) for word in _word_set(text))


def _word_set(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))
