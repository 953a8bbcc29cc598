"""The removal of names, addresses and secrets from documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote

from core.knowledge.privacy.contacts import addresses, telephone_numbers
from core.knowledge.privacy.names import People, mentions, roster, without_overlap
from core.model.document import Document
from core.ports import SecretDetector

VERSION = "redaction-1"  # whoever changes the rules raises it: what was indexed by the old ones is read again


class FindingKind(StrEnum):
    SECRET = "secret"  # noqa: S105 — the kind of a finding
    EMAIL = "e-mail"
    PHONE = "phone"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Finding:
    """A stretch of text that must not be indexed, from `start` to `end`. `person` is set for a name or address of somebody known."""

    start: int
    end: int
    kind: FindingKind
    person: int | None = None


class Redactor:
    """Replaces what must not be indexed. `names` are people whom no source knows: configured by the operator."""

    def __init__(self, secrets: SecretDetector, names: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._configured: People = tuple((name,) for name in names)

    def __call__(self, document: Document) -> Document:
        """Return the document without names, addresses and secrets, and without the people who were in it."""
        named = {name.casefold() for names in document.people for name in names}
        # Whom the source knows too is one person.
        people = (*(names for names in self._configured if names[0].casefold() not in named), *document.people)
        numbers = dict[int, int]()

        def redacted(text: str) -> str:
            return _replaced(text, self.findings(text, people), lambda person: _number(numbers, person))

        return replace(
            document,
            title=redacted(document.title),
            text=redacted(document.text),
            owner=redacted(document.owner),
            people=(),
        )

    def findings(self, text: str, people: People) -> list[Finding]:
        """Return what would be replaced in a text, in order, none overlapping."""
        return without_overlap(self._found(text, people), len(text))

    def _found(self, text: str, people: People) -> Iterator[Finding]:
        """Candidates, the gravest first."""
        for start, end in self._secrets.find(text):
            yield Finding(start, end, FindingKind.SECRET)
        known = roster(people).addresses
        for start, end in addresses(text):
            yield Finding(start, end, FindingKind.EMAIL, known.get(unquote(text[start:end]).lower()))
        for start, end in telephone_numbers(text):
            yield Finding(start, end, FindingKind.PHONE)
        for mention in mentions(text, people):
            yield Finding(mention.start, mention.end, FindingKind.NAME, mention.person)


def _number(numbers: dict[int, int], person: int) -> int:
    return numbers.setdefault(person, len(numbers) + 1)


def _replaced(text: str, findings: Iterable[Finding], number: Callable[[int], int]) -> str:
    pieces = list[str]()
    end = 0
    for finding in findings:
        pieces += text[end : finding.start], _placeholder(finding, number)
        end = finding.end
    return "".join((*pieces, text[end:]))


def _placeholder(finding: Finding, number: Callable[[int], int]) -> str:
    return f"[{finding.kind}]" if finding.person is None else f"Person {number(finding.person)}"
