"""Find the names of known people in a text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, TypeVar

WORD_NAMES = frozenset(
    """
    ace amber angel art ash autumn basil bay bill bob brook buck buddy bud carol chance chase chip christian cliff clay
    crew dale dash dawn daisy dean dee dell desire dot drew duke dusty earl early ellis eve faith fern flint forest frank
    frost gale gay gene ginger glen golden grace grant guy hale harmony harper harry hazel heath heather hope hunter iris
    ivy jack jade jasmine jay jean jewel jo joy june justice kit lance lane lark laurel leaf lee len levy lily link lou
    love mac major man mark mars marsh mason mel mercy mike miles minh mo myrtle nick noble noel nova olive opal
    page pat patience pearl penny pepper peter piper pierce porter prince rain ray read red reed rex rich rick rob robin
    rocky rod roman rose rowan royal rush rusty sage sal sandy scout shade sky skip sol sonny spencer star stone storm
    sue summer sunny sunshine tab tad taylor ted teal tim tom trace true tucker van victor violet wade walker ward warren
    wayne west wilder will win winter wood woody wren young
    admin bot ci deploy guest oncall ops owner release root service support system test user
    """.split()
)
"""Given names and user names that are English words. A capital within a sentence makes them a name."""

PRODUCT_NAMES = frozenset(
    """
    ada alexa alloy apollo april argo asana athena august aurora austin avro beats bamboo bazel boston
    cassandra chef clair claude clojure cortana crystal dallas dart delphi denver devin django druid elixir
    elm emacs falco flux geneva gerrit gin go hera houston hudson hugo iris ivy jaeger jan jasmine jasper java
    jenkins jira julia june kafka karma kepler kylin lima loki london luigi lua lucene luna lynx madison
    magnolia mariadb marvin maven mercury mesos michelangelo milan milo mimir max min mocha monty nova orion pan
    pandora paris pascal perl phoenix pino piper prometheus puppet python ray rasa redis rocky ruby rust salt
    scala selenium sentry serena siri sonar sydney tempo thanos titan travis trino turing vault vienna
    virginia vue zuul baker banks bell bishop black brown bush case carpenter church cloud cole cook cross day
    dean dyer farmer field fields fisher flowers ford foster fox friend gardner gates good grant gray green
    hall hand hart head hill hook host hooks house hunt hunter key king knight lamb law little lock long love
    mann marsh mason may mercer mill miller mills moon moore nash null page palmer park parks parsons pipes
    pool poole pope porter post potter power price rich rivers rock root roots rowe rule sanders shepherd
    short singer small smart snow song speed spring steel stock street strong swift table taylor teller temple
    test tower turner tyler vale waters weaver webb webber white wise wolf wong wood woods workman worth
    wright young
    """.split()
)
"""Products, places, months and words that are also names. Only the context of a person makes them a name."""


People = tuple[tuple[str, ...], ...]
"""For each person, the names, user names and e-mail addresses that a source knows."""

Words = tuple[str, ...]

MIN_HANDLE = 3  # characters of a user name; a shorter one is recognised only after an @
MIN_LOWER_CASE = 3  # letters of a given name that is recognised in lower case
MIN_GENITIVE = 4  # letters of a name whose genitive without an apostrophe is recognised: “Ashas Rechner”

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_HANDLE = re.compile(r"(?<![\w@.+-])@?(?P<name>\w(?:[\w.+-]*\w)?)(?!-?\w|@)")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_CASELESS = re.compile(r"[^\W\d_a-zA-Z\u0100-\u058f\u10a0-\u10ff]{2,}")  # scripts without capitals, such as CJK
_LATIN = {
    code: base
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
    if (base := unicodedata.normalize("NFD", chr(code))[0]).isascii() and base.isalpha()
}
"""Letters without their diacritics, as names are often written; the length of the text stays the same."""

# “Asha Brandt (she/her)”, “Asha Brandt | Payments”
_ADDENDUM = re.compile(r"(?:(?<!\s)\s++)?(?:[(\[|/–—]|(?<=\s)-\s).*", re.DOTALL)
_WITHIN_NAME = frozenset((*" \t._+-,", "%20", ", ", ". "))  # between two words of one name
_IDENTIFIER_AFTER = re.compile(r"^(?:[\w/\\(=@]|-(?!san\b|sama\b|kun\b|chan\b|ssi\b|nim\b|ji\b)\w|\.\w|:\w)")
_LAST_OF_PATH = re.compile(r"(?<![^\W\d_])[^\W\d_]++/$")
_OPTION_BEFORE = re.compile(r"(?:^|\s)--?[a-z][\w-]*[ =]$")
_NO_PERSON_AFTER = (  # the signs of an identifier, and the words before a place
    *"_/\\.#$%&=-",
    *(f"{word} " for word in "San Santa Saint St St. Port Mount Lake Fort New".split()),
)

_ADDRESSED = re.compile(
    r"(?:^|[\s(>*])(?:thanks|thank you|thx|ty|cheers|hi|hey|hello|dear|morning|sorry|welcome|congrats|"
    r"ping(?:ing|ed)?|cc|ask(?:ed|ing)?|tell|told)[:,]? +$",
    re.IGNORECASE,
)
_ASKED_TO = re.compile(r"^, *(?:can|could|would|will|please|pls|do|did|are|have|any)\b")
_SPEAKS = re.compile(
    r"^ (?:said|says|think|thinks|thought|wrote|writes|told|asked|asks|suggested|suggests|mentioned|knows|agrees|agreed|"
    r"replied|reckons|joined|is on call|is out|is away|is on holiday|is on leave|owns|maintains)\b"
)
_ACTS = re.compile(
    r"^(?:['’]s\b|: *\S| (?:restarted|rolled|drained|deployed|reviewed|merged|pushed|fixed|approved|confirmed|noticed|"
    r"reported|found|took|left|moved|wants|tried|comes back|is back|is looking|and I)\b)"
)
_LOWER_CASE_BEFORE = re.compile(r"(?<![^\W\d])(?P<word>[a-z]+),? $")
_NO_NAME_AFTER = frozenset("a an the this that these each every on in at of by see our your no any".split())


class Span(Protocol):
    """A part of a text, from `start` (inclusive) to `end` (exclusive)."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


