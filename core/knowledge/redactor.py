"""Remove names and secrets from documents before they are indexed.

Names, user names and e-mail addresses of people whom a source knows become “Person 1”, “Person 2”, … in order of
appearance, with one number per person in a document. Any other e-mail address becomes “[e-mail]”, a telephone number
that is marked as one “[phone]”, and a password, key or token “[secret]”. Addresses of machines (IP, host, `user@host`
in a command) are kept, because runbooks are about them. So is everything that only looks like one of these:
identifiers, commands, versions, hashes of commits and images, and references to the location of a secret. Names of
people whom no source and no setting names are not searched for, because a guess would damage more runbooks than it
would protect people.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote

from core.knowledge.names import People, mentions, roster, without_overlap
from core.model.document import Document
from core.ports import SecretDetector

VERSION = "redaction-6"  # increased when these rules or those of readers change, so that documents are read again
BEYOND = 2_000  # characters redacted beyond the limit, so that a secret cut by the limit is still recognised

Redact = Callable[[Document], Document]


class SensitiveKind(StrEnum):
    SECRET = "secret"  # noqa: S105 — the kind of a finding
    EMAIL = "e-mail"
    PHONE = "phone"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class SensitiveSpan:
    """A part of a text that must not be indexed, from `start` to `end`. `person` is the index of a known person."""

    start: int
    end: int
    kind: SensitiveKind
    person: int | None = None


class Redactor:
    """Replaces text that must not be indexed. `names` are people whom no source knows, configured by the operator."""

    def __init__(self, secrets: SecretDetector, names: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._configured: People = tuple((name,) for name in names)

    def __call__(self, document: Document) -> Document:
        """Return the document without names, addresses and secrets, and without the people who were in it."""
        named = {name.casefold() for names in document.people for name in names}
        # A person whom the source also knows is not counted twice.
        people = (*(names for names in self._configured if names[0].casefold() not in named), *document.people)
        numbers = dict[int, int]()

        def redacted(text: str) -> str:
            return _replaced(text, self.findings(text, people), numbers)

        return replace(
            document,
            title=redacted(document.title),
            text=redacted(document.text),
            owner=redacted(document.owner),
            people=(),
        )

    def findings(self, text: str, people: People) -> list[SensitiveSpan]:
        """Return the parts of a text to replace, in order, without overlaps."""
        return without_overlap(self._candidates(text, people), len(text))

    def _candidates(self, text: str, people: People) -> Iterator[SensitiveSpan]:
        """Yield candidates, the most sensitive first."""
        for start, end in self._secrets.find(text):
            yield SensitiveSpan(start, end, SensitiveKind.SECRET)
        owners = roster(people).addresses
        for start, end in addresses(text):
            yield SensitiveSpan(start, end, SensitiveKind.EMAIL, owners.get(unquote(text[start:end]).lower()))
        for start, end in telephone_numbers(text):
            yield SensitiveSpan(start, end, SensitiveKind.PHONE)
        for mention in mentions(text, people):
            yield SensitiveSpan(mention.start, mention.end, SensitiveKind.NAME, mention.person)


def _replaced(text: str, findings: Iterable[SensitiveSpan], numbers: dict[int, int]) -> str:
    """Return the text with placeholders. `numbers` are those of the people in the document so far."""
    pieces, end = list[str](), 0
    for finding in findings:
        pieces.append(text[end : finding.start])
        if finding.person is None:
            pieces.append(f"[{finding.kind}]")
        else:
            pieces.append(f"Person {numbers.setdefault(finding.person, len(numbers) + 1)}")
        end = finding.end
    return "".join((*pieces, text[end:]))


_LOCAL = r"\w[\w.+%-]*"
_DOMAIN = r"(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,}"
_ADDRESS = re.compile(rf"(?<![\w.+%/@-])(?:mailto:)?(?P<address>{_LOCAL}@{_DOMAIN})(?![\w@-]|:\S|\.\w)")
_AFTER_MAILTO = re.compile(r"(?<=mailto:)\w[\w.+%-]*@[\w.-]+[^\W\d_]")
_URL = re.compile(r"https?://[^\s/@]+(?P<path>[/?#][^\s<>()\[\]\"'`]*)")
_IN_URL = re.compile(rf"(?<=[/=:,;&?#])\w(?:[\w.+-]|%2B)*(?<!\.git)(?:@|%40)(?!\d+\.\d){_DOMAIN}(?![\w@-])")
_USERINFO_BEFORE = re.compile(r"://[^\s/@]*$")
_MACHINE = re.compile(
    r"^git@|\.(?:service|socket|timer|target|mount|device|slice|scope|path|swap|gserviceaccount\.com)$", re.IGNORECASE
)
_LOGIN_BEFORE = re.compile(r"(?:^|[\s`(])(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id)\b[^\n|;]*$")

_INTERNATIONAL = re.compile(r"(?<![\w.+=-])\+\d{1,3}(?:[ .-]?\(?\d{1,4}\)?){2,6}(?![\w-])")
_MARKED = re.compile(
    r"(?:\b(?:tel|phone|mobile|cell|fax|call|handy|telefon)\b(?:\.| is| no\.?| number)?:? *)"
    r"(?P<number>\(?\d{2,4}\)?[ /.-]?\d{2,4}(?:[ .-]?\d{2,4}){1,3})(?![\w-])",
    re.IGNORECASE,
)
LOGIN_COMMAND = 120  # characters between the start of a command and its login name
MIN_DIGITS = 8  # of a telephone number


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each e-mail address, including those in the path and the query of a URL.

    Systemd units, service accounts, and logins in commands and URLs are not e-mail addresses.
    """
    for match in _ADDRESS.finditer(text):
        before = text[max(0, match.start() - LOGIN_COMMAND) : match.start()]
        is_login = _LOGIN_BEFORE.search(before) or _USERINFO_BEFORE.search(before)
        if not _MACHINE.search(match["address"]) and not is_login:
            yield match.span("address")
    for match in _AFTER_MAILTO.finditer(text):
        yield match.span()
    for url in _URL.finditer(text):
        for match in _IN_URL.finditer(text, *url.span("path")):
            if not _MACHINE.search(match[0]):
                yield match.span()


def telephone_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each number with a country prefix (+), or after a word such as “phone”."""
    for match in (*_INTERNATIONAL.finditer(text), *_MARKED.finditer(text)):
        start, end = match.span("number" if match.re is _MARKED else 0)
        if sum(character.isdigit() for character in text[start:end]) >= MIN_DIGITS:
            yield start, end


def without_redaction(document: Document) -> Document:
    """Return the document unchanged, for a single user who may see everything."""
    return document


def redacted(text: str, redact: Redact) -> str:
    """Return the redacted text."""
    return redact(Document("", "", "", "", text)).text if text else ""


def redacted_beginning(text: str, limit: int, redact: Redact) -> str:
    """Return the first `limit` characters of a long text, redacted.

    Some text beyond the limit is redacted too, because a truncated secret would not be recognised.
    """
    return redacted(text[: limit + BEYOND], redact)[:limit]
