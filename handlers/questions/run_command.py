"""The words after the bot's name go to the behaviour that they name; without one they are a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from core.incidents.command import CommandName, parse_command
from core.model.conversation import Question


async def run_command(
    question: Question, *, commands: Mapping[CommandName, Callable[[Question], Awaitable[None]]]
) -> None:
    """Run the command with what follows its name as the question's text."""
    command = parse_command(question.text)
    await commands[command.name](replace(question, text=command.argument))