S = TypeVar("S", bound=Span)


def without_overlap(spans: Iterable[S], length: int) -> list[S]:
    """Return the spans of a text of this length in order, without those that overlap one given earlier."""
    taken = bytearray(length)
    kept = list[S]()
    for span in spans:
        if not any(taken[span.start : span.end]):
            taken[span.start : span.end] = b"\x01" * (span.end - span.start)
            kept.append(span)
    return sorted(kept, key=lambda span: span.start)


@dataclass(frozen=True, slots=True)
class Mention:
    """A person, by index in `People`, who is named from `start` to `end`."""

    start: int
    end: int
    person: int


def mentions(text: str, people: People) -> list[Mention]:
    """Return the mentions of the people, in order, without overlaps.

    Full names and user names are found anywhere, even in code. A single given or family name is found only in prose,
    and not as part of an identifier.
    """
    if not people:
        return []
    return without_overlap(_candidates(text.translate(_LATIN), roster(people)), len(text))


@lru_cache(maxsize=64)
def roster(people: People) -> Roster:
    """Return the ways in which these people may be named."""
    result = Roster()
    for number, names in enumerate(people):
        for name in names:
            result.add(name, number)
    return result


@dataclass(slots=True)
class Roster:
    """The names of people.

    `sequences` are those of several words, by first word. Keys are lower-case ASCII if Latin.
    """

    sequences: dict[str, list[tuple[Words, int]]] = field(default_factory=dict[str, list[tuple[Words, int]]])
    given: dict[str, int] = field(default_factory=dict[str, int])
    family: dict[str, int] = field(default_factory=dict[str, int])
    handles: dict[str, int] = field(default_factory=dict[str, int])
    addresses: dict[str, int] = field(default_factory=dict[str, int])
    caseless: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, name: str, person: int) -> None:
        name = _ADDENDUM.sub("", name.translate(_LATIN)).strip().removeprefix("@")
        if "@" in name:
            self._add_address(name.lower(), person)
        elif _CASELESS.search(name):
            self._add_caseless(name, person)
        elif len(name.split()) > 1:
            self._add_full(name, person)
        elif name[:1].isupper() and name.isalpha():
            self.given.setdefault(name.lower(), person)
        elif len(words := _words(name)) > 1 and name[:1].isupper() and name.replace("-", "").isalpha():
            self._add_sequence(words, person)
        elif len(name) >= MIN_HANDLE:
            self.handles.setdefault(name.lower(), person)

    def _add_address(self, address: str, person: int) -> None:
        self.addresses.setdefault(address, person)
        local = address.partition("@")[0]
        if not local.isalpha():
            self.handles.setdefault(local, person)

    def _add_caseless(self, name: str, person: int) -> None:
        parts = name.split()
        for form in ("".join(parts), name, *(part for part in parts[:1] if len(part) > 1)):
            self.caseless.setdefault(form, person)

    def _add_full(self, name: str, person: int) -> None:
        last, comma, first = name.partition(",")
        parts = f"{first} {last}".split() if comma else name.split()
        capitalised = [part for part in parts if part[:1].isupper()] or parts
        givens, family = capitalised[:-1], capitalised[-1]
        self._add_sequence(_words(" ".join(parts)), person)
        self._add_sequence(_words(f"{family} {' '.join(givens)}"), person)
        if givens:
            self._add_sequence(_words(f"{givens[0]} {family}"), person)
            self._add_sequence(_words(f"{givens[0][0]} {family}"), person)
        for part in givens:
            self._add_single(self.given, part, person)
        self._add_single(self.family, family, person)
        if len(parts) > len(capitalised):  # “van der Berg”, “el Amin”
            self._add_sequence(_words(" ".join(parts[len(givens) :])), person)

    def _add_single(self, names: dict[str, int], part: str, person: int) -> None:
        words = _words(part)
        if len(words) > 1:
            self._add_sequence(words, person)
        elif words and len(words[0]) > 1:
            names.setdefault(words[0], person)

    def _add_sequence(self, words: Words, person: int) -> None:
        if len(words) > 1:
            self.sequences.setdefault(words[0], []).append((words, person))


