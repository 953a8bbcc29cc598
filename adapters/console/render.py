"""Rendering of HTML. The templates escape everything; only `document.py` generates markup from text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from adapters.console.document import render_inline, render_mrkdwn, render_statement
from adapters.console.template_names import GLOBALS, TESTS
from adapters.diagrams import reliability_svg
from core.answering.answer_view import answer_view
from core.incidents.incident_view import incident_view
from core.model.answer import Answer
from core.model.curated import CuratedAnswer
from core.model.incident import Incident
from core.model.messages import (
    ButtonAction,
    CorrectionRequest,
    FilingRequest,
    HandoverRequest,
    IncidentMessage,
    JoinRequest,
)

TEMPLATES = Path(__file__).with_name("templates")

MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds


class Renderer:
    """Renders the templates. `now` returns the time, for ages and to omit today's date."""

    def __init__(self, now: Callable[[], datetime], workspace_name: str) -> None:
        self._now = now
        self._workspace_name = workspace_name

    def page(self, template: str, **values: Any) -> str:
        return self._environment.get_template(template).render(values)

    def fragment(self, template: str, macro: str, *arguments: Any) -> str:
        """Render one macro of a template."""
        return str(getattr(self._environment.get_template(template).module, macro)(*arguments))

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "inline": render_inline,
            "diagram": diagram,
            "statement": render_statement,
            "mrkdwn": render_mrkdwn,
            "time": self._time,
            "day": self._day,
            "ago": self._ago,
            "duration": _duration,
            "web_url": web_url,
            "fingerprint": fingerprint,
            "one_line": _one_line,
        }
        environment.tests |= TESTS
        environment.globals |= GLOBALS | {"workspace_name": self._workspace_name, "verdict_subjects": verdict_subjects}
        return environment

    def _time(self, at: datetime) -> Markup:
        """Return a time in short form, with the full time as a tooltip."""
        at, today = at.astimezone(UTC), self._now().astimezone(UTC).date()
        day = "" if at.date() == today else f"{at.day} {at:%b} " if at.year == today.year else f"{at.day} {at:%b %Y} "
        return _time_element(at, f"{day}{at:%H:%M}")

    def _day(self, at: datetime) -> Markup:
        at = at.astimezone(UTC)
        return _time_element(at, f"{at.day} {at:%b}" if at.year == self._now().year else f"{at.day} {at:%b %Y}")

    def _ago(self, at: datetime) -> Markup:
        age = self._now() - at
        return _time_element(at.astimezone(UTC), "just now" if age < timedelta(minutes=1) else f"{_duration(age)} ago")


def verdict_subjects(
    content: Answer | Incident | CorrectionRequest | HandoverRequest | JoinRequest | FilingRequest | CuratedAnswer,
) -> dict[ButtonAction, str]:
    """Return the buttons that can be pressed here, each with the id of its subject."""
    if isinstance(content, Answer):
        return answer_view(content).subjects
    if isinstance(content, CorrectionRequest):
        return {ButtonAction.CORRECTION: content.prediction_id}
    if isinstance(content, HandoverRequest):
        return dict.fromkeys((ButtonAction.REASSIGN, ButtonAction.NOT_OURS), content.subject)
    if isinstance(content, JoinRequest):
        return {ButtonAction.JOIN: content.incident_id}
    if isinstance(content, CuratedAnswer):
        return {} if content.is_confirmed else {ButtonAction.CONFIRM: content.id}
    if isinstance(content, FilingRequest):
        return {ButtonAction.FILE: content.incident_id}
    return incident_view(IncidentMessage(content)).subjects


def diagram(title: str, shown: Sequence[float], correct: Sequence[bool]) -> Markup:
    """Return the reliability diagram as an `svg` element. Needs at least one prediction."""
    return Markup(reliability_svg(title, np.array(shown), np.array(correct, dtype=np.float64)))  # noqa: S704 -- escaped there


def web_url(url: str) -> str:
    """Return the address if it is a web address; empty for `javascript:` and other schemes."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return url if parts.scheme in ("http", "https") and parts.netloc else ""


def fingerprint(incidents: Sequence[Incident]) -> str:
    """Return a digest that changes with any of these incidents, and with their selection."""
    state = "\n".join(f"{incident.id} {incident.revision}" for incident in incidents)
    return hashlib.blake2b(state.encode(), digest_size=8).hexdigest()


def _time_element(at: datetime, text: str) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(timespec="seconds"), f"{at:%Y-%m-%d %H:%M:%S} UTC", text
    )


def _duration(length: timedelta) -> str:
    seconds = max(0, int(length.total_seconds()))
    if seconds < MINUTE:
        return f"{seconds} s"
    if seconds < HOUR:
        return f"{seconds // MINUTE} min"
    if seconds < DAY:
        return f"{seconds // HOUR} h {seconds % HOUR // MINUTE} min"
    return f"{seconds // DAY} d {seconds % DAY // HOUR} h"


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
