"""How pages, threads and past incidents are written as text, and read again."""

from __future__ import annotations

import re
from collections.abc import Sequence

PAGE_TITLE = "Page Title: "  # these four as in the Ericsson chatbot, section V-A
PAGE_CONTENT = "The content of this page is as follows:"
MESSAGE = "Message: "
RESPONSES = "This message has the following responses:"
SERVICE = "Service: "
ROOT_CAUSE = "Root cause: "
FIX = "Fix: "

_WORD = re.compile(r"\w+")
QUOTE_START = 60  # characters of a quote that tell where it stands


def thread_text(message: str, replies: Sequence[str]) -> str:
    """A message and its replies, with the prefixes that say which is which."""
    if not replies:
        return f"{MESSAGE}{message.strip()}"
    return "\n\n".join([f"{MESSAGE}{message.strip()}", RESPONSES, *(reply.strip() for reply in replies)])


def thread_urls(message: str, url: str, replies: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the address of each part of a thread's text between blank lines; `replies` are their texts and addresses.

    Returns nothing if none of the messages has an address.
    """
    said = [(message, url), (RESPONSES, url), *replies] if replies else [(message, url)]
    urls = [address for text, address in said for _ in _parts(text)]
    return tuple(urls) if any(urls) else ()


def url_of(text: str, urls: Sequence[str], quote: str) -> str:
    """The address of the last part of a thread's text that holds the beginning of a quote; empty if it is not known."""
    parts = _parts(text)
    begun = _words(quote)[:QUOTE_START]
    if len(parts) != len(urls):  # what was redacted may have held blank lines
        return ""
    return next((url for part, url in reversed(list(zip(parts, urls, strict=True))) if begun in _words(part)), "")


def _parts(text: str) -> list[str]:
    return text.strip().split("\n\n")


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))


def split_thread(text: str) -> tuple[str, str]:
    """A thread's message and the text of its replies; a text that is no thread is all message."""
    message, _, replies = text.partition(f"\n\n{RESPONSES}\n\n")
    return message.removeprefix(MESSAGE), replies
