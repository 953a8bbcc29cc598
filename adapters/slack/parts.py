"""What the messages have in common: their shape, their buttons and the small parts in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from adapters.slack import blocks
from adapters.slack.blocks import Block
from adapters.slack.mrkdwn import ELLIPSIS, escape
from core.confidence.badge import Badge
from core.messages import VERDICT_LABELS, Verdict

ACTION_PREFIX = "feedback:"  # of a button's action id; the verdict follows, and the value is its subject

LINE = 250  # characters of one line of text
NAME = 80  # characters of a name or a badge


@dataclass(frozen=True, slots=True)
class Rendered:
    """Blocks, and the line that stands in for them in a notification or a screen reader."""

    text: str
    blocks: list[Block]


def fallback(parts: Iterable[str]) -> str:
    return escape(" · ".join(filter(None, parts)), blocks.MAX_FALLBACK) or ELLIPSIS


def section(mrkdwn: str) -> list[Block]:
    """A section, none for an empty text."""
    return [blocks.section(mrkdwn)] if mrkdwn else []


def context(mrkdwn: str) -> list[Block]:
    """Small grey text, none for an empty text."""
    return [blocks.context(mrkdwn)] if mrkdwn else []


def titled(title: str, lines: Sequence[str], noun: str, limit: int) -> list[Block]:
    """A section with a title above its lines, none without lines."""
    return section(f"*{title}*\n{blocks.listing(lines, noun, limit)}" if lines else "")


def feedback_buttons(offered: Iterable[tuple[Verdict, str]]) -> list[Block]:
    """A button for each verdict and the prediction or incident that it is about."""
    buttons = [
        blocks.button(VERDICT_LABELS[verdict], f"{ACTION_PREFIX}{verdict}", subject, primary=verdict is Verdict.TAKE_IT)
        for verdict, subject in offered
    ]
    return [blocks.actions(buttons)] if buttons else []


def badge(badge: Badge | None) -> str:
    return escape(badge.text, NAME) if badge else ""


def badge_footnote(badge: Badge | None) -> str:
    return f"{escape(badge.text, NAME)} · {escape(badge.explanation, LINE)}" if badge else ""


def minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def second(at: datetime) -> str:
    return f"{at.astimezone(UTC):%m-%d %H:%M:%S}"


def dotted(*parts: str) -> str:
    """The parts that are not empty, with dots between them."""
    return " · ".join(filter(None, parts))
