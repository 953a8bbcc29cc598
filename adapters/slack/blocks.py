"""Block Kit elements within Slack's limits: https://docs.slack.dev/reference/block-kit

Texts in `mrkdwn` must already be escaped (see `adapters.slack.mrkdwn`); plain texts are taken literally.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapters.slack.mrkdwn import ELLIPSIS, cut, escape, one_line, web_address
from core.model.message_view import RIGHT_OR_WRONG, Control, Judged
from core.model.messages import ButtonAction

MAX_TEXT = 3_000  # characters of one text
MAX_HEADER = 150  # characters
MAX_BODY = 46  # blocks of one message beside its controls; Slack accepts 50
# Characters of all texts of a message beside its controls. Slack accepts 12 000, without saying so:
# https://github.com/slackapi/bolt-js/issues/2509.
MAX_MESSAGE = 11_000
MAX_BUTTON_TEXT = 75  # characters
MAX_OPTION_TEXT = 75  # characters
MAX_OPTION_VALUE = 150  # characters
MAX_OPTIONS = 100  # per picker, or per group of it
MAX_OVERFLOW = 5  # options of the overflow menu
MAX_OPTION_URL = 3_000  # characters
MAX_FALLBACK = 500  # characters of the notification line; Slack accepts 4 000

Block = dict[str, Any]


def header(text: str) -> Block:
    plain = cut(one_line(text, MAX_HEADER), MAX_HEADER) or ELLIPSIS
    return {"type": "header", "text": {"type": "plain_text", "text": plain, "emoji": False}}


def section(mrkdwn: str) -> Block:
    return {"type": "section", "text": _mrkdwn(mrkdwn)}


def context(mrkdwn: str) -> Block:
    """Return small grey text."""
    return {"type": "context", "elements": [_mrkdwn(mrkdwn)]}


def actions(buttons: Sequence[Block]) -> Block:
    return {"type": "actions", "elements": list(buttons)}


def button(label: str, action_id: str, value: str, *, primary: bool = False) -> Block:
    text = {"type": "plain_text", "text": cut(label, MAX_BUTTON_TEXT), "emoji": False}
    element = {"type": "button", "text": text, "action_id": action_id, "value": value}
    return element | {"style": "primary"} if primary else element


def feedback(action_id: str, positive: tuple[str, str], negative: tuple[str, str]) -> Block:
    """Return thumbs up and thumbs down, each with its label and value."""
    pressed = {
        name: {"text": _plain(label, MAX_BUTTON_TEXT), "value": value}
        for name, (label, value) in (("positive_button", positive), ("negative_button", negative))
    }
    element = {"type": "feedback_buttons", "action_id": action_id, **pressed}
    return {"type": "context_actions", "elements": [element]}


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
    text = {"type": "plain_text", "text": cut(label, MAX_BUTTON_TEXT), "emoji": False}
    return {"type": "input", "block_id": identifier, "label": text, "element": element}


def picker(
    identifier: str, label: str, options: Sequence[tuple[str, str]], groups: int = 1, *, picked: bool = False
) -> list[Block]:
    """Return a picker of values and names. The choice is sent with every button, under `identifier`.

    Values that are too long for Slack are dropped; without options, no picker is returned. At most MAX_OPTIONS are
    shown, or that many in each of the `groups`, which are named after their first and last option. With `picked`, the
    first one is selected.
    """
    offered = [
        {"text": _plain(name if name.strip() else value, MAX_OPTION_TEXT), "value": value}
        for value, name in options
        if 1 <= len(value) <= MAX_OPTION_VALUE
    ]
    if not offered:
        return []
    element = {"type": "static_select", "action_id": identifier, **_options(offered[: MAX_OPTIONS * groups])}
    if picked:
        element["initial_option"] = offered[0]
    field = {"type": "input", "block_id": identifier, "element": element, "optional": not picked}
    return [field | {"label": _plain(label, MAX_BUTTON_TEXT)}]


def option(label: str, value: str, url: str = "") -> Block:
    """Return an entry of a menu, which opens a page if `url` is not empty."""
    entry: Block = {"text": _plain(label, MAX_OPTION_TEXT), "value": value}
    return entry | ({"url": url} if 0 < len(url) <= MAX_OPTION_URL else {})


def menu(label: str, action_id: str, groups: Sequence[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Return a menu with titled groups of options; empty if there are no valid options."""
    offered = [(title, _accepted(options)) for title, options in groups]
    shown = [{"label": _plain(title, MAX_OPTION_TEXT), "options": options} for title, options in offered if options]
    if not shown:
        return []
    return [
        {
            "type": "static_select",
            "action_id": action_id,
            "placeholder": _plain(label, MAX_OPTION_TEXT),
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
    first, last = (cut(option["text"]["text"], MAX_OPTION_TEXT // 2 - 2) for option in (group[0], group[-1]))
    return _plain(f"{first} – {last}", MAX_OPTION_TEXT)


def _plain(text: str, limit: int) -> Block:
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
    """Return Slack's own feedback buttons for a positive and a negative control; empty without both."""
    if len(rated) != 2:
        return []
    positive, negative = ((each.label, f"{each.verdict}{SEPARATOR}{each.subject}") for each in rated)
    return [feedback(f"{ACTION_PREFIX}{RATE}", positive, negative)]


def _option(control: Control) -> Block:
    if control.verdict is None:
        return option(control.label, OPENED, web_address(control.url))
    return option(control.label, f"{control.verdict}{SEPARATOR}{control.subject}")


def dotted(*parts: str) -> str:
    """Join the non-empty parts with dots."""
    return " · ".join(filter(None, parts))