def _words(name: str) -> Words:
    return tuple(match[0].lower() for match in _WORD.finditer(name))


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    text: str

    @property
    def key(self) -> str:
        return self.text.lower()


def _candidates(text: str, people: Roster) -> Iterator[Mention]:
    """Yield candidates, the most certain first."""
    tokens = [_token(match) for match in _WORD.finditer(text)]
    yield from _sequences(text, tokens, people)
    yield from _handles(text, people)
    if people.caseless:
        forms = sorted(people.caseless, key=len, reverse=True)
        for match in re.finditer("|".join(map(re.escape, forms)), text):
            yield Mention(match.start(), match.end(), people.caseless[match[0]])
    yield from _singles(text, tokens, people)


def _token(match: re.Match[str]) -> _Token:
    text = match[0].removesuffix("'s").removesuffix("’s")
    return _Token(match.start(), match.start() + len(text), text)


def _sequences(text: str, tokens: list[_Token], people: Roster) -> Iterator[Mention]:
    sequences = list[Mention]()
    for index, token in enumerate(tokens):
        for words, person in people.sequences.get(token.key, ()):
            run = tokens[index : index + len(words)]
            if tuple(item.key for item in run) == words and _is_one_name(text, run):
                sequences.append(Mention(_with_at(text, token.start), run[-1].end, person))
    yield from sorted(sequences, key=lambda mention: mention.start - mention.end)


