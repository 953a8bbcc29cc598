"""Prompts of the code expert (RCAgent, section 3.2.2, figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted

Messages = tuple[ChatMessage, ...]

MAX_NAMES = 4  # suggested after one definition


@dataclass(frozen=True, slots=True)
class CodeReading:
    """The relevant effect of a definition, and the classes and functions that should be read next."""

    analysis: Annotated[str, Field(max_length=400)]
    read_next: Annotated[tuple[Annotated[str, Field(max_length=100)], ...], Field(max_length=MAX_NAMES)]


@dataclass(frozen=True, slots=True)
class CodeSummary:
    """The summary of all that was read."""

    summary: Annotated[str, Field(max_length=800)]


def read_definition(definition: str, symbol: str) -> Messages:
    """Return a prompt whose reply is `CodeReading`. `symbol` is the name with which reading began."""
    prompt = template("rca_code_read").substitute(definition=quoted(definition), symbol=quoted(symbol))
    return (ChatMessage(Role.USER, prompt),)


def summarise(analyses: Sequence[str], symbol: str) -> Messages:
    """Return a prompt whose reply is `CodeSummary`."""
    prompt = template("rca_code_summary").substitute(analyses=quoted("\n\n".join(analyses)), symbol=quoted(symbol))
    return (ChatMessage(Role.USER, prompt),)
