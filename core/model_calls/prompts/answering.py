"""Prompts to restate a question, and to choose the excerpt that answers it.

Untrusted text is between fences that it cannot contain. All prompts about one question begin with the same bytes, up to
its end, so that a server reads the excerpts once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.conversation import Turn
from core.model.language_model import ChatMessage, Role
from core.model_calls.choice import NONE
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import Named, beginning, quoted

Messages = tuple[ChatMessage, ...]

NAME_CHARACTERS = 60  # in the name of an excerpt

QuestionText = Annotated[str, Field(min_length=1, max_length=300)]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A message as a standalone question, in its own language and in English."""

    follow_up: bool
    question: QuestionText
    language: Annotated[str, Field(max_length=30)]
    english: QuestionText


def rewrite(question: str, history: Sequence[Turn]) -> Messages:
    """Return the prompt that is to be answered with `Rewritten`."""
    turns = "\n".join(turn_line(turn) for turn in history)
    return _messages(template("answering_rewrite").substitute(history=turns or "(none)", question=quoted(question)))


def choose(excerpts: Sequence[Named], question: str) -> Messages:
    """Return the prompt that is to be answered with the name of an excerpt or NONE.

    A small model copies the heading of the section that it has found; asked for a number, it guesses.
    """
    return _messages(_excerpts(excerpts, question) + template("answering_choose").substitute(none=NONE))


def call_tool(tools: Sequence[str], question: str) -> Messages:
    """Return the prompt that is to be answered with the tool and the service, as JSON."""
    return _messages(template("answering_call_tool").substitute(tools=", ".join(tools), question=quoted(question)))


def distinct_names(sources: Sequence[tuple[str, str]]) -> list[str]:
    """Return a short, unique name for each excerpt, given titles and headings: the heading alone if it is unique."""
    headings = [" ".join((heading or title).split()) for title, heading in sources]
    names: list[str] = []
    for (title, _), heading in zip(sources, headings, strict=True):
        name = heading if headings.count(heading) == 1 else f"{heading} ({' '.join(title.split())})"
        name = name[:NAME_CHARACTERS].strip() or "untitled"
        same = sum(each == name or each.startswith(f"{name} #") for each in (*names, NONE))
        names.append(f"{name} #{same + 1}" if same else name)
    return names


def turn_line(turn: Turn) -> str:
    """Return a turn of the conversation as a line of a prompt: JSON with escaped line ends."""
    return quoted(json.dumps({turn.speaker: turn.text}, ensure_ascii=False))


def _excerpts(excerpts: Sequence[Named], question: str) -> str:
    listed = "\n\n".join(f"# {excerpt.name}\n{beginning(excerpt.text)}" for excerpt in excerpts)
    return template("answering_excerpts").substitute(excerpts=quoted(listed), question=quoted(question))


def _messages(task: str) -> Messages:
    return (
        ChatMessage(Role.SYSTEM, template("answering_system").substitute()),
        ChatMessage(Role.USER, task),
    )
