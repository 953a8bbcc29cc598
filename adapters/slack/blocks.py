"""Block Kit elements within Slack's limits, and untrusted text in its markup, shown literally and never interpreted.

https://docs.slack.dev/reference/block-kit

Texts in `mrkdwn` must already be escaped; plain texts are taken literally.

Slack has three escapes (https://docs.slack.dev/messaging/formatting-message-text): `&amp;`, `&lt;` and `&gt;`. They
prevent mentions and links. For `*`, `_`, `~` and the backtick there is none: where they could begin or end a format,
they are replaced with look-alikes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from core.model.message_view import RIGHT_OR_WRONG, Control, Judged, NamedTime, with_times
from core.model.messages import ButtonAction

MAX_TEXT = 3_000  # characters of one text, or of an option's address
MAX_HEADER = 150  # characters
MAX_BODY = 46  # blocks of one message beside its controls; Slack accepts 50
# Characters of all texts of a message beside its controls. Slack accepts 12 000, without saying so:
# https://github.com/slackapi/bolt-js/issues/2509.
MAX_MESSAGE = 11_000
MAX_LABEL = 75  # characters of a button, an option or a prompt
MAX_OPTION_VALUE = 150  # characters
MAX_OPTIONS = 100  # per picker, or per group of it
MAX_OVERFLOW = 5  # options of the overflow menu
MAX_FALLBACK = 500  # characters of the notification line; Slack accepts 4 000

Block = dict[str, Any]


_MARKED = re.compile(r"(`[^`]*+`|<[^<>]*+>)")  # code, links and mentions


def in_readers_zone(block: Block, times: Sequence[datetime]) -> Block:
    """Return a block of text whose times each reader sees in their own zone, unless that makes it too long for Slack.

    https://docs.slack.dev/messaging/formatting-message-text#date-formatting
    """
    if block["type"] == "context":
        return block | {"elements": [_in_readers_zone(each, times) for each in block["elements"]]}
    return block | {"text": _in_readers_zone(block["text"], times)} if block["type"] == "section" else block


def _in_readers_zone(text: Block, times: Sequence[datetime]) -> Block:
    pieces = _MARKED.split(text["text"])
    shown = "".join(each if number % 2 else with_times(each, times, _date) for number, each in enumerate(pieces))
    return text | {"text": shown} if len(shown) <= MAX_TEXT else text


def _date(time: NamedTime) -> str:
    parts = "{date_short} {time}" if time.has_date else "{time}"
    return f"<!date^{time.at.timestamp():.0f}^{parts}|{time.name}>"


def header(text: str) -> Block:
    return {"type": "header", "text": plain(one_line(text, MAX_HEADER) or ELLIPSIS, MAX_HEADER)}


def section(mrkdwn: str) -> Block:
    return {"type": "section", "text": _mrkdwn(mrkdwn)}


def context(mrkdwn: str) -> Block:
    """Return small grey text."""
    return {"type": "context", "elements": [_mrkdwn(mrkdwn)]}


def actions(buttons: Sequence[Block]) -> Block:
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action_id: str, value: str, *, primary: bool = False) -> Block:
    element = {"type": "button", "text": plain(label, MAX_LABEL), "action_id": action_id, "value": value}
    return element | {"style": "primary"} if primary else element


def plan(title: str, done: Sequence[str], doing: str) -> Block:
    """Return the steps of a work in progress."""
    tasks = [(step, "complete") for step in done] + [(doing, "in_progress")]
    cards = [
        {"type": "task_card", "task_id": f"step-{number}", "title": cut(step, MAX_HEADER), "status": status}
        for number, (step, status) in enumerate(tasks)
    ]
    return {"type": "plan", "title": title, "tasks": cards}


def text_field(identifier: str, label: str, max_length: int, value: str = "", *, multiline: bool = True) -> Block:
    """Return a text field that contains `value`. Its content is sent with every button, under `identifier`."""
    element = {"type": "plain_text_input", "action_id": identifier, "multiline": multiline, "max_length": max_length}
    element |= {"initial_value": value} if value else {}
    return {
        "type": "input",
        "block_id": identifier,
        "label": plain(label, MAX_LABEL),
        "element": element,
    }


def picker(
    identifier: str, label: str, options: Sequence[tuple[str, str]], groups: int = 1, *, picked: bool = False
) -> list[Block]:
    """Return a picker of values and names. The choice is sent with every button, under `identifier`.

    Values that are too long for Slack are dropped; without options, no picker is returned. At most MAX_OPTIONS are
    shown, or that many in each of the `groups`, which are named after their first and last option. With `picked`, the
    first one is selected.
    """
    offered = [
        {"text": plain(name if name.strip() else value, MAX_LABEL), "value": value}
        for value, name in options
        if 1 <= len(value) <= MAX_OPTION_VALUE
    ]
    if not offered:
        return []
    element = {"type": "static_select", "action_id": identifier, **_options(offered[: MAX_OPTIONS * groups])}
    if picked:
        element["initial_option"] = offered[0]
    field = {"type": "input", "block_id": identifier, "element": element, "optional": not picked}
    return [field | {"label": plain(label, MAX_LABEL)}]


def menu(label: str, action_id: str, groups: Sequence[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Return a menu with titled groups of options; empty if there are no valid options."""
    shown = [
        {"label": plain(title, MAX_LABEL), "options": accepted}
        for title, options in groups
        if (accepted := _accepted(options))
    ]
    if not shown:
        return []
    return [
        {
            "type": "static_select",
            "action_id": action_id,
            "placeholder": plain(label, MAX_LABEL),
            "option_groups": shown,
        }
    ]


