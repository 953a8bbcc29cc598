"""Removes the headers and references of mail programs, which an embedding model would take for the words of an incident."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from core.knowledge.privacy.contacts import addresses

MAX_HEADER = 200  # characters; what is longer holds more than a header

_SENDER = frozenset({"from", "von", "de"})
_TIME = frozenset({"sent", "date", "gesendet", "datum", "envoyé", "enviado", "fecha"})
_OTHERS = frozenset({"received from", "to", "cc", "an", "à", "para"})
# Both look no further than a header or a picture's name can reach: the text is anybody's.
_HEADER = re.compile(rf"[^\w\n]{{0,20}}({'|'.join(sorted(_SENDER | _TIME | _OTHERS))})\s{{0,20}}:", re.IGNORECASE)
_PICTURE = re.compile(r"\[cid:[^\]\n]{0,200}\]", re.IGNORECASE)
_SUBJECT = re.compile(r"\b(?:subject|betreff|objet|asunto)\s{0,20}:", re.IGNORECASE)
_BRACKETS = re.compile(r"<(?:mailto:)?\s*>|\bmailto:(?=\s|$)", re.IGNORECASE)  # of an address that is gone


def without_mail(text: str) -> str:
    """Return the lines without addresses, references to pictures and headers of mails, in English, German, French and Spanish;
    all of it if nothing else remains.

    Headers are lines that stand together and hold an address, or who sent a mail and when. The subject stays.
    """
    kept: list[str] = []
    for is_header, group in groupby(text.splitlines(), key=lambda line: bool(_HEADER.match(line))):
        block = list(group)
        kept += _below_headers(block) if is_header and _are_of_mail(block) else map(_without_references, block)
    return "\n".join(filter(None, kept)) or text


def _are_of_mail(headers: Sequence[str]) -> bool:
    names = {match[1].lower() for match in map(_HEADER.match, headers) if match}
    return bool(names & _SENDER and names & _TIME) or any(_without_references(line) != line for line in headers)


def _below_headers(headers: Sequence[str]) -> Iterator[str]:
    """Yield the text on the lines of headers beside them: a subject, or a whole text behind a single one."""
    for line in headers:
        if subject := _SUBJECT.search(line):
            yield _without_references(line[subject.start() :])
        elif len(headers) == 1 or len(line) > MAX_HEADER:
            yield _without_references(line[found.end() if (found := _HEADER.match(line)) else 0 :]).strip()


def _without_references(line: str) -> str:
    """Return the line without addresses and pictures; as it is if it holds none."""
    bare = _PICTURE.sub(" ", line)
    for begin, end in sorted(set(addresses(bare)), reverse=True):
        bare = f"{bare[:begin]} {bare[end:]}"
    return line if bare == line else " ".join(_BRACKETS.sub(" ", bare).split())
