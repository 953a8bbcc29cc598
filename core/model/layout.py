"""Text layout of pages, threads and past incidents in the index, and of numbers of things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

PAGE_TITLE = "Page Title: "  # these four follow the Ericsson chatbot, section V-A
PAGE_CONTENT = "The content of this page is as follows:"
MESSAGE = "Message: "
RESPONSES = "This message has the following responses:"
SERVICE = "Service: "
ROOT_CAUSE = "Root cause: "
FIX = "Fix: "

_WORD = re.compile(r"\w+")
MISSING_PART = re.compile(r"\(Not included here: (\[[^\[\]\n]{1,200}\]\([^()\s]{1,900}\)|[^()\[\]\n]{1,200})\)")
_BRACKETS = str.maketrans("()[]", "    ")
QUOTE_START = 60  # characters of a quote used to find its position


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: “1 page”, “2,000 pages”; `plural` where it is not the noun with an “s”."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def missing_part(name: str, url: str = "") -> str:
    """Return the Markdown in place of a part of a page that is not read: its name, linked if its address is known."""
    name = " ".join(name.translate(_BRACKETS).split())[:200].rstrip() or "a part"
    address = quote(url, safe="%/:?#@!$&*+,;=~")
    return f"(Not included here: {f'[{name}]({address})' if 0 < len(address) <= 900 else name})"


def missing_parts(text: str) -> tuple[str, ...]:
    """Return the name of each part that a page lacks, as Markdown, once."""
    return tuple(dict.fromkeys(MISSING_PART.findall(text)))


def thread_text(message: str, replies: Sequence[str]) -> str:
    """Return a message and its replies as text, with prefixes that identify them."""
    if not replies:
        return f"{MESSAGE}{message.strip()}"
    return "\n\n".join([f"{MESSAGE}{message.strip()}", RESPONSES, *(reply.strip() for reply in replies)])


def thread_urls(message: str, url: str, replies: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return the address of each part of a thread's text between blank lines. `replies` are texts and addresses.

    Returns nothing if no message has an address.
    """
    messages = [(message, url), (RESPONSES, url), *replies] if replies else [(message, url)]
    urls = [address for text, address in messages for _ in _parts(text)]
    return tuple(urls) if any(urls) else ()


def url_of(text: str, urls: Sequence[str], quote: str) -> str:
    """Return the address of the last part of a thread that contains the start of a quote; empty if unknown."""
    parts = _parts(text)
    begun = _words(quote)[:QUOTE_START]
    if len(parts) != len(urls):  # redacted text may have contained blank lines
        return ""
    return next((url for part, url in reversed(list(zip(parts, urls, strict=True))) if begun in _words(part)), "")


def _parts(text: str) -> list[str]:
    return text.strip().split("\n\n")


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text))


def split_thread(text: str) -> tuple[str, str]:
    """Return a thread's message and the text of its replies. Any other text is returned as the message."""
    message, _, replies = text.partition(f"\n\n{RESPONSES}\n\n")
    return message.removeprefix(MESSAGE), replies
