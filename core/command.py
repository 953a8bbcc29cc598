"""The words after the bot's name: a command, or a question."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class CommandName(StrEnum):
    ASK = "ask"
    TRIAGE = "triage"
    RCA = "rca"
    STATUS = "status"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Command:
    name: CommandName
    argument: str = ""


def parse_command(text: str) -> Command:
    """`help` and `status` stand alone; `ask`, `triage` and `rca` take the rest; anything else is a question.

    A question that merely begins with such a word ("status of the canary?") stays a question. Empty text is `help`.
    """
    words = text.strip().split(maxsplit=1)
    if not words:
        return Command(CommandName.HELP)
    first, rest = words[0].lower(), words[1] if len(words) > 1 else ""
    if first in (CommandName.HELP, CommandName.STATUS):
        return Command(CommandName(first)) if not rest else Command(CommandName.ASK, text.strip())
    if first in (CommandName.TRIAGE, CommandName.RCA):
        return Command(CommandName(first), rest)
    if first == CommandName.ASK and rest:
        return Command(CommandName.ASK, rest)
    return Command(CommandName.ASK, text.strip())
