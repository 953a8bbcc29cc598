"""Prompts for root-cause analysis (RCAgent, sections 3 and 3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from core.model.language_model import ChatMessage, Role
from core.model.trajectory import Finding, Step
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted
from core.ports import Tool

Messages = tuple[ChatMessage, ...]


def opening(incident: str, tools: Sequence[Tool], steps: int) -> Messages:
    """Return the system prompt (rules, task and tools) and the incident."""
    return (
        ChatMessage(
            Role.SYSTEM, template("rca_system").substitute(tools="\n".join(map(_documented, tools)), steps=steps)
        ),
        ChatMessage(Role.USER, template("rca_incident").substitute(incident=quoted(incident))),
    )


def step_taken(step: Step) -> Messages:
    """Return a step as two messages: the model's reply, and its observation or fault."""
    if step.action is None or step.fault:
        answer = template("rca_fault").substitute(advice=_line(step.fault))  # it names what others named
    else:
        answer = template("rca_observation").substitute(
            tool=step.action.tool, key=step.snapshot, shown=quoted(step.shown)
        )
    return ChatMessage(Role.ASSISTANT, step.reply), ChatMessage(Role.USER, answer)


def aggregate(findings: Sequence[Finding]) -> Messages:
    """Return the prompt that merges findings about one cause into one (section 3.4.1)."""
    reports = "\n\n".join(
        f"Report {number}: {_line(each.root_cause)}\nSolution: {_line(each.solution)}\nDisproof: {_line(each.disproof)}\n"
        f"Evidence:\n" + "\n".join(f"- {_line(quote)}" for quote in each.evidence)
        for number, each in enumerate(findings, start=1)
    )
    return (ChatMessage(Role.USER, template("rca_aggregate").substitute(reports=quoted(reports))),)


def _line(text: str) -> str:
    return " ".join(text.split())


def _documented(tool: Tool) -> str:
    names = ", ".join(parameter.name for parameter in tool.parameters)
    explained = " ".join(f"{parameter.name}: {parameter.description}." for parameter in tool.parameters)
    return f"- {tool.name}({names}): {tool.description} {explained}".rstrip()