def _is_one_name(text: str, run: list[_Token]) -> bool:
    gaps = [text[left.end : right.start] for left, right in pairwise(run)]
    may_begin = len(run[0].text) > 1 or gaps[0] in (". ", ".")  # an initial needs a dot
    return may_begin and _WITHIN_NAME.issuperset(gaps)


def _handles(text: str, people: Roster) -> Iterator[Mention]:
    for match in _HANDLE.finditer(text):
        person = people.handles.get(match["name"].lower())
        if person is None:
            continue
        if match[0].startswith("@") or match["name"].lower() not in WORD_NAMES | PRODUCT_NAMES:
            yield Mention(match.start(), match.end(), person)


def _singles(text: str, tokens: list[_Token], people: Roster) -> Iterator[Mention]:
    code = {position for match in _CODE.finditer(text) for position in range(*match.span())}
    names = people.given.keys() | people.family.keys()
    tokens = [_nominative(token, names) for token in tokens]
    starts = {token.start for token in tokens if token.key in names}
    for token in tokens:
        if token.start not in starts or token.start in code:
            continue
        before, after = _around(text, token, starts)
        if before[-1:].isalnum() or before.endswith(_NO_PERSON_AFTER) or _IDENTIFIER_AFTER.match(after):
            continue
        person = _person(token, before, after, people)
        if person is not None:
            yield Mention(_with_at(text, token.start), token.end, person)


def _nominative(token: _Token, names: set[str]) -> _Token:
    """Return the token without a genitive s: “Ashas Rechner” belongs to Asha."""
    name = token.text[:-1]
    is_genitive = (
        token.text.endswith("s")
        and token.key not in names
        and name.lower() in names - WORD_NAMES - PRODUCT_NAMES
        and name.istitle()
        and len(name) >= MIN_GENITIVE
    )
    return replace(token, text=name) if is_genitive else token


def _around(text: str, token: _Token, starts: set[int]) -> tuple[str, str]:
    """Return the text before and after. The slash in “Asha/Mateo” separates two names and is not a path."""
    before, after = text[max(0, token.start - 40) : token.start], text[token.end : token.end + 40]
    if after.startswith("/") and token.end + 1 in starts:
        after = " " + after[1:]
    if before.endswith("/"):
        word = _LAST_OF_PATH.search(before)
        if word and token.start - len(word[0]) in starts:
            before = before[:-1] + " "
    return before, after


def _person(token: _Token, before: str, after: str, people: Roster) -> int | None:
    """Return the person that a single word names in this context; None if it names nobody."""
    key, is_mention = token.key, before.endswith("@")
    person = people.given.get(key)
    is_given = person is not None
    if person is None:
        person = people.family.get(key)
    if is_mention:
        return person
    if key in PRODUCT_NAMES or (not is_given and key in WORD_NAMES):
        return person if token.text[0].isupper() and _is_talked_of(before, after) else None
    is_capitalised = token.text[0].isupper() and token.text[1:].islower()
    if key in WORD_NAMES:
        return person if is_capitalised and _is_name_here(before, after) else None
    if is_capitalised:
        return person
    may_be_lower = is_given and len(key) >= MIN_LOWER_CASE and token.text.islower()
    return person if may_be_lower and not _OPTION_BEFORE.search(before) else None


def _is_talked_of(before: str, after: str) -> bool:
    return bool(_ADDRESSED.search(before) or _ASKED_TO.match(after) or _SPEAKS.match(after))


def _is_name_here(before: str, after: str) -> bool:
    if _is_talked_of(before, after) or _ACTS.match(after):
        return True
    word = _LOWER_CASE_BEFORE.search(before)
    return word is not None and word["word"] not in _NO_NAME_AFTER


def _with_at(text: str, start: int) -> int:
    return start - 1 if text[start - 1 : start] == "@" else start
