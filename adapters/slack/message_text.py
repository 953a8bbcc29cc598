"""The text that people see in a message of Slack: its own, and that of its blocks, attachments and forwarded messages.

https://docs.slack.dev/reference/block-kit/blocks · https://docs.slack.dev/legacy/legacy-messaging/legacy-secondary-message-attachments
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from core.model.conversation import MAX_MESSAGE, cut_message

MAX_DEPTH = 12  # nested elements
MAX_PARTS = 1_000  # of one message
NO_FALLBACK = "[no preview available]"  # Slack's own text for an attachment of blocks

_SIGNS = re.compile(r"[\W_]+")
_STRUCK = re.compile(
    r"(?P<code>```(?s:.*?)(?:```|\Z)|`[^`\n]++`)"
    r"|[ \t]?+(?<![\w~/])(?P<sign>~~?)(?![~\s/])(?:<[^<>\n]*+>|`[^`\n]*+`|[^~\n])++(?<!\s)(?P=sign)(?![\w~])"
)
_OWN = ("pretext", "title", "text")
_INNER = ("blocks", "fields", "elements", "message", "message_blocks", "attachments")
_RICH = ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
_RAW = ("plain_text", "raw_text", "markdown")  # texts without Slack's markup
_PRESSED = ("actions", "context_actions", "input", "button")
_MENTIONED = {
    "user": ("@", "user_id"),
    "channel": ("#", "channel_id"),
    "usergroup": ("!subteam^", "usergroup_id"),
    "broadcast": ("!", "range"),
}


def without_struck(text: str) -> str:
    """Return a text in Slack's markup without what is struck out, of which code is never a part."""
    return _STRUCK.sub(lambda match: match["code"] or "", text)


# Slack omits a text, or sends null.
Text = Annotated[
    str, BeforeValidator(lambda text: text or ""), AfterValidator(without_struck), AfterValidator(cut_message)
]


class Content(BaseModel):
    """The part of a message that is seen, without what is struck out. Texts are in Slack's markup, like `text`."""

    model_config = ConfigDict(frozen=True)

    text: Text = ""
    blocks: Any = None
    attachments: Any = None
    files: Any = None

    @property
    def attached(self) -> str:
        """Return what is seen beside the text. Slack repeats a text in blocks, and the reverse."""
        seen_words, parts, room = _words(self.text), list[str](), MAX_MESSAGE
        for part in map(without_struck, self._parts()):
            words = _words(part)
            if room > 0 and words.strip() and words not in seen_words:
                parts.append(part)
                seen_words, room = f"{seen_words}\0{words}", room - len(part)
        return cut_message("\n".join(parts))

    @property
    def seen(self) -> str:
        """Return everything that is seen."""
        return cut_message("\n".join(filter(None, (self.text, self.attached))))

    def _parts(self) -> Iterator[str]:
        whole = {"blocks": self.blocks, "attachments": self.attachments, "files": self.files}
        for number, part in enumerate(_texts(whole, MAX_DEPTH)):
            if number == MAX_PARTS:
                return
            yield part


def _words(text: str) -> str:
    return f" {_SIGNS.sub(' ', unescape(text)).strip()} "


def _texts(element: Any, depth: int) -> Iterator[str]:
    """Yield the texts of an element and those within it, in the order in which they are seen."""
    kind = element.get("type")
    if not depth or kind in _PRESSED:
        return
    if kind in _RICH:
        yield _rich(element)
    elif kind == "rich_text_list":
        yield _list(element, depth)
    elif kind == "table":
        yield _table(element, depth)
    elif isinstance(element.get("value"), str):  # a field of an attachment
        yield ": ".join(filter(None, (_text(element.get("title")), _text(element["value"]))))
    else:
        own = [_text(element)] if kind in _RAW else [part for key in _OWN if (part := _text(element.get(key)))]
        own += [part for key in _INNER for each in _each(element.get(key)) for part in _texts(each, depth - 1)]
        fallback = _text(element.get("fallback"))
        yield from own or ([fallback] if fallback != NO_FALLBACK else [])
        yield from map(_file, _each(element.get("files")))


def _text(value: Any) -> str:
    """Return a text, which is a string in Slack's markup, or an object that may be of another."""
    if isinstance(value, dict):
        text = str(value.get("text") or "")
        return escape(text, quote=False) if value.get("type") in _RAW else text
    return value.strip() if isinstance(value, str) else ""


def _each(value: Any) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, dict)]


def _file(file: dict[str, Any]) -> str:
    name, title = _text(file.get("name")), _text(file.get("title"))
    shown = f"{title}, {name}" if name and title not in ("", name, name.rpartition(".")[0]) else name or title
    return f"(attachment: {shown})" if shown else ""


def _rich(element: dict[str, Any]) -> str:
    text = "".join(map(_run, _each(element.get("elements"))))
    if element["type"] == "rich_text_preformatted":
        return f"```\n{text}\n```"
    return "\n".join(f"&gt; {line}" for line in text.split("\n")) if element["type"] == "rich_text_quote" else text


def _run(run: dict[str, Any]) -> str:
    """Return a part of a line in Slack's markup; empty if it is struck out."""
    style = given if isinstance(given := run.get("style"), dict) else {}
    if style.get("strike"):
        return ""
    match run.get("type"):
        case "link":
            label = escape(_text(run.get("text")), quote=False)
            return f"<{escape(_text(run.get('url')), quote=False)}{'|' if label else ''}{label}>"
        case "user" | "channel" | "usergroup" | "broadcast" as kind:
            sign, key = _MENTIONED[kind]
            return f"<{sign}{run.get(key)}>"
        case "emoji":
            return f":{run.get('name')}:"
        case _:
            text = escape(str(run.get("text") or run.get("fallback") or run.get("value") or ""), quote=False)
            return f"`{text}`" if style.get("code") and text else text


def _list(element: dict[str, Any], depth: int) -> str:
    first, indent = (each if isinstance(each := element.get(key), int) else 0 for key in ("offset", "indent"))
    items = [" ".join(_texts(item, depth - 1)) for item in _each(element.get("elements"))]
    is_ordered = element.get("style") == "ordered"
    lines = (f"{number}. {item}" if is_ordered else f"• {item}" for number, item in enumerate(items, start=first + 1))
    return "\n".join("    " * min(indent, MAX_DEPTH) + line for line in lines)


def _table(element: dict[str, Any], depth: int) -> str:
    """Return a table in Markdown."""
    rows = [_each(row) for row in element.get("rows") or () if isinstance(row, list)]
    cells = [[" ".join(_texts(cell, depth - 1)).replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join([*lines[:1], "|---" * len(cells[0]) + "|", *lines[1:]]) if lines else ""
