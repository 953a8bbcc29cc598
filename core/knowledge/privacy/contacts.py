"""E-mail addresses and telephone numbers in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
LOGIN_COMMAND = 120  # characters between the beginning of a command and whom it logs in as
MIN_DIGITS = 8  # of a telephone number


def addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each e-mail address, also in the path and the query of a URL.

    Systemd units, service accounts and whom a command or a URL logs in as are none.
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
    """Yield start and end of each number that begins with + and a country, or follows a word that says what it is."""
    for match in (*_INTERNATIONAL.finditer(text), *_MARKED.finditer(text)):
        start, end = match.span("number" if match.re is _MARKED else 0)
        if sum(character.isdigit() for character in text[start:end]) >= MIN_DIGITS:
            yield start, end
