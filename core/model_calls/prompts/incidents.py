"""Prompts that let a model choose an incident's cause or owner among the candidates of the evidence engine.

Both begin with the same bytes, the past incidents and then the current one, so that a server reads them once.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import NONE
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import Named, beginning, quoted

SITUATION_CHARACTERS = 1_500  # read of the current incident
PAST_CHARACTERS = 300  # read of a past incident

Messages = tuple[ChatMessage, ...]


def choose_cause(past: Sequence[str], situation: str, candidates: Sequence[Named]) -> Messages:
    """Return the prompt that is answered with the name of a cause or NONE."""
    return _messages("incident_choose_cause", past, situation, candidates)


def choose_owner(past: Sequence[str], situation: str, candidates: Sequence[Named]) -> Messages:
    """Return the prompt that is answered with the name of a team or NONE."""
    return _messages("incident_choose_owner", past, situation, candidates)


def _messages(task: str, past: Sequence[str], situation: str, candidates: Sequence[Named]) -> Messages:
    over = "\n".join(f"- {beginning(' '.join(each.split()), PAST_CHARACTERS)}" for each in past)
    opening = template("incident_opening").substitute(
        past=quoted(over) or "(none)", situation=quoted(beginning(situation, SITUATION_CHARACTERS))
    )
    listed = "\n\n".join(f"# {each.name}\n{beginning(each.text)}" for each in candidates)
    return (
        ChatMessage(Role.SYSTEM, template("incident_system").substitute()),
        ChatMessage(Role.USER, opening + template(task).substitute(candidates=quoted(listed), none=NONE)),
    )
