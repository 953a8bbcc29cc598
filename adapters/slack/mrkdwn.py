"""Untrusted text in Slack's markup, shown literally and never interpreted.

Slack has three escapes (https://docs.slack.dev/messaging/formatting-message-text): `&amp;`, `&lt;` and `&gt;`. They
prevent mentions and links. For `*`, `_`, `~` and the backtick there is none: where they could begin or end a format,
they are replaced with look-alikes.
"""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

ELLIPSIS = "…"
READ_AHEAD = 4  # multiple of the shown characters that is read, because white space is collapsed
SHORTEST_LABEL = 20  # characters below which a link's label is useless

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LOOK_ALIKES = {"*": "∗", "_": "ˍ", "~": "∼", "`": "ˋ"}
_FORMAT_EDGE = re.compile(r"(?<![^\W_])[*_~]|[*_~](?![^\W_])|`")  # not the underscores of kube_pod_status
_CODE_SPAN = re.compile(r"(`[^`]+`)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_]+)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])([*_])(?=[^\s*_])([^*_\n]{1,200})(?<!\s)\1(?![\w*])")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)")
_JOINERS = "\u200c\u200d"  # needed by scripts and emoji; all other invisible characters are removed
_SAFE_IN_ADDRESS = "%/:=?&#,;@+!$()~-._[]"


def one_line(text: str, limit: int) -> str:
    """Return the text on one line, with white space collapsed, and without control and bidirectional characters.

    Only a multiple of `limit` characters is read, so that huge texts cost little.
    """
    begin = text[: READ_AHEAD * limit]
    is_visible = begin.isprintable()  # in one call, which is far faster than a character at a time
    visible = begin if is_visible else "".join(c for c in begin if c.isprintable() or c.isspace() or c in _JOINERS)
    return " ".join(visible.split()) + (ELLIPSIS if len(begin) < len(text) else "")


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text, with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def escape(text: str, limit: int) -> str:
    """Return one line of escaped text. `limit` applies to the escaped form."""
    return _within(_neutral(one_line(text, limit)), limit)


def code(text: str, limit: int) -> str:
    """Return one line as code, in which Slack interprets nothing; empty for empty text."""
    plain = one_line(text, limit).replace("`", _LOOK_ALIKES["`"])
    return f"`{_within(plain, limit - 2)}`" if plain else ""


def code_block(text: str, limit: int) -> str:
    """Return lines as a code block, in which Slack interprets nothing, cut to the limit."""
    lines = [(line, one_line(line, limit).replace("`", _LOOK_ALIKES["`"])) for line in text[:limit].splitlines()]
    plain = "\n".join(f"{' ' * (len(line) - len(line.lstrip(' ')))}{shown}" for line, shown in lines if shown)
    return f"```{_within(plain, limit - 6)}```" if plain else ""


def bold(text: str, limit: int) -> str:
    """Return one line in bold; empty for empty text."""
    plain = escape(text, limit - 2).replace("*", _LOOK_ALIKES["*"])
    return f"*{plain}*" if plain else ""


def prose(text: str, limit: int) -> str:
    """Return one line of Markdown with its code spans kept as code, so that commands can be copied; the rest is plain
    text.
    """
    pieces = _CODE_SPAN.split(one_line(text, limit))
    rendered = "".join(
        f"`{_escaped(piece[1:-1])}`" if index % 2 else _escaped(_neutral(_words(piece)))
        for index, piece in enumerate(pieces)
    )
    return rendered if len(rendered) <= limit else escape(text, limit)


def link(url: str, label: str, limit: int) -> str:
    """Return a link to a web address; only the label if the address is invalid or too long."""
    address = _escaped(web_address(url))
    room = limit - len(address) - len("<|>")
    return escape(label, limit) if not address or room < SHORTEST_LABEL else f"<{address}|{escape(label, room)}>"


def web_address(url: str) -> str:
    """Return the address for use in a link; empty for anything but http and https."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return ""
    return quote(url.strip(), safe=_SAFE_IN_ADDRESS, errors="replace")


def _words(markdown: str) -> str:
    """Return the text without emphasis, and with links replaced by their labels."""
    return _MARKDOWN_LINK.sub(r"\1", _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", markdown)))


def _neutral(text: str) -> str:
    return _FORMAT_EDGE.sub(lambda match: _LOOK_ALIKES[match[0]], text)


def _escaped(text: str) -> str:
    return text.translate(_ENTITIES)


def _within(text: str, limit: int) -> str:
    """Return the escaped text within the limit, without cutting an escape."""
    if len(escaped := _escaped(cut(text, limit))) <= limit:
        return escaped
    room = limit - len(ELLIPSIS)
    fitting: list[str] = []
    for character in (c.translate(_ENTITIES) for c in text):
        room -= len(character)
        if room < 0:
            break
        fitting.append(character)
    return "".join(fitting) + ELLIPSIS


_ENTITY = re.compile(r"<([^<>]*)>")
_SPECIAL = re.compile(r"!(?:subteam|date)\^\S*")


def plain_text(text: str, bot_user_id: str) -> str:
    """Return the text that a person reads in the message, without mentions of the bot."""
    without_bot = re.sub(rf"<@{re.escape(bot_user_id)}(\|[^<>]*)?>", " ", text)
    readable = _ENTITY.sub(lambda match: _readable(match[1]), without_bot)
    # &amp; last, because it may precede what only looks like another escape.
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        readable = readable.replace(entity, character)
    return "\n".join(" ".join(line.split()) for line in readable.splitlines()).strip()


def mentions(text: str, user_id: str) -> bool:
    return re.search(rf"<@{re.escape(user_id)}(\|[^<>]*)?>", text) is not None


def _readable(entity: str) -> str:
    """Return the readable form of an entity (without angle brackets): a person, channel, group, broadcast, date or
    link.
    """
    target, _, label = entity.partition("|")
    if target.startswith("@"):
        return f"@{label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or target[1:]}"
    if target.startswith("!"):
        return label if _SPECIAL.fullmatch(target) else f"@{target[1:]}"
    address = target.removeprefix("mailto:")
    return address if not label or address.endswith(label) else f"{label} ({address})"