def overflow(action_id: str, options: Sequence[Block]) -> list[Block]:
    """Return an overflow menu with the first MAX_OVERFLOW options; empty if there are no valid options."""
    taken = _accepted(options)[:MAX_OVERFLOW]
    return [{"type": "overflow", "action_id": action_id, "options": taken}] if taken else []


def _accepted(options: Sequence[Block]) -> list[Block]:
    return [each for each in options if len(each["value"]) <= MAX_OPTION_VALUE]


def _options(offered: Sequence[Block]) -> Block:
    if len(offered) <= MAX_OPTIONS:
        return {"options": offered}
    groups = [offered[start : start + MAX_OPTIONS] for start in range(0, len(offered), MAX_OPTIONS)]
    return {"option_groups": [{"label": _from_to(group), "options": group} for group in groups]}


def _from_to(group: Sequence[Block]) -> Block:
    first, last = (cut(option["text"]["text"], MAX_LABEL // 2 - 2) for option in (group[0], group[-1]))
    return plain(f"{first} – {last}", MAX_LABEL)


def plain(text: str, limit: int) -> Block:
    """Return a text without markup, cut to the limit."""
    return {"type": "plain_text", "text": cut(text, limit), "emoji": False}


def listing(lines: Sequence[str], noun: str, limit: int = MAX_TEXT, left_out: int = 0) -> str:
    """Return the first lines that fit into `limit` characters, and a count of the rest: “and 7 more sources”.

    Each line must be shorter than `limit` by the length of that count. `left_out` lines are counted too.
    """
    return "\n".join(fitting(lines, noun, limit, left_out))


def sections(lines: Sequence[str], noun: str, limit: int) -> list[Block]:
    """Return a listing as several sections, without splitting lines."""
    texts: list[str] = []
    for line in fitting(lines, noun, limit):
        if texts and len(texts[-1]) + 1 + len(line) <= MAX_TEXT:
            texts[-1] += f"\n{line}"
        else:
            texts.append(line)
    return [section(text) for text in texts]


def fitting(lines: Sequence[str], noun: str, limit: int, left_out: int = 0) -> list[str]:
    """Return the lines of a listing."""
    room = limit - len(_more(len(lines) + left_out, noun))
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    missing = len(lines) + left_out - len(shown)
    return [*shown, _more(missing, noun)] if missing else shown


def _more(count: int, noun: str) -> str:
    return f"_and {count} more {noun}".rstrip() + "_"


def _mrkdwn(text: str) -> Block:
    # Verbatim, so that Slack links no bare addresses, channel names or mentions.
    return {"type": "mrkdwn", "text": text if text.strip() else ELLIPSIS, "verbatim": True}


ACTION_PREFIX = "feedback:"  # prefix of a button's action id, followed by the action; the button's value is its subject
JUDGE_MENU, MORE_MENU, RATE = "judge", "more", "rate"  # elements of several actions, whose value contains the action
SEPARATOR = "|"  # between the action and its subject in such a value
OPENED = "opened"  # the value of an entry that only opens a page


@dataclass(frozen=True, slots=True)
class Rendered:
    """Blocks, and the text for notifications and screen readers."""

    text: str
    blocks: list[Block]


def fallback(summary: str) -> str:
    return escape(summary, MAX_FALLBACK) or ELLIPSIS


def length(shown: Any) -> int:
    """Return the number of characters of all texts of blocks."""
    if isinstance(shown, dict):
        texts: Block = shown
        return sum(
            len(each) if name == "text" and isinstance(each, str) else length(each) for name, each in texts.items()
        )
    return sum(map(length, shown)) if isinstance(shown, list) else 0


def control_elements(buttons: Sequence[Control], judging: Sequence[Judged], more: Sequence[Control]) -> list[Block]:
    """Return the controls of a message: buttons, one menu for judgements, and an overflow menu for the rest."""
    elements = [
        button(each.label, f"{ACTION_PREFIX}{each.verdict}", each.subject, primary=each.verdict is ButtonAction.TAKE_IT)
        for each in buttons
        if each.verdict is not None
    ]
    groups = [(each.claim, [_option(control) for control in each.controls]) for each in judging]
    return [
        *elements,
        *menu(RIGHT_OR_WRONG, f"{ACTION_PREFIX}{JUDGE_MENU}", groups),
        *overflow(f"{ACTION_PREFIX}{MORE_MENU}", [_option(each) for each in more]),
    ]


def feedback_block(rated: Sequence[Control]) -> list[Block]:
    """Return Slack's own thumbs for a positive and a negative control; empty without both."""
    if len(rated) != 2:
        return []
    pressed = {
        name: {"text": plain(each.label, MAX_LABEL), "value": f"{each.verdict}{SEPARATOR}{each.subject}"}
        for name, each in zip(("positive_button", "negative_button"), rated, strict=True)
    }
    element = {"type": "feedback_buttons", "action_id": f"{ACTION_PREFIX}{RATE}", **pressed}
    return [{"type": "context_actions", "elements": [element]}]


def _option(control: Control) -> Block:
    """Return an entry of a menu, which opens a page if it is no button."""
    value = OPENED if control.verdict is None else f"{control.verdict}{SEPARATOR}{control.subject}"
    url = web_address(control.url) if control.verdict is None else ""
    entry: Block = {"text": plain(control.label, MAX_LABEL), "value": value}
    return entry | ({"url": url} if 0 < len(url) <= MAX_TEXT else {})


def dotted(*parts: str) -> str:
    """Join the non-empty parts with dots."""
    return " · ".join(filter(None, parts))


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
