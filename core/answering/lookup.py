"""Recognise questions that the workspace's own records answer: owners, on-call rotas, changes, incidents and runbooks.

A question is looked up only if its last clause asks for a fact about a known service, team or alert and nothing else. A
word that is neither a known name, nor a time, nor asks for such a fact leaves it to the documents, except for short ones
(“rn”, “pls”) in a question who is on call.
"""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from rapidfuzz import process
from rapidfuzz.distance import OSA

from core.knowledge.terms import STOP_WORDS
from core.model.conversation import Speaker, Turn
from core.model.team import Team
from core.ports import TimeWindow

MAX_QUESTION = 300  # characters of a question that is looked up; a longer one asks for more than a record
SHORTEST_MISSPELT = 4  # characters of a name or an asking word that a misspelt word is read as
LONG = 8  # characters from which a word may contain two typos instead of one
RECENT = timedelta(days=7)  # searched if a question names no time


class Fact(StrEnum):
    ON_CALL = "on call"
    OWNER = "owner"
    RUNBOOK = "runbook"
    CHANGES = "changes"
    INCIDENTS = "incidents"
    CALLERS = "callers"
    CALLEES = "callees"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A requested fact. `service`, `team` (an id) and `alert` are known names; at most one of them is not empty.

    If all are empty, the fact is requested for all teams or services. `window` is the time in question; None if the
    question names none. `respelt` pairs misspelt words with their readings. `later` asks who is on call next. `claimed`
    has the words for a thing that is no known service or team, `unread` the short words that were not understood.
    """

    fact: Fact
    service: str = ""
    team: str = ""
    alert: str = ""
    window: TimeWindow | None = None
    later: bool = False
    respelt: tuple[tuple[str, str], ...] = ()
    claimed: str = ""
    unread: str = ""


# The words that ask for each fact, in several languages. The first fact that matches is chosen.
_ASKS = {
    Fact.CALLERS: r"(?:what|who|which services?|(?:any|every)thing) (?:depends?|relies|rely) on|what calls|dependents",
    Fact.CALLEES: r"(?:depends?|relies|rely) on|dependenc(?:y|ies)",
    Fact.ON_CALL: r"on[- ]?call|gets (?:the|a) page|(?<!owns )(?<!of )(?<!the )(?<!this )(?<!that )(?<!wiki )page|pager|rota|on duty|bereitschaft|d['’]astreinte|de guardia"
    r"|whom? (?:(?:can|do|should|could|must|to) (?:i |we )?)(?:call|ring|phone|contact|ping|reach|wake(?: up)?|notify)",
    Fact.OWNER: r"owns?|owned|owners?|ownership|responsible|maintains?|maintainers?|(?:which|what) team|belongs?"
    r"|whose(?: (?:job|task|duty|problem|responsibility))?|looks? after|takes? care of|in charge of"
    r"|(?:(?<=who )|(?<=team ))(?:runs|handles|manages|operates|administers)"
    r"|(?<=who )(?:do|should|can) (?:i|we) (?:ask|talk to|speak to)(?: about)?|eigentümer\w*|gehört|verantwortlich|zuständig|wem"
    r"|propriétaire|appartient|responsable|dueñ[oa]|propietari[oa]|pertenece",
    Fact.RUNBOOK: r"run-?books?|play-?books?",
    Fact.CHANGES: r"changed|changes|(?:any|last|latest|recent|what) change|deploy(?:s|ed|ments?)?|releases?|released|rolled out"
    r"|shipped|geändert|änderung(?:en)?|changé|changements?|cambi(?:ó|ado|os?)",
    Fact.INCIDENTS: r"incidents?|outages?|down|up|firing|degraded|broken|healthy|ok(?:ay)?|slow|working|störung(?:en)?|vorfälle?|ausfall|incidentes?",
}
_FACTS = {fact: re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE) for fact, pattern in _ASKS.items()}
_ASKS_FOR_A_RECORD = re.compile(
    r"^\W*(?:(?:so|and|also|ok(?:ay)?|hi|hello|hey|please|und|then)\W+)*"
    r"(?:who|whose|what|which|whats|any|is|are|was|were|did|has|have|when (?:was|did)|list|show|tell|give|recent|latest|last"
    r"|wer|wem|was|welche\w*|ist|gibt|gab|wurde|qui|quel\w*|qu['’]est|y a|qué|quién|cu[áa]l\w*|hay)\b",
    re.IGNORECASE,
)
_NO_RECORD = frozenset("how why wie warum comment pourquoi cómo".split())
_ADVICE = re.compile(
    r"\b(?:if|unless|whenever|when(?! (?:was|were|did)\b)|happens?|can|may|might|should|could|would|must|do|does|kann|darf|soll)\b",
    re.IGNORECASE,
)
_LATER = frozenset("next after afterwards then later upcoming".split())
_AHEAD = re.compile(
    r"\b(?:tomorrow|morgen|demain|(?P<week>next week|nächste woche|la semaine prochaine|la próxima semana))\b",
    re.IGNORECASE,
)
_PAST = frozenset("was were had last war hatte".split())
_ELLIPSIS = re.compile(r"^\W*(?:and|or|what about|how about|und|oder|was ist mit|et|y)\b", re.IGNORECASE)
_FILLER = STOP_WORDS | frozenset(
    "whats whos currently current today now right present next first second later tonight tomorrow night week weekend team "
    "teams service services component person people somebody contact engineer engineers name names list show give latest "
    "recent recently last ongoing open active alert alerts problem problems part involved affected made live prod "
    "production call answer reach week turn there make primary secondary backup schedule status "
    "wer wem was welche welches welcher ist sind hat haben der die das den dem für von vom an am in im gerade jetzt heute "
    "morgen es ein eine einen dienst team wurde gibt gab zu bei und sich uns seit letzte letzten diese dieser woche nachts "
    "qui quel quelle est sont le la les un une de du des d l à au pour sur dans léquipe équipe service et hier a "
    "quién qué cuál es está son el los del para en equipo servicio y hoy ha se".split()
)
_POINTS_BACK = re.compile(
    r"\b(?:it|its|it's|there|they|them|their|that|this|those|these|dort|davon|dafür|es)\b|^\W*(?:and|und|so)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"(?<=[?!])\s+|(?<=[a-z0-9])\.\s+|\n+|(?<!\s)\s++[-–—]++\s+|;\s*")
_ALERT = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Z]+[a-z0-9]+(?:[A-Z]+[a-z0-9]*)+\b")
_JOINERS = re.compile(r"[-_ ]+")
_WORD = re.compile(r"[^\W_][\w.@/'’-]*")
_TRAILING = ".'’-"  # characters after a word that do not belong to it
_APART = str.maketrans(dict.fromkeys(f"{_TRAILING}/@", " "))  # in an identifier or “how's”

_ASKING = frozenset(
    "call duty page pager rota owns owner owners owned ownership responsible maintains maintainer whose belongs runbook "
    "changed changes deployed released incident incidents outage firing".split()
)
"""Words that ask for a fact, and that a misspelt word may be read as."""

_SPANS = frozenset("to until till – - —".split())  # between the first and the last day of a span
_MONTHS = tuple(map(str.lower, month_name[1:]))
_DAYS = tuple(map(str.lower, day_name))
_UNITS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}
_MONTH = rf"(?:{'|'.join(month[:3] + '[a-z]*' for month in _MONTHS)})"
_TIME = re.compile(
    r"\b(?P<since>since|seit|from|after|depuis|desde)?\s*(?:(?<![\w-])(?:on|the|in|within|over|am)\s+){0,4}"
    r"(?:(?P<today>today|heute|aujourd['’]hui|hoy)|(?P<yesterday>yesterday|gestern|hier|ayer)"
    r"|(?P<this_week>this week|diese woche|cette semaine|esta semana)"
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
    """The names that a question may contain: services, teams with all their names, and alerts."""

    services: frozenset[str]
    teams: Sequence[Team] = ()
    alerts: frozenset[str] = field(default=frozenset[str]())

    @cached_property
    def lookups(self) -> Mapping[str, Lookup]:
        """Return the lookup for each name, in lower case and with spaces for hyphens; services also in the plural."""
        called = [(name, team) for team in self.teams for name in (*team.aliases, team.name, team.id)]
        by_name = {_plain(alert): Lookup(Fact.RUNBOOK, alert=alert) for alert in self.alerts}
        for ending in ("s", "es", ""):
            by_name |= {f"{_plain(each)}{ending}": Lookup(Fact.OWNER, service=each) for each in sorted(self.services)}
        return (
            by_name
            | {_plain(name): Lookup(Fact.OWNER, team=team.id) for name, team in called}
            | {_plain(each): by_name[_plain(each)] for each in self.services}
        )

    @cached_property
    def people(self) -> Mapping[str, str]:
        """Return the team id for each full or first name of a person on call, if it belongs to only one team."""
        named = {
            (name.lower(), team.id) for team in self.teams for full in team.on_call for name in (full, full.split()[0])
        }
        teams = Counter(name for name, _ in named)
        return {name: team for name, team in named if teams[name] == 1}

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the single words that the names of services and teams are made of."""
        called = [name for team in self.teams for name in (*team.aliases, team.name, team.id)]
        return frozenset(word for name in (*self.services, *called) for word in _plain(name).split())

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Match any of the names, the longest first; a hyphen may be written as a space or an underscore."""
        spelt = (
            "|".join(re.escape(name).replace(r"\ ", r"[-_ ]") for name in sorted(self.lookups, key=len, reverse=True))
            or r"(?!)"
        )
        return re.compile(rf"(?<![\w-])(?:{spelt})(?=['’]s?(?!\w)|(?![\w-]))", re.IGNORECASE)


def lookup(question: str, history: Sequence[Turn], names: Names, now: datetime) -> Lookup | None:
    """Return the record that a question asks for; None if the documents should answer it."""
    if len(question) > MAX_QUESTION:
        return None
    clauses = _clauses(question)
    clause = clauses[-1] if clauses else ""
    record = _looked_up(clause, history, names, now) or _of_another(clause, history, names, now)
    if record == Lookup(Fact.ON_CALL) and len(clauses) > 1:
        return None  # “JWT rejected: who do I page?” is about the clause before it
    if record is not None and not (record.claimed or record.unread):
        return record
    respelt = _misspelt(clause, names, asking=record is None)
    again = _looked_up(_respelt(clause, respelt), history, names, now) if respelt else None
    return replace(again, respelt=respelt) if again is not None and not (again.claimed or again.unread) else record


def may_be_recorded(question: str, names: Names) -> bool:
    """Return whether `lookup` may find something, regardless of alerts and earlier turns."""
    return len(question) <= MAX_QUESTION and any(
        _ELLIPSIS.match(each) or _fact(each) or _fact(_respelt(each, _misspelt(each, names, asking=True)))
        for each in _clauses(question)[-1:]
    )


def _clauses(question: str) -> list[str]:
    return [each for each in _CLAUSE.split(question.strip()) if _WORD.search(each)]


def _respelt(clause: str, respelt: Sequence[tuple[str, str]]) -> str:
    return _WORD.sub(lambda word: dict(respelt).get(word[0].rstrip(_TRAILING), word[0]), clause)


def _fact(clause: str) -> Fact | None:
    """Return the fact that a clause asks for; None if it asks how or why, or for none."""
    if not _NO_RECORD.isdisjoint(_words(clause)):
        return None
    return next((fact for fact, pattern in _FACTS.items() if pattern.search(clause)), None)


def _looked_up(clause: str, history: Sequence[Turn], names: Names, now: datetime) -> Lookup | None:
    fact = _fact(clause)
    if fact is None or (
        fact in (Fact.CHANGES, Fact.INCIDENTS) and (not _ASKS_FOR_A_RECORD.match(clause) or _ADVICE.search(clause))
    ):
        return None  # “pricing is down”, “can I release pricing on Friday”, “what happens if pricing is down”
    window, untimed = period(clause, now)
    mentioned = _mentioned(untimed, names)
    rest = names.pattern.sub(" ", untimed)
    alert = _ALERT.search(rest) if fact is Fact.RUNBOOK else None
    rest = rest.replace(alert[0], " ") if alert is not None else rest
    for each, pattern in _FACTS.items():
        if (fact, each) != (Fact.OWNER, Fact.RUNBOOK):  # a runbook has an owner of its own
            rest = pattern.sub(" ", rest)
    left = _left(rest)
    if alert is not None and not mentioned and not left:
        return Lookup(fact, alert=alert[0], window=window)
    if fact is Fact.ON_CALL:
        window = _duty(clause, window, now)
        if not mentioned and (team := names.people.get(" ".join(left).lower())):
            return Lookup(fact, team=team, window=window)
    is_spare = (  # “who is on call for payments rn”
        fact is Fact.ON_CALL
        and len(mentioned) == 1
        and all(len(word) < SHORTEST_MISSPELT for word in left)
        and not _words(clause).isdisjoint(("who", "whos", "wer", "qui", "quién"))
    )
    if left and not is_spare:
        is_claimed = fact in (Fact.OWNER, Fact.CALLERS) or (fact is Fact.ON_CALL and not mentioned)
        return (
            Lookup(fact, claimed=" ".join(_left(_FACTS[fact].sub(" ", untimed))), window=window) if is_claimed else None
        )
    if not mentioned and (fact is Fact.ON_CALL or _POINTS_BACK.search(clause)):
        mentioned = _mentioned_before(history, names)
    if not mentioned:
        return (
            Lookup(fact, window=window)
            if (fact is Fact.ON_CALL or (fact is Fact.CHANGES and window is not None))
            and _ASKS_FOR_A_RECORD.match(clause)
            else None
        )
    if len(mentioned) > 1:
        return None
    record = _about(fact, names.lookups[mentioned[0]], window)
    return (
        replace(record, later=not _LATER.isdisjoint(_words(rest)), unread=" ".join(left))
        if record is not None
        else None
    )


def _of_another(clause: str, history: Sequence[Turn], names: Names, now: datetime) -> Lookup | None:
    """Return the fact of the last question answered for another name or time: “and pricing?”, “and yesterday?”.

    The turn after a question without an answer is empty.
    """
    places = [
        place
        for place, turn in enumerate(history)
        if turn.speaker is Speaker.PERSON and [each.text for each in history[place + 1 : place + 2]] != [""]
    ]
    if not places or not _ELLIPSIS.match(clause):
        return None
    before = lookup(history[places[-1]].text, history[: places[-1]], names, now)
    if before is None or before.claimed:
        return None
    window, untimed = period(clause, now)
    mentioned = _mentioned(untimed, names)
    window = _duty(clause, window, now) if before.fact is Fact.ON_CALL else window
    if len(mentioned) > 1 or not (mentioned or window) or _left(names.pattern.sub(" ", untimed)):
        return None
    named = names.lookups[mentioned[0]] if mentioned else None
    return _about(before.fact, named, window or before.window) if named else replace(before, window=window, unread="")


def _about(fact: Fact, named: Lookup, window: TimeWindow | None) -> Lookup | None:
    fits = (named.alert != "") == (fact is Fact.RUNBOOK)
    return Lookup(fact, named.service, named.team, named.alert, window) if fits else None


def _duty(clause: str, window: TimeWindow | None, now: datetime) -> TimeWindow | None:
    """Return the requested on-call time. A weekday is the coming one, unless the clause is about the past."""
    day = timedelta(days=1)
    if ahead := _AHEAD.search(clause):
        return TimeWindow(at := now + (7 if ahead["week"] else 1) * day, at)
    words = _words(clause)
    if window is None or not _PAST.isdisjoint(words) or words.isdisjoint(_DAYS) or window.end == now:
        return window
    return TimeWindow(window.start + 7 * day, window.end + 7 * day)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower().translate(_APART)))


def _mentioned(text: str, names: Names) -> list[str]:
    return list(dict.fromkeys(_plain(each) for each in names.pattern.findall(text)))


def _left(rest: str) -> list[str]:
    """Return the words that are neither known names nor times nor words that ask for a fact."""
    return [
        word
        for each in _WORD.findall(_ELLIPSIS.sub(" ", rest))
        if (word := each.rstrip(_TRAILING)).lower().replace("'", "").replace("’", "") not in _FILLER
    ]


def _misspelt(clause: str, names: Names, *, asking: bool) -> tuple[tuple[str, str], ...]:
    """Return words that are one or two typos from a known name or, with `asking`, from a word that asks for a fact."""
    vocabulary = [each for each in (*names.words, *(_ASKING if asking else ())) if len(each) >= SHORTEST_MISSPELT]
    words = dict.fromkeys(each.rstrip(_TRAILING) for each in _WORD.findall(clause))
    corrections = {word: "-".join(_corrected(part, vocabulary) for part in _JOINERS.split(word)) for word in words}
    return tuple((word, by) for word, by in corrections.items() if _plain(by) != _plain(word))


def _corrected(word: str, vocabulary: Sequence[str]) -> str:
    plain = word.lower()
    if plain in _FILLER or plain in _ASKING or plain in vocabulary or not plain.isalpha():
        return word
    near = process.extract(
        plain, vocabulary, scorer=OSA.distance, score_cutoff=(2 if len(plain) >= LONG else 1), limit=2
    )
    is_clear = near and near[0][0][0] == plain[0] and (len(near) == 1 or near[0][1] < near[1][1])
    return near[0][0] if is_clear else word


def _mentioned_before(history: Sequence[Turn], names: Names) -> list[str]:
    """Return the names in the latest earlier question that contains any."""
    questions = (turn.text for turn in reversed(history) if turn.speaker is Speaker.PERSON)
    return next((named for text in questions if (named := _mentioned(text, names))), list[str]())


def _plain(name: str) -> str:
    return _JOINERS.sub(" ", name.lower()).strip()


def period(text: str, now: datetime) -> tuple[TimeWindow | None, str]:
    """Return the time in UTC that a text names, up to `now` at most, and the text without it; None if it names none.

    A day ends with that day, unless “since” or a similar word precedes it.
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
    day, weekday = timedelta(days=1), (match["weekday"] or _DAYS[0]).lower()
    hour, minute = map(int, (match["clock"] or "0:0").split(":"))
    clock = midnight + timedelta(hours=hour, minutes=minute)
    unit = _UNITS[(match["unit"] or "day").lower()]
    starts = {
        "today": (midnight, day),
        "yesterday": (midnight - day, day),
        "this_week": (midnight - midnight.weekday() * day, None),
        "unit": (now - int(match["count"] or 1) * unit, None),
        "weekday": (midnight - (midnight.weekday() - _DAYS.index(weekday)) % 7 * day, day),
        "clock": (None if hour > 23 or minute > 59 else clock if clock <= now else clock - day, None),
    }
    return next((start for name, start in starts.items() if match[name]), None) or (_date(match, now), day)


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


def is_over(text: str, at: datetime) -> bool:
    """Return whether a text gives a span of dates in a stated year, such as last summer's freeze, that is over by then.

    A span in a line without a year comes back every year, so a text with one is not over.
    """
    ends = [end for line in text.splitlines() for end in _ends(line, at)]
    return bool(ends) and all(end is not None and end < at for end in ends)


def _ends(line: str, at: datetime) -> list[datetime | None]:
    """Return the last day of each span of dates in a line; None for one that comes back."""
    years = [  # and no port, limit or code
        int(word)
        for word in _WORD.findall(line)
        if word.isdecimal() and len(word) == 4 and abs(int(word) - at.year) < 100
    ]
    days = [match for match in _TIME.finditer(line) if match["day"]]
    return [
        _date(last, datetime(max(years), 12, 31, tzinfo=UTC)) if years else None
        for first, last in pairwise(days)
        if _SPANS.intersection(line[first.end() : last.start()].lower().split())
    ]


def known_services(teams: Iterable[Team], dependencies: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return every service that a team owns, that calls another one, or that is called."""
    return frozenset(
        [service for team in teams for service in team.services]
        + [service for caller, called in dependencies.items() for service in (caller, *called)]
    )
