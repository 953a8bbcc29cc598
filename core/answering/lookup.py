"""A question that the workspace's own records answer: owners, on-call rotas, changes, incidents and runbooks.

A question is looked up only if its last clause asks for a fact of a known service, team or alert and says nothing else: any
word that is neither a known name, nor a time, nor one of the few that ask for such a fact leaves it to the documents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from rapidfuzz import fuzz, process

from core.knowledge.terms import STOP_WORDS
from core.model.conversation import Speaker, Turn
from core.model.team import Team
from core.ports import TimeWindow

MAX_QUESTION = 300  # characters of a question that is looked up; a longer one says more than that
ALIKE = 88.0  # of 100: from this similarity on a word is taken for a misspelt name
SHORTEST_MISSPELT = 5  # characters
RECENT = timedelta(days=7)  # looked at where a question names no time


class Fact(StrEnum):
    ON_CALL = "on call"
    OWNER = "owner"
    RUNBOOK = "runbook"
    CHANGES = "changes"
    INCIDENTS = "incidents"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What is asked for. `service`, `team` (an id) and `alert` are known names; at most one of them is not empty.

    `window` is the time that is asked about, None where the question names none; `misspelt` is the word that was taken for
    the name, empty where the name stands as it is known. `later` asks who is on call next. `claimed` are the words that ask for the owner of a
    thing that has no known name.
    """

    fact: Fact
    service: str = ""
    team: str = ""
    alert: str = ""
    window: TimeWindow | None = None
    later: bool = False
    misspelt: str = ""
    claimed: str = ""


