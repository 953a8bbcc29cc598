"""Untrusted text in Slack's markup: shown as it is, never interpreted.

Slack knows three escapes (https://docs.slack.dev/messaging/formatting-message-text): `&amp;`, `&lt;` and `&gt;`. With
them no text can mention anybody or make a link. It knows none for `*`, `_`, `~` and the backtick: where one of these
could begin or end a format it is replaced by a look-alike.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

ELLIPSIS = "…"
READ_AHEAD = 4  # times as many characters are read as can be shown, as white space folds
SHORTEST_LABEL = 20  # characters below which a link tells a reader nothing

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LOOK_ALIKES = {"*": "∗", "_": "ˍ", "~": "∼", "`": "ˋ"}
_FORMAT_EDGE = re.compile(r"(?<![^\W_])[*_~]|[*_~](?![^\W_])|`")  # not the underscores of kube_pod_status
_CODE_SPAN = re.compile(r"(`[^`]+`)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_]+)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*_\n]{1,200})(?<!\s)\1(?![\w*])")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_JOINERS = "\u200c\u200d"  # they shape scripts and emoji; all other invisible characters are dropped
_SAFE_IN_ADDRESS = "%/:=?&#,;@+!$()~-._[]"


def one_line(text: str, limit: int) -> str:
    """The text with every run of white space as one space, and without control and bidirectional characters.

    At most some multiple of `limit` characters of it, so that a huge text costs no more than a long one.
    """
    begin = text[: READ_AHEAD * limit]
    visible = "".join(c for c in begin if c.isprintable() or c.isspace() or c in _JOINERS)
    return " ".join(visible.split()) + (ELLIPSIS if len(begin) < len(text) else "")


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of the text, with an ellipsis where some are missing."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def escape(text: str, limit: int) -> str:
    """One line of plain text. `limit` bounds the characters that are sent, escapes included."""
    return _within(_neutral(one_line(text, limit)), limit)


def code(text: str, limit: int) -> str:
    """One line as code, in which Slack interprets nothing; empty for an empty text."""
    plain = one_line(text, limit).replace("`", _LOOK_ALIKES["`"])
    return f"`{_within(plain, limit - 2)}`" if plain else ""


def code_block(text: str, limit: int) -> str:
    """Lines of code as a block, in which Slack interprets nothing; what does not fit is cut at its end."""
    lines = [(line, one_line(line, limit).replace("`", _LOOK_ALIKES["`"])) for line in text[:limit].splitlines()]
    plain = "\n".join(f"{' ' * (len(line) - len(line.lstrip(' ')))}{shown}" for line, shown in lines if shown)
    return f"```{_within(plain, limit - 6)}```" if plain else ""


def bold(text: str, limit: int) -> str:
    """One line in bold; empty for an empty text."""
    plain = escape(text, limit - 2).replace("*", _LOOK_ALIKES["*"])
    return f"*{plain}*" if plain else ""


def prose(text: str, limit: int) -> str:
    """One line of Markdown: its code spans stay code, as commands are meant to be copied; the rest is plain text."""
    pieces = _CODE_SPAN.split(one_line(text, limit))
    rendered = "".join(
        f"`{_escaped(piece[1:-1])}`" if index % 2 else _escaped(_neutral(_words(piece)))
        for index, piece in enumerate(pieces)
    )
    return rendered if len(rendered) <= limit else escape(text, limit)


def link(url: str, label: str, limit: int) -> str:
    """A link to a web address; the label alone if the address is none, or too long to be sent."""
    address = _escaped(web_address(url))
    room = limit - len(address) - len("<|>")
    if not address or room < SHORTEST_LABEL:
        return escape(label, limit)
    return f"<{address}|{escape(label, room)}>"


def web_address(url: str) -> str:
    """Return the address as a link may carry it; empty for anything but http and https."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    return quote(url.strip(), safe=_SAFE_IN_ADDRESS, errors="replace")


def _words(markdown: str) -> str:
    """Without emphasis, and with links as their words."""
    return _MARKDOWN_LINK.sub(r"\1", _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", markdown)))


def _neutral(text: str) -> str:
    return _FORMAT_EDGE.sub(lambda match: _LOOK_ALIKES[match[0]], text)


def _escaped(text: str) -> str:
    return "".join(_ENTITIES.get(c, c) for c in text)


def _within(text: str, limit: int) -> str:
    """The text escaped, cut so that the escaped form fits and no escape is cut in two."""
    if len(escaped := _escaped(cut(text, limit))) <= limit:
        return escaped
    room = limit - len(ELLIPSIS)
    fitting: list[str] = []
    for character in (_ENTITIES.get(c, c) for c in text):
        room -= len(character)
        if room < 0:
            break
        fitting.append(character)
    return "".join(fitting) + ELLIPSIS
