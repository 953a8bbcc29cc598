"""Shared parts of messages: their shape, buttons and small elements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.mrkdwn import ELLIPSIS, escape, web_address
from core.incidents.incident_layout import RIGHT_OR_WRONG, Judged
from core.model.badge import Badge
from core.model.messages import BUTTON_LABELS, ButtonAction, Control

ACTION_PREFIX = "feedback:"  # prefix of a button's action id, followed by the action; the button's value is its subject
JUDGE_MENU, MORE_MENU = "judge", "more"  # action ids of menus, whose selected value contains the action
SEPARATOR = "|"  # between the action and its subject in a selected value
OPENED = "opened"  # the value of an entry that only opens a page

LINE = 250  # characters of one line of text
NAME = 80  # characters of a name or a badge


@dataclass(frozen=True, slots=True)
class Rendered:
    """Blocks, and the text for notifications and screen readers."""

    text: str
    blocks: list[Block]


def fallback(parts: Iterable[str]) -> str:
    return escape(" · ".join(filter(None, parts)), blocks.MAX_FALLBACK) or ELLIPSIS


def section(mrkdwn: str) -> list[Block]:
    """Return a section; empty for empty text."""
    return [blocks.section(mrkdwn)] if mrkdwn else []


def context(mrkdwn: str) -> list[Block]:
    """Return small grey text; empty for empty text."""
    return [blocks.context(mrkdwn)] if mrkdwn else []


def feedback_buttons(offered: Iterable[tuple[ButtonAction, str]]) -> list[Block]:
    """Return a button for each action and the prediction or incident that it is about."""
    buttons = [_button(BUTTON_LABELS[verdict], verdict, subject) for verdict, subject in offered]
    return [blocks.actions(buttons)] if buttons else []


def control_elements(buttons: Sequence[Control], judging: Sequence[Judged], more: Sequence[Control]) -> list[Block]:
    """Return the controls of a message: buttons, one menu for judgements, and an overflow menu for the rest."""
    elements = [_button(each.label, each.verdict, each.subject) for each in buttons if each.verdict is not None]
    groups = [(each.claim, [_option(control) for control in each.controls]) for each in judging]
    return [
        *elements,
        *blocks.menu(RIGHT_OR_WRONG, f"{ACTION_PREFIX}{JUDGE_MENU}", groups),
        *blocks.overflow(f"{ACTION_PREFIX}{MORE_MENU}", [_option(each) for each in more]),
    ]


def _button(label: str, verdict: ButtonAction, subject: str) -> Block:
    return blocks.button(label, f"{ACTION_PREFIX}{verdict}", subject, primary=verdict is ButtonAction.TAKE_IT)


def _option(control: Control) -> Block:
    if control.verdict is None:
        return blocks.option(control.label, OPENED, web_address(control.url))
    return blocks.option(control.label, f"{control.verdict}{SEPARATOR}{control.subject}")


def badge(badge: Badge | None) -> str:
    return escape(badge.text, NAME) if badge else ""


def minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def second(at: datetime) -> str:
    return f"{at.astimezone(UTC):%m-%d %H:%M:%S}"


def dotted(*parts: str) -> str:
    """Join the non-empty parts with dots."""
    return " · ".join(filter(None, parts))
