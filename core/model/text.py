"""Text of every kind: its layout in the index, names that look the same, and formats as other programs write them."""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

import yaml

PAGE_TITLE = "Page Title: "  # these four follow the Ericsson chatbot, section V-A
PAGE_CONTENT = "The content of this page is as follows:"
MESSAGE = "Message: "
RESPONSES = "This message has the following responses:"
SERVICE = "Service: "
ROOT_CAUSE = "Root cause: "
FIX = "Fix: "

WORD = re.compile(r"\w+")
MISSING_PART = re.compile(r"\(Not included here: (\[[^\[\]\n]{1,200}\]\([^()\s]{1,900}\)|[^()\[\]\n]{1,200})\)")
_BRACKETS = str.maketrans("()[]", "    ")
QUOTE_START = 60  # characters of a quote used to find its position


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: “1 page”, “2,000 pages”; `plural` where it is not the noun with an “s”."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def in_utc(at: datetime, form: str = "%H:%M") -> str:
    """Return a time in UTC in a form of `strftime`: “09:19 UTC”."""
    return f"{at.astimezone(UTC):{form}} UTC"


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
    return " ".join(WORD.findall(text))


def split_thread(text: str) -> tuple[str, str]:
    """Return a thread's message and the text of its replies. Any other text is returned as the message."""
    message, _, replies = text.partition(f"\n\n{RESPONSES}\n\n")
    return message.removeprefix(MESSAGE), replies


def visible_name(name: str) -> str:
    """Return a name in one Unicode form (NFKC), without invisible signs and without outer and repeated spaces."""
    signs = (sign for sign in unicodedata.normalize("NFKC", name) if unicodedata.category(sign) != "Cf")
    return " ".join("".join(signs).split())


@lru_cache(maxsize=10_000)
def name_key(name: str) -> str:
    """Return the key by which names are compared: the visible name, without its case."""
    return unicodedata.normalize("NFKC", visible_name(name).casefold())


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Return the spelling of each name by its key: that of the first name with this key."""
    return {name_key(name): name for name in reversed([*names])}


REPLACEMENT = "\ufffd"

_MARKS = (  # UTF-32 first, because its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LONE = re.compile("[\ud800-\udfff]")
# A string is matched whole, so that a comma in it is kept; one that does not end reaches the end of the text.
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+(?:"|\\?\Z))|,(?=\s*+[\]}])', re.DOTALL)
# Every escape is matched, so that an escaped backslash before "ud83d" is not taken for the start of one.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|[^\n])"
)


def decode_text(body: bytes, default: str = "utf-8") -> str:
    """Return the text of a file or body, by its byte order mark if it has one. What is invalid is replaced."""
    encoding = next((name for mark, name in _MARKS if body.startswith(mark)), default)
    return _LONE.sub(REPLACEMENT, body.decode(encoding, "replace"))


def json_text(body: bytes | str) -> str:
    """Return JSON that every parser accepts: without a byte order mark, a lone surrogate replaced."""
    if isinstance(body, str):
        text = _LONE.sub(REPLACEMENT, body.removeprefix("\ufeff"))
    else:
        text = decode_text(body, json.detect_encoding(body))
    return _ESCAPE.sub(_whole, text) if "\\ud" in text or "\\uD" in text else text


def load_json(body: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or nested too deeply.

    Control characters in strings, commas after a last item and trailing NULs are accepted.
    """
    text = json_text(body).rstrip("\0 \t\r\n")
    try:
        try:
            return json.loads(text, strict=False)
        except ValueError:
            return json.loads(_LAST_COMMA.sub(r"\1", text), strict=False)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["lone"] else escape[0]


DEEPEST = 100  # levels; a manifest of Kubernetes has about a dozen

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def refuse_deep_yaml(text: str) -> None:
    """Raise yaml.YAMLError if a text is not YAML, or nests deeper than DEEPEST.

    Parsing yields one event after another, but composing calls itself on each level: libyaml's function then exhausts the
    stack of the process, and PyYAML's takes seconds for some thousand brackets.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise yaml.YAMLError(f"It nests deeper than {DEEPEST} levels.")
