"""Prompts of the log expert (RCAgent, algorithm 1, lines 15 and 22)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from core.model.language_model import ChatMessage, Role
from core.model_calls.prompts import template
from core.model_calls.prompts.quoted import quoted

Messages = tuple[ChatMessage, ...]

MAX_INTERPRETATIONS = 4  # per chunk
MAX_TOLD = 6  # interpretations kept in the summary
NONE = "(none)"


@dataclass(frozen=True, slots=True)
class Interpretation:
    """The meaning of log lines, and the lines as the model claims to have copied them."""

    meaning: Annotated[str, Field(max_length=300)]
    evidence: Annotated[str, Field(max_length=300)]


@dataclass(frozen=True, slots=True)
class ChunkReading:
    """The interpretations of a chunk; empty for normal operation."""

    interpretations: Annotated[tuple[Interpretation, ...], Field(max_length=MAX_INTERPRETATIONS)]


@dataclass(frozen=True, slots=True)
class LogSummary:
    """The summary of a log, and the numbers of the relevant interpretations."""

    summary: Annotated[str, Field(max_length=600)]
    interpretations: Annotated[tuple[int, ...], Field(max_length=MAX_TOLD)]


def read_chunk(chunk: str, examples: Sequence[str]) -> Messages:
    """Return a prompt whose reply is `ChunkReading`. `examples` are rendered by `example`."""
    prompt = template("rca_log_chunk").substitute(chunk=quoted(chunk), examples="\n".join(examples) or NONE)
    return (ChatMessage(Role.USER, prompt),)


def example(title: str, cause: str) -> str:
    """Return an earlier incident as a line of a prompt."""
    return quoted(f"- {_line(title)} → {_line(cause)}")


def summarise(interpretations: Sequence[Interpretation]) -> Messages:
    """Return a prompt whose reply is `LogSummary`."""
    listed = "\n".join(
        f"{number}. {_line(each.meaning)}\n{each.evidence}" for number, each in enumerate(interpretations, start=1)
    )
    return (ChatMessage(Role.USER, template("rca_log_summary").substitute(interpretations=quoted(listed))),)


def _line(text: str) -> str:
    return " ".join(text.split())