# The words that ask for each fact, in the languages that people here write to a bot in; the first fact that matches is asked for.
_ASKS = {
    Fact.ON_CALL: r"on[- ]?call|page|pager|rota|on duty|bereitschaft|d['’]astreinte|de guardia",
    Fact.OWNER: r"owns?|owned|owners?|ownership|responsible|maintains?|maintainers?|whose|(?:which|what) team|belongs?"
    r"|eigentümer\w*|gehört|verantwortlich|zuständig|wem",
    Fact.RUNBOOK: r"run-?books?|play-?books?",
    Fact.CHANGES: r"changed|changes|(?:any|last|latest|recent|what) change|deploy(?:s|ed|ments?)?|releases?|released|rolled out|shipped|geändert|änderung(?:en)?",
    Fact.INCIDENTS: r"incidents?|outages?|down|firing|degraded|störung(?:en)?|vorfälle?|ausfall",
}
_FACTS = {fact: re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE) for fact, pattern in _ASKS.items()}
_ASKS_FOR_A_RECORD = re.compile(
    r"^\W*(?:(?:so|and|also|ok(?:ay)?|hi|hello|hey|please|und|then)\W+)*"
    r"(?:who|whose|what|which|whats|any|is|are|was|were|did|has|have|when (?:was|did)|list|show|tell|give|recent|latest|last"
    r"|wer|wem|was|welche\w*|ist|gibt|gab|wurde)\b",
    re.IGNORECASE,
)
_NO_RECORD = re.compile(r"\b(?:how|why|wie|warum)\b", re.IGNORECASE)
_ADVICE = re.compile(r"\b(?:can|may|might|should|could|would|must|do|does|kann|darf|soll)\b", re.IGNORECASE)
_LATER = re.compile(r"\b(?:next|after|afterwards|then|later|upcoming)\b", re.IGNORECASE)
_FILLER = STOP_WORDS | frozenset(
    "whats who's currently current today now right present next first later team teams service services component person "
    "people somebody contact engineer engineers name names list show give latest recent recently last ongoing open active "
    "alert alerts problem problems part involved affected made live prod production call answer reach week turn there make "
    "primary secondary schedule status wer wem was welche welches welcher ist sind hat haben der die das den dem für von "
    "vom an am in im gerade jetzt heute es ein eine einen dienst team wurde gibt gab zu bei und runs run looks".split()
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|there|they|them|their|that|this|those|these|dort|davon|dafür|es)\b|^\W*(?:and|und|so)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<=[?!])\s+|(?<=[a-z0-9])\.\s+|\n+|(?<!\s)\s++[-–—]++\s+|;\s*")
_ALERT = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Z]+[a-z0-9]+(?:[A-Z]+[a-z0-9]*)+\b")
_JOINERS = re.compile(r"[-_ ]+")
_WORD = re.compile(r"[^\W_][\w.@/'’-]*")

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_MONTH = rf"(?:{'|'.join(month[:3] + '[a-z]*' for month in _MONTHS)})"
_TIME = re.compile(
    r"\b(?P<since>since|seit|from|after)?\s*(?:\b(?:on|the|in|within|over|am)\s+){0,4}"
    r"(?:(?P<today>today|heute)|(?P<yesterday>yesterday|gestern)"
    r"|(?P<this_week>this week)"
    r"|(?:last|past|previous)\s+(?:(?P<count>\d{1,3})\s+)?(?P<unit>minute|hour|day|week)s?"
    r"|(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<month>{_MONTH})(?:,?\s+(?P<year>\d{{4}}))?"
    rf"|(?P<month2>{_MONTH})\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year2>\d{{4}}))?"
    rf"|(?P<weekday>{'|'.join(_DAYS)})"
    r"|(?P<clock>\d{1,2}:\d{2})(?:\s*utc)?)(?!\w)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Names:
    """The names that a question is looked for in: services, the teams with all that they are called, and alerts."""

    services: frozenset[str]
    teams: Sequence[Team] = ()
    alerts: frozenset[str] = field(default=frozenset[str]())

    @cached_property
    def known(self) -> Mapping[str, Lookup]:
        """Every name in lower case, with spaces for hyphens, with what it names."""
        called = [(name, team) for team in self.teams for name in (*team.aliases, team.name, team.id)]
        found = {_plain(alert): Lookup(Fact.RUNBOOK, alert=alert) for alert in self.alerts}
        found |= {_plain(name): Lookup(Fact.OWNER, team=team.id) for name, team in called}
        return found | {_plain(service): Lookup(Fact.OWNER, service=service) for service in sorted(self.services)}

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Any of the names, the longest first; a hyphen may be written as a space or an underscore."""
        longest_first = sorted(self.known, key=len, reverse=True)
        spelt = "|".join(re.escape(name).replace(r"\ ", r"[-_ ]") for name in longest_first) or r"(?!)"
        return re.compile(rf"(?<![\w-])(?:{spelt})(?=['’]s?(?!\w)|(?![\w-]))", re.IGNORECASE)

    def owner(self, service: str) -> Team | None:
        """Return the team that a service belongs to."""
        return next((team for team in self.teams if service in team.services), None)


def lookup(question: str, history: Sequence[Turn], names: Names, now: datetime) -> Lookup | None:
    """Return what of the records is asked for; None if the documents are asked."""
    if len(question) > MAX_QUESTION:
        return None
    clause = next((each for each in reversed(_CLAUSE.split(question.strip())) if _WORD.search(each)), "")
    fact = next((fact for fact, pattern in _FACTS.items() if pattern.search(clause)), None)
    if fact is None or _NO_RECORD.search(clause):
        return None
    if fact in (Fact.CHANGES, Fact.INCIDENTS) and (not _ASKS_FOR_A_RECORD.match(clause) or _ADVICE.search(clause)):
        return None  # “pricing is down”, “can I release pricing on Friday”
    window, untimed = period(clause, now)
    mentioned = list(dict.fromkeys(_plain(each) for each in names.pattern.findall(untimed)))
    rest = names.pattern.sub(" ", untimed)
    alert = _ALERT.search(rest) if fact is Fact.RUNBOOK else None
    if alert is not None:
        rest = rest.replace(alert[0], " ")
    for pattern in _FACTS.values():
        rest = pattern.sub(" ", rest)
    left = [word for word in (each.rstrip(".'’-") for each in _WORD.findall(rest)) if word.lower() not in _FILLER]
    if alert is not None and not mentioned and not left:
        return Lookup(fact, alert=alert[0], window=window)
    if left and not (len(left) == 1 and not mentioned):
        return Lookup(fact, claimed=untimed) if fact is Fact.OWNER else None
    if left:
        return _misspelt(left[0], fact, untimed, names, window)
    if not mentioned and _POINTS_BACK.search(clause):
        mentioned = _mentioned_before(history, names)
    if not mentioned:
        return Lookup(fact, window=window) if fact is Fact.CHANGES and window is not None else None
    if len(mentioned) > 1:
        return None
    found = _about(fact, names.known[mentioned[0]], window)
    return replace(found, later=bool(_LATER.search(rest))) if found is not None else None


def _about(fact: Fact, named: Lookup, window: TimeWindow | None, misspelt: str = "") -> Lookup | None:
    if (named.alert != "") != (fact is Fact.RUNBOOK):
        return None
    return Lookup(fact, named.service, named.team, named.alert, window, misspelt=misspelt)


def _misspelt(word: str, fact: Fact, clause: str, names: Names, window: TimeWindow | None) -> Lookup | None:
    otherwise = Lookup(fact, claimed=clause) if fact is Fact.OWNER else None
    if len(word) < SHORTEST_MISSPELT:
        return otherwise
    near = process.extract(_plain(word), names.known.keys(), scorer=fuzz.ratio, score_cutoff=ALIKE, limit=2)
    if not near or (len(near) > 1 and near[0][1] == near[1][1]):
        return otherwise
    return _about(fact, names.known[near[0][0]], window, word) or otherwise


def _mentioned_before(history: Sequence[Turn], names: Names) -> list[str]:
    """The names in the latest earlier question that holds any."""
    for turn in reversed(history):
        if turn.speaker is Speaker.PERSON and (found := names.pattern.findall(turn.text)):
            return list(dict.fromkeys(map(_plain, found)))
    return []


def _plain(name: str) -> str:
    return _JOINERS.sub(" ", name.lower()).strip()


def period(text: str, now: datetime) -> tuple[TimeWindow | None, str]:
    """Return the time in UTC that a text names, up to `now` at most, and the text without it; None where it names none.

    What has no “since” before it and is a day ends with that day.
    """
    match = _TIME.search(text)
    if match is None:
        return None, text
    now = now.astimezone(UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start, length = _start(match, now, midnight)
    if start is None or start > now:
        return None, text
    end = now if match["since"] or length is None else min(now, start + length)
    return TimeWindow(start, end), f"{text[: match.start()]} {text[match.end() :]}"


def _start(match: re.Match[str], now: datetime, midnight: datetime) -> tuple[datetime | None, timedelta | None]:
    day = timedelta(days=1)
    if match["today"]:
        return midnight, day
    if match["yesterday"]:
        return midnight - day, day
    if match["this_week"]:
        return midnight - midnight.weekday() * day, None
    if match["unit"]:
        return now - int(match["count"] or 1) * _UNITS[match["unit"].lower()], None
    if match["weekday"]:
        back = (midnight.weekday() - _DAYS.index(match["weekday"].lower())) % 7
        return midnight - back * day, day
    if match["clock"]:
        hour, minute = map(int, match["clock"].split(":"))
        if hour > 23 or minute > 59:
            return None, None
        at = midnight.replace(hour=hour, minute=minute)
        return at if at <= now else at - day, None
    return _date(match, now), day


def _date(match: re.Match[str], now: datetime) -> datetime | None:
    try:
        if match["iso"]:
            return datetime.fromisoformat(match["iso"]).replace(tzinfo=UTC)
        month = (match["month"] or match["month2"]).lower()[:3]
        number = next(index for index, name in enumerate(_MONTHS, start=1) if name.startswith(month))
        year = match["year"] or match["year2"]
        date = datetime(int(year or now.year), number, int(match["day"] or match["day2"]), tzinfo=UTC)
        return date if year or date <= now else date.replace(year=now.year - 1)
    except ValueError:
        return None


def known_services(teams: Iterable[Team], dependencies: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return every service that a team owns or that calls another or is called."""
    return frozenset(
        [service for team in teams for service in team.services]
        + [service for caller, called in dependencies.items() for service in (caller, *called)]
    )
