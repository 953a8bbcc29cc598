"""Text of a language model: made plain, and compared with its source in what can be compared exactly.

These are numbers with their units, commands, identifiers, addresses and names. Meanings are left to a judge.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from core.answering.quantities import adds_quantities, quantities
from core.knowledge.markdown import LINK_TARGET
from core.knowledge.terms import STOP_WORDS, distinct_terms, terms, terms_of

_CODE = re.compile(r"(?<!`)`++([^`]++)`+")
_CODE_OR_REST = re.compile(r"(`[^`]+`)")
_LINK = re.compile(rf"!?\[([^\[\]]*)\]{LINK_TARGET}")
_CITATION_MARK = re.compile(r"(?:(?<!\s)\s++)?[\[【]\s*+\d{1,3}(?:\s*,\s*\d{1,3})*\s*[\]】]")
_LINE_MARK = re.compile(r"^\s*(?:#{1,6}|>+|[-*+•]|\|)\s+")
_EMPHASIS = re.compile(r"\*+|~~|(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)")

_TAG = re.compile(r"<[^<>]*>")
_TOKEN = re.compile(r"[^\s`'\"‘’“”()\[\]{}<>|,;]+")
_EDGE = ".:!?*_~…"
_PLACEHOLDER = re.compile(r"<[^<>]+>|\$?\{?[A-Z][A-Z_]+\}?|\{[\w-]+\}")
_SPECIAL = re.compile(r"\d|_|[a-z][A-Z]|[A-Z]{2}[a-z]{2}|^/|\w[.:/@=&\\]+\w\w|://|^--?\w|@")

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
    """Return the parts of a text that must be copied verbatim, in lower case, without numbers.

    These are code between backticks as a whole, tags, mentions, and each word that is an identifier, an address or a path.
    """
    prose = quantities(_CODE.sub(" ", text))[1]
    marked = [*_CODE.findall(text), *_TAG.findall(prose)]
    special = [word for word in _words(prose) if _SPECIAL.search(word)]
    return frozenset(filter(None, (_plain(literal) for literal in (*marked, *special))))


def adds_literals(text: str, source: str, *, only_times: bool = False) -> bool:
    """Return whether a text contains a command, number, identifier, address, mention or tag that its source does not.

    Numbers are compared in their units and to the precision that was written; with `only_times`, of them only times of day. A
    word of the source fills a placeholder of a command (`SERVICE`, `<name>`).
    """
    if adds_quantities(_CODE.sub(" ", text), source, only_times=only_times):
        return True
    words = {word.lower() for word in _words(source)}
    plain = _plain(source)
    return any(
        literal not in words
        and not stands_in(literal, plain)
        and not words.issuperset(literal.split("/"))
        and not _fills(literal, source, words)
        for literal in literals(text)
    )


def _fills(command: str, source: str, words: Collection[str]) -> bool:
    """Return whether a command is one of the source, in whose placeholders words of the source stand."""
    parts = command.split()
    lines = [line.replace("`", " ").split() for line in source.splitlines() if parts[0] in line.lower()]
    runs = [own[start : start + len(parts)] for own in lines for start in range(len(own) - len(parts) + 1)]
    return len(parts) > 1 and any(
        not _PLACEHOLDER.fullmatch(run[0])
        and all(
            given == each.lower().strip(_EDGE) or (_PLACEHOLDER.fullmatch(each) and given in words)
            for given, each in zip(parts, run, strict=True)
        )
        for run in runs
    )


def adds_addresses(text: str, source: str) -> bool:
    """Return whether a text contains an address of a page or of mail, or a mention, that its source does not."""
    return any(
        not stands_in(word.lower(), _plain(source))
        for word in _words(text)
        if any(mark in word for mark in ("://", "www.", "@"))
    )


def wording(text: str) -> frozenset[str]:
    """Return the terms of a text without its numbers, which are compared as such: “24h” is “24 hours”."""
    return distinct_terms(quantities(text)[1])


def oversteps(text: str, source: str, *, only_times: bool = False) -> bool:
    """Return whether a text adds literals (see `adds_literals`), or overstates (see `overstates`)."""
    return adds_literals(text, source, only_times=only_times) or overstates(text, source)


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


def _words(text: str) -> list[str]:
    return [word for token in _TOKEN.findall(text) if (word := token.strip(_EDGE))]


def stands_in(literal: str, plain: str) -> bool:
    """Return whether a text contains a literal, and not only as a part of a longer word, name or path."""
    before = r"(?<![\w.-])" if literal[0].isalnum() else ""
    after = r"(?![\w-]|[./:]\w)" if literal[-1].isalnum() else ""
    return bool(re.search(f"{before}{re.escape(literal)}{after}", plain))


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).strip(_EDGE)


_NEGATION = re.compile(
    r"\b(?:not(?! (?:only|more than|less than))|never|cannot|neither|nor|(?:nobody|nothing|none)(?! (?:but|except|other))|no longer|no(?= \w)(?! (?:more|less|fewer|later) than))\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
_PROPER = re.compile(r"(?<=[\w,;] )[A-Z][a-z]+(?:[A-Z]\w*)?\b|(?<![\w/.-])[A-Z]{2,}\b(?![\w/.-])")


def is_negative(text: str) -> bool:
    """Return whether a clause is negative. An even number of negations cancels out."""
    return len(_NEGATION.findall(text)) % 2 == 1


def affirmed(text: str) -> str:
    """Return a text without its negations."""
    return _NEGATION.sub(" ", text)


def adds_names(sentence: str, source: str) -> bool:
    """Return whether a capitalised word within a sentence names what its source does not, not even as initials."""
    names = {name.lower() for name in _PROPER.findall(_CODE.sub(" ", sentence))} - STOP_WORDS
    words = _WORD.findall(source.lower()) if names else []
    vocabulary, initials = {*words, *terms(source)}, "".join(word[0] for word in words)
    return any(not vocabulary.intersection((name, *terms_of(name))) and name not in initials for name in names)
