"""E-mail addresses and telephone numbers in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ADDRESS = re.compile(
    r"(?<![\w.+%/@:-])(?:mailto:)?(?P<address>[A-Za-z0-9_][\w.+%-]*@(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,})"
    r"(?![\w@-]|:\S|\.\w)"
)
_AFTER_MAILTO = re.compile(r"(?<=mailto:)[A-Za-z0-9_][\w.+%-]*@[\w.-]+[A-Za-z]")
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
LOGIN_COMMAND = 120  # characters between the beginning of a command and whom it logs in as
MIN_DIGITS = 8  # of a telephone number


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each e-mail address. Systemd units, service accounts and logins of a command are none."""
    for match in _ADDRESS.finditer(text):
        before = text[max(0, match.start() - LOGIN_COMMAND) : match.start()]
        if not _MACHINE.search(match["address"]) and not _LOGIN_BEFORE.search(before):
            yield match.span("address")
    for match in _AFTER_MAILTO.finditer(text):
        yield match.span()


def telephone_numbers(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each number that begins with + and a country, or follows a word that says what it is."""
    for match in (*_INTERNATIONAL.finditer(text), *_MARKED.finditer(text)):
        start, end = match.span("number" if match.re is _MARKED else 0)
        if sum(character.isdigit() for character in text[start:end]) >= MIN_DIGITS:
            yield start, end
