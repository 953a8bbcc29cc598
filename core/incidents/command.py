"""The words after the bot's name: a command, or a question."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from core.confidence.resolution import is_resolution

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
_WHO_IT_IS = re.compile(
    r"\s*+(?:(?:who|what) (?:are|r) (?:you|u)|who is (?:this|plumbline)|what is (?:this|plumbline)|what['’]?s plumbline"
    r"|(?:are|r) (?:you|u) (?:a |an )?(?:real )?(?:human|person|bot|robot|machine|ai|llm|there|alive))[\s?!.]*+",
    re.IGNORECASE,
)
_WHAT_IT_CAN = re.compile(
    r"\s*+(?:what (?:can|do|could) (?:you|u) (?:do|know|offer|help(?: me)? with)|how (?:can|do) (?:you|u) (?:help(?: (?:me|us))?|work)"
    r"|how do i use (?:you|this|plumbline)|what can i ask(?: you)?|can you help(?: me)?)(?: here| for (?:me|us))?[\s?!.]*+",
    re.IGNORECASE,
)
_WHAT_IS_BROKEN = re.compile(
    r"\s*+(?:(?:is (?:anything|something|everything|all|prod(?:uction)?|the site)|what(?: is|['’]s)(?: currently)?|are (?:things|we)|anything)"
    r" (?:broken|down|on fire|failing|wrong|ok(?:ay)?|up|fine|burning|going on|healthy)"
    r"|(?:(?:are|is) there )?(?:any|an)(?: (?:open|active|current|ongoing))? (?:incidents?|outages?|alerts?)(?: open)?"
    r"|(?:what|which)(?: incidents?| alerts?) (?:is|are) (?:open|active|ongoing|firing)"
    r"|(?:show|list)(?: me)?(?: the| all)?(?: open| current)? incidents)"
    r"(?: right now| now| at the moment| today| currently)?[\s?!.]*+",
    re.IGNORECASE,
)
_SOMETHING_IS_WRONG = re.compile(
    r"\s*+(?:(?:the |our |my )?(?:site|web ?site|website|app|application|system|platform|prod(?:uction)?|everything|it|internet)"
    r"(?: is|['’]s| seems| looks| feels)(?: so| very| really| too| extremely| all| completely)?"
    r" (?:slow|down|broken|dead|unavailable|unreachable|offline|on fire|failing)|nothing works)"
    r"(?: again| right now| now| today| for (?:me|us|everybody|everyone))?[\s!.]*+",
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
    INCIDENTS = "incidents"
    UPDATE = "update"
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
    """Return the command that a message names, or the question that it asks.

    `help`, `home`, `incidents`, `status` and `settings` take no argument, `quiet` takes hours or `off`, and `ask`,
    `triage` and `rca` take the rest. `update` takes a service or an incident's id, or nothing. A question that only
    begins with such a word (“status of the canary?”) stays a question, which is why `correct` needs its colon. A note
    on how an incident ended (“root cause: …”) is kept whole. Empty text is `help`. “Who are you?” is greeted, “what can
    you do?” is `help`, and “is anything broken?” is `incidents`, as is “the site is slow”, which names no service and
    is kept as its argument.
    """
    if (talk := _small_talk(text)) is not None:
        return Command(talk)
    if _SOMETHING_IS_WRONG.fullmatch(text):
        return Command(CommandName.INCIDENTS, text.strip())
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
    if first in (CommandName.HELP, CommandName.STATUS, CommandName.INCIDENTS, CommandName.HOME, CommandName.SETTINGS):
        return Command(CommandName(first)) if not rest else Command(CommandName.ASK, text.strip())
    if first == CommandName.UPDATE and len(rest.split()) <= 1:
        return Command(CommandName.UPDATE, rest.strip())
    if first == CommandName.MAINTENANCE and read_maintenance(rest) is not None:
        return Command(CommandName.MAINTENANCE, rest)
    if first in (CommandName.TRIAGE, CommandName.RCA):
        return Command(CommandName(first), rest)
    return Command(CommandName.ASK, rest if first == CommandName.ASK and rest else text.strip())


def _small_talk(text: str) -> CommandName | None:
    """Return the command that a greeting, thanks, or a question about the bot or the state means; None for other text."""
    if _HELLO.fullmatch(text) or _WHO_IT_IS.fullmatch(text):
        return CommandName.HELLO
    if _WHAT_IT_CAN.fullmatch(text):
        return CommandName.HELP
    if _WHAT_IS_BROKEN.fullmatch(text):
        return CommandName.INCIDENTS
    return CommandName.THANKS if _THANKS.fullmatch(text) else None


LONGEST = timedelta(days=14)
MAX_REASON = 200  # characters that are kept

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_WORDS = re.compile(
    r"\s*+(?:(?P<ended>end)\s++(?P<over>\S{1,200})"
    r"|(?P<service>\S{1,200})\s++(?P<count>\d{1,5})\s*+(?P<unit>[mhd])(?:in(?:utes?)?|ours?|ays?)?\b[\s,:.–-]*+(?P<reason>.*))?\s*+",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class MaintenanceWish:
    """A request about maintenance. `service` is empty to list the windows; `length` is None to end the service's."""

    service: str = ""
    length: timedelta | None = None
    reason: str = ""


def read_maintenance(text: str) -> MaintenanceWish | None:
    """Return the request in “payments 2h new ledger”, “end payments” or empty text (a list); None for any other text.

    A window lasts at most LONGEST.
    """
    match = _WORDS.fullmatch(text)
    if match is None:
        return None
    if match["ended"]:
        return MaintenanceWish(match["over"])
    if not match["service"]:
        return MaintenanceWish()
    length = min(timedelta(**{_UNITS[match["unit"].lower()]: int(match["count"])}), LONGEST)
    return MaintenanceWish(match["service"], length, " ".join(match["reason"].split())[:MAX_REASON]) if length else None
