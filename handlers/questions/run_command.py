"""Dispatch a message to the command that it names; a message without a command is a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from core.incidents.command import CommandName, parse_command
from core.model.conversation import MAX_MESSAGE, Question, was_cut
from core.model.messages import Notice
from handlers.questions.post_message import Poster

CUT = f"Your message is too long. I read only its first {MAX_MESSAGE:,} characters."


async def run_command(
    question: Question, *, commands: Mapping[CommandName, Callable[[Question], Awaitable[None]]], poster: Poster
) -> None:
    """Run the command with the rest of the message as its text. If the message was truncated, post a notice."""
    command = parse_command(question.text)
    await commands[command.name](replace(question, text=command.argument))
    if was_cut(question.text):
        await poster.post_once(f"cut:{question.id}", question.place, Notice(CUT))
