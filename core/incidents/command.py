"""The words after the bot's name: a command, or a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from core.confidence.resolution import is_resolution
from core.incidents.maintenance import read_maintenance

_CORRECTION = re.compile(r"\s*correct(?:ion)?\s*:", re.IGNORECASE)
_THANKS = re.compile(
    r"\s*(?:(?:ok(?:ay)?|great|perfect|awesome|nice|cool|works?|that works?|it works?|got it|yes)\b[\s,.!]*)*"
    r"(?:thanks|thank you|many thanks|thx|ty|cheers|danke|merci|gracias|obrigad[oa]|grazie|谢谢|ありがとう|감사합니다)"
    r"(?:\s+(?:you|a lot|so much|very much|again|all|both|everyone|sch[öo]n|beaucoup|plumbline|for (?:the|your) help))*"
    r"(?:[\s,.!]*(?:that|it|this) (?:works?|worked|helps?|helped|did it))?"
    r"[\s.!:)🙏🎉👍❤️]*",
    re.IGNORECASE,
)

_HELLO = re.compile(
    r"\s*(?:hello|hi|hey|hallo|good (?:morning|afternoon|evening))[\s,.!]*+(?:there|plumbline)?[\s.!👋]*+",
    re.IGNORECASE,
)
_QUIET_HOURS = re.compile(r"(?:off|\d.*)?", re.IGNORECASE | re.DOTALL)


class CommandName(StrEnum):
    ASK = "ask"
    TRIAGE = "triage"
    RCA = "rca"
    CORRECT = "correct"
    RESOLUTION = "resolution"
    THANKS = "thanks"
    MAINTENANCE = "maintenance"
    STATUS = "status"
    HOME = "home"
    SETTINGS = "settings"
    QUIET = "quiet"
    HELLO = "hello"
    HELP = "help"


@dataclass(frozen=True, slots=True)
class Command:
    name: CommandName
    argument: str = ""


def parse_command(text: str) -> Command:
    """`help`, `home`, `status` and `settings` stand alone; `quiet` takes hours or `off`; `ask`, `triage` and `rca` take the rest.

    Anything else is a question.
    A question that merely begins with such a word ("status of the canary?") stays a question; so `correct` needs its
    colon. Words of thanks are none. A note of how an incident ended (“root cause: …”) is taken whole. Empty text is
    `help`.
    """
    if _HELLO.fullmatch(text):
        return Command(CommandName.HELLO)
    if _THANKS.fullmatch(text):
        return Command(CommandName.THANKS)
    if correction := _CORRECTION.match(text):
        return Command(CommandName.CORRECT, text[correction.end() :].strip())
    if is_resolution(text):
        return Command(CommandName.RESOLUTION, text.strip())
    words = text.strip().split(maxsplit=1)
    if not words:
        return Command(CommandName.HELP)
    first, rest = words[0].lower(), words[1] if len(words) > 1 else ""
    if first == CommandName.QUIET and _QUIET_HOURS.fullmatch(rest):
        return Command(CommandName.QUIET, rest)
    if first in (CommandName.HELP, CommandName.STATUS, CommandName.HOME, CommandName.SETTINGS):
        return Command(CommandName(first)) if not rest else Command(CommandName.ASK, text.strip())
    if first == CommandName.MAINTENANCE and read_maintenance(rest) is not None:
        return Command(CommandName.MAINTENANCE, rest)
    if first in (CommandName.TRIAGE, CommandName.RCA):
        return Command(CommandName(first), rest)
    if first == CommandName.ASK and rest:
        return Command(CommandName.ASK, rest)
    return Command(CommandName.ASK, text.strip())
