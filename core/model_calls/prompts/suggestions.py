"""Prompts about an incident's severity, and about whether it duplicates a known one."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts.quoted import quoted
from core.model_calls.prompts.template import template

Messages = tuple[ChatMessage, ...]

YES = "Yes"
YES_NO = (YES, "No")


def severity(references: Sequence[str], situation: str, choices: Sequence[str]) -> Messages:
    """Return a prompt whose reply is one of `choices`."""
    listed = "\n\n".join(map(quoted, references)) or "(none)"
    return _asked("suggestions_severity", references=listed, situation=quoted(situation), choices=", ".join(choices))


def duplicate(known: str, situation: str, evidence: Sequence[str]) -> Messages:
    """Return a prompt whose reply is one of YES_NO."""
    return _asked(
        "suggestions_duplicate", known=quoted(known), situation=quoted(situation), evidence="; ".join(evidence)
    )


def _asked(name: str, **places: str) -> Messages:
    rules = ChatMessage(Role.SYSTEM, template("suggestions_system").substitute())
    return (rules, ChatMessage(Role.USER, template(name).substitute(places)))
