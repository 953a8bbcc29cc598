"""The small words that decide the meaning of a sentence: negation, opposites, conditions, directions, obligations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from core.knowledge.terms import distinct_terms, terms_of

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
    return Directions(pairs, frozenset(_words(clause)) - {name for _, name in pairs})


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
    return frozenset(next(iter(terms_of(word)), word) for word in _words(text))


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))
