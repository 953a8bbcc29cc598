"""Prompts for estimating confidence (LM-PACE, sections 4.2 and 4.3, figure 5).

All prompts about one case share the same prefix: the records and the case.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted

Messages = tuple[ChatMessage, ...]

YES = "Yes"
YES_NO = (YES, "No")
SCALE = ("1", "2", "3", "4", "5")


def coe_analysis(references: Sequence[str], situation: str) -> Messages:
    """Return a prompt for an analysis of whether the references can settle the case."""
    return _messages(references, situation, template("confidence_coe_analysis").substitute())


def rce_analysis(references: Sequence[str], situation: str, conclusion: str) -> Messages:
    """Return a prompt for an analysis of how far the references support a conclusion, by rubric."""
    instruction = template("confidence_rce_analysis").substitute(conclusion=quoted(conclusion))
    return _messages(references, situation, instruction)


def coe_score(analysis_prompt: Messages, analysis: str) -> Messages:
    """Return a prompt for one of YES_NO, after an analysis."""
    return _continued(analysis_prompt, analysis, "confidence_coe_score")


def rce_score(analysis_prompt: Messages, analysis: str) -> Messages:
    """Return a prompt for one of SCALE, after an analysis."""
    return _continued(analysis_prompt, analysis, "confidence_rce_score")


def _messages(references: Sequence[str], situation: str, instruction: str) -> Messages:
    listed = "\n\n".join(f"{number}. {quoted(reference)}" for number, reference in enumerate(references, start=1))
    case = template("confidence_case").substitute(references=listed or "(none)", situation=quoted(situation))
    return (
        ChatMessage(Role.SYSTEM, template("confidence_system").substitute()),
        ChatMessage(Role.USER, f"{case}\n{instruction}"),
    )


def _continued(prompt: Messages, analysis: str, name: str) -> Messages:
    return (*prompt, ChatMessage(Role.ASSISTANT, analysis), ChatMessage(Role.USER, template(name).substitute()))
