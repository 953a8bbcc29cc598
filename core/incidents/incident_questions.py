"""The words after the bot's name: a command, a question, or in an incident's own thread a question about what is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from string import digits

from core.incidents.incident_view import format_on_call
from core.incidents.postmortem import draft_postmortem
from core.incidents.thread_notes import is_resolution
from core.knowledge.terms import terms
from core.model.findings import EvidenceKind
from core.model.incident import Incident
from core.model.log_levels import level_named
from core.model.messages import ON_CALL_UNKNOWN
from core.model.text import counted, in_utc
from core.ports import Change
from core.rca.observations import CHANGES, Observations
from core.rca.signals import TROUBLE

MAX_QUESTION = 200  # characters; a longer question asks for more than a fact about the incident
MAX_CHANGES = 6  # shown
MAX_ELSEWHERE = 3  # changes to other services, shown if there are none nearby
MAX_LINES = 8  # of a log, shown
IN_SHORT = ("Summary", "Cause", "Actions")  # sections of a postmortem that are shown in the thread
MAX_QUOTE = 300  # characters of a quoted line

_TROUBLE = re.compile(r"\b(?:error|fatal|critical|exception|failed|timed? ?out)\b", re.IGNORECASE)


class Subject(StrEnum):
    """The part of an incident that a question is about."""

    RUNBOOK = "runbook"
    FIX = "fix"
    CHANGES = "changes"
    ON_CALL = "on call"
    LOGS = "logs"
    POSTMORTEM = "postmortem"
    PRECEDENTS = "precedents"
    CAUSE = "cause"


_PATTERNS = {
    Subject.POSTMORTEM: r"post-?\s?mortem|retrospective|incident report",
    Subject.RUNBOOK: r"(?:run|play)-?\s?book",
    Subject.ON_CALL: r"on[- ]?call|who (?:owns|has|took|takes|is (?:it|on|handling|looking|responsible))|whose",
    Subject.PRECEDENTS: r"\bbefore\b|last time|(?:seen|had) (?:this|it)|similar|precedents?|\bever\b",
    Subject.CHANGES: r"\bchang(?:e|es|ed)\b|\bdeploy(?:s|ed|ments?)?\b|\breleas(?:e|es|ed)\b|rolled out",
    Subject.LOGS: r"\blogs?\b|log lines?|stack ?traces?|error messages?",
    Subject.FIX: r"\b(?:fix|mitigate|solve|resolve|repair|stop|recover)\b|next (?:step|action)|what (?:should|can|do) (?:i|we) do",
    Subject.CAUSE: r"\bwhy\b|\bcause[ds]?\b|\breason\b|what (?:broke|happened|went wrong|is wrong)|going on",
}
_SUBJECTS = {subject: re.compile(pattern, re.IGNORECASE) for subject, pattern in _PATTERNS.items()}
_GENERIC = frozenset(
    term
    for word in (
        "what whats does do did the a an this that it its is was were are be been has have had how who whose why when which "
        "where can could should would will i we you me us our to of for on in at by from with about and or any there here "
        "please show tell give list get see know say says said tells write read open find look make draft create start now "
        "today just recently last latest first next time step action happen happened happening going wrong break broke "
        "broken breaking fix fixed mitigate solve resolve repair stop recover restore cause caused causes reason root "
        "change changes changed changelog deploy deploys deployed deployment release released rolled out log logs line lines "
        "error errors message messages trace stack run book runbook playbook post mortem postmortem retrospective report "
        "on-call oncall call person people team owner owns own took takes handling looking responsible before ever seen "
        "similar precedent precedents incident incidents alert alerts issue problem thing page up as so then"
    ).split()
    for term in terms(word)
)


def subject_of(question: str, incident: Incident) -> Subject | None:
    """Return the part of the incident that a question is about; None if it asks for something else or for more."""
    if len(question) > MAX_QUESTION:
        return None
    own = set(terms("\n".join([incident.service, incident.title, *(alert.name for alert in incident.alerts)])))
    if set(terms(question)) - _GENERIC - own:
        return None
    return next((subject for subject, pattern in _SUBJECTS.items() if pattern.search(question)), None)


def needs_reading(subject: Subject) -> bool:
    """Return whether the answer needs a new reading of the tools, because the incident does not hold it."""
    return subject in (Subject.CHANGES, Subject.LOGS)


def answer_text(subject: Subject, incident: Incident, observations: Observations | None = None, page: str = "") -> str:
    """Return the answer, line by line. Untrusted. `observations` are required if `needs_reading`.

    `page` is the address of the incident's postmortem on the local page; empty if there is none.
    """
    with_more: dict[Subject, Callable[[], Sequence[str]]] = {
        Subject.CHANGES: lambda: _changes(incident, observations),
        Subject.LOGS: lambda: _logs(incident, observations),
        Subject.POSTMORTEM: lambda: _postmortem(incident, page),
    }
    return "\n".join(with_more[subject]() if subject in with_more else _ANSWERS[subject](incident))


def answer_links(text: str, incident: Incident, page: str = "") -> tuple[str, ...]:
    """Return for each line of an answer the address that it names, of the runbook or of the postmortem; empty for none.

    An address that a log line or a change names is not linked.
    """
    runbook = incident.findings.runbook
    pages = [page] if runbook is None else [page, runbook.url, runbook.citation.deep_link if runbook.citation else ""]
    addresses = [each for each in pages if each.startswith(("https://", "http://"))]
    return tuple(next((each for each in addresses if each in line), "") for line in text.splitlines())


def _runbook(incident: Incident) -> Sequence[str]:
    runbook = incident.findings.runbook
    if runbook is None:
        return ["The alert names no runbook, and no page that this channel can read is titled after it."]
    cited = runbook.citation
    if cited is None:
        return [f"The alert names {runbook.url} as its runbook. I haven’t read that page."]
    action = f": {runbook.next_action}" if runbook.next_action != cited.heading else ""
    return list(
        filter(
            None, (f"{cited.title}, “{cited.heading}”{action}", runbook.command, cited.deep_link or cited.document_id)
        )
    )


def _fix(incident: Incident) -> Sequence[str]:
    explanation = incident.findings.explanation
    lines = (
        list(_runbook(incident))
        if incident.findings.runbook is not None and incident.findings.runbook.citation is not None
        else []
    )
    if (past := incident.findings.precedent) is not None:
        lines.append(f"{past.id} had a similar cause and was fixed by: {past.fix}")
    if explanation is not None and explanation.cause is not None and (check := explanation.cause.reservation):
        lines.append(f"To confirm the cause first: {check}")
    return lines or [*_cause(incident), *_runbook(incident)]


def _changes(incident: Incident, observations: Observations | None) -> Sequence[str]:
    if observations is None:
        return ["I could not read any system that records changes."]
    near = [change for change in observations.changes if change.service in observations.services]
    shown = sorted(near, key=lambda change: abs(incident.started_at - change.at))[:MAX_CHANGES]
    lines = [
        _change(change, incident.started_at) for change in sorted(shown, key=lambda change: change.at, reverse=True)
    ]
    if not lines:
        latest = sorted(observations.changes, key=lambda change: change.at, reverse=True)[:MAX_ELSEWHERE]
        none = "No change that I could read" if observations.unread(CHANGES) else "No change"
        lines = [
            f"{none} to {incident.service or 'the service'} or what it depends on is recorded in the last 24 hours."
        ]
        lines += [f"Elsewhere: {_change(change, incident.started_at)}" for change in latest]
    elif others := len(observations.changes) - len(shown):
        lines.append(f"{counted(others, 'more change')} to other services or earlier.")
    return [*_blamed_change(incident), *lines, *_gaps(observations)]


def _blamed_change(incident: Incident) -> Iterable[str]:
    cause = incident.findings.cause
    evidence = next((each for each in cause.evidence if each.kind is EvidenceKind.CHANGE), None) if cause else None
    if evidence is not None:
        yield f"Most probable cause: {evidence.source}: {evidence.quote}"


def _change(change: Change, began: datetime) -> str:
    """Return a change in one line, with its date if the incident began on another day."""
    by = f" by {change.author}" if change.author else ""
    at = change.at.astimezone(UTC)
    day = "" if at.date() == began.astimezone(UTC).date() else f"{at:%d %b} "
    return f"{day}{in_utc(change.at)} {change.name} of {change.service}{by}: {change.title}"


def _on_call(incident: Incident) -> Sequence[str]:
    proposal = incident.findings.owner
    taken = [f"{incident.taken_by} has taken it."] if incident.taken_by else []
    if proposal is None:
        return taken or ["Still looking for the owner."]
    if proposal.owner is None:
        teams = [
            f"{team.team_name}, {format_on_call(team)}" if format_on_call(team) else team.team_name
            for team in proposal.asked
        ]
        settled_by = f"Asked: {'; '.join(teams)}." if teams else "A person should decide."
        return [*taken, f"The owner is not clear. {settled_by}"]
    unknown = ON_CALL_UNKNOWN.format(name=proposal.on_call_unknown) if proposal.on_call_unknown else ""
    people = "; ".join(filter(None, (", ".join(proposal.on_call), unknown)))
    return [*taken, f"{proposal.owner.team_name}. On call: {people or 'nobody is named'}."]


def _logs(incident: Incident, observations: Observations | None) -> Sequence[str]:
    cause = incident.findings.cause
    quotes = [
        f"{in_utc(each.at) if each.at else ''} {each.source}: {each.quote[:MAX_QUOTE]}".strip()
        for each in (cause.evidence if cause is not None else ())
        if each.kind is EvidenceKind.LOG
    ]
    if observations is None:
        return quotes or ["I could not read any logs."]
    own = [line for line in observations.logs if line.service == incident.service]
    trouble = [line for line in own if level_named(line.level) in TROUBLE or _TROUBLE.search(line.text)]
    latest = [
        f"{in_utc(line.at)} {line.service}: {line.text[:MAX_QUOTE]}"
        for line in (() if quotes else (trouble or own)[-MAX_LINES:])
    ]
    if latest:
        latest.insert(0, "No line explains it. The latest warnings and errors:" if trouble else "The latest lines:")
    elif not quotes:
        latest = [f"No log line of {incident.service or 'its service'} was found around {in_utc(incident.started_at)}."]
    are = "is a warning or an error" if len(trouble) == 1 else "are warnings or errors"
    extent = f"I read {counted(len(own), 'line')} of {incident.service}; {len(trouble)} {are}." if own else ""
    return [*dict.fromkeys(quotes[:MAX_LINES]), *latest, *filter(None, [extent]), *_gaps(observations)]


def _gaps(observations: Observations) -> Iterable[str]:
    for gap in observations.gaps:
        if gap.reason.is_read:
            yield f"No failed build: {gap.detail}"
    if unread := dict.fromkeys(gap.text for gap in observations.gaps if not gap.reason.is_read):
        yield f"Not read: {'; '.join(unread)}"


def _postmortem(incident: Incident, page: str) -> Sequence[str]:
    draft = draft_postmortem(incident)
    progress = "not known to be over" if incident.is_uncured else "not over yet"
    state = "" if incident.is_cured else f"The incident is {progress}. This is the draft so far."
    answer_text = [
        f"{section.title}: {line.text.removeprefix(f'{section.title}: ')}"
        for section in draft.sections
        if section.title in IN_SHORT
        for line in section.lines
    ]
    whole = (
        f"The whole draft, with its evidence: {page}"
        if page
        else f"To print all of it, run: plumbline postmortem {incident.id}"
    )
    return [line for line in (draft.title, state, *answer_text, whole) if line]


def _precedents(incident: Incident) -> Sequence[str]:
    return [
        f"{past.id} {past.title}. Cause: {past.root_cause or 'not known'} Fix: {past.fix or 'not known'}"
        + (" It had a similar cause." if past.same_cause else "")
        for past in incident.findings.precedents
    ] or ["No past incident that this channel can see resembles this one."]


def _cause(incident: Incident) -> Sequence[str]:
    explanation = incident.findings.explanation
    if explanation is None:
        return ["Still looking for the cause."]
    if explanation.cause is None:
        unchecked = ["Not checked:", *explanation.unchecked[:MAX_CHANGES]] if explanation.unchecked else []
        return ["No cause found. Ruled out:", *(explanation.ruled_out[:MAX_CHANGES] or ["nothing"]), *unchecked]
    badge = f" ({explanation.badge.text})" if explanation.badge is not None and explanation.badge.text else ""
    lines = [f"{explanation.summary}{badge}"]
    lines += [f"{each.source}: {each.quote[:MAX_QUOTE]}" for each in explanation.cause.evidence[:3]]
    return [*lines, f"Would disprove it: {explanation.cause.disproof}"]


_ANSWERS: dict[Subject, Callable[[Incident], Sequence[str]]] = {
    Subject.RUNBOOK: _runbook,
    Subject.FIX: _fix,
    Subject.ON_CALL: _on_call,
    Subject.PRECEDENTS: _precedents,
    Subject.CAUSE: _cause,
}


_CORRECTIONS = ("correct", "correction")
_HELLO = re.compile(
    r"^\s*(?:hello|hi|hey|hallo|good (?:morning|afternoon|evening))\b[\s,.!]*+(?:there|plumbline)?[\s,.!👋]*+",
    re.IGNORECASE,
)
_SOMETHING_IS_WRONG = re.compile(
    r"\s*+(?:(?:the |our |my )?(?:site|web ?site|website|app|application|system|platform|prod(?:uction)?|everything|it|internet)"
    r"(?: is|['’]?s| seems| looks| feels)(?: so| very| really| too| extremely| all| completely)?"
    r" (?:slow|down|broken|dead|unavailable|unreachable|offline|on fire|failing)|nothing works)"
    r"(?: again| right now| now| today| for (?:me|us|everybody|everyone))?[\s!.]*+",
    re.IGNORECASE,
)


class CommandName(StrEnum):
    ASK = "ask"
    TRIAGE = "triage"
    RCA = "rca"
    CORRECT = "correct"
    RESOLUTION = "resolution"
    THANKS = "thanks"
    MAINTENANCE = "maintenance"
    MUTE = "mute"
    UNMUTE = "unmute"
    STATUS = "status"
    INCIDENTS = "incidents"
    UPDATE = "update"
    HOME = "home"
    SETTINGS = "settings"
    QUIET = "quiet"
    ADOPT = "adopt"
    HELLO = "hello"
    HELP = "help"


_SMALL_TALK = {  # what means a command, whole and after a greeting
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        CommandName.HELLO: (
            r"\s*+(?:(?:who|what) (?:are|r) (?:you|u)|who is (?:this|plumbline)|what is (?:this|plumbline)|what['’]?s plumbline"
            r"|(?:are|r) (?:you|u) (?:a |an )?(?:real )?(?:human|person|bot|robot|machine|ai|llm|there|alive))[\s?!.]*+"
        ),
        CommandName.HELP: (
            r"\s*+(?:what (?:can|do|could) (?:you|u) (?:do|know|offer|help(?: me)? with)|how (?:can|do) (?:you|u) (?:help(?: (?:me|us))?|work)"
            r"|how do i use (?:you|this|plumbline)|what can i ask(?: you)?|can you help(?: me)?)(?: here| for (?:me|us))?[\s?!.]*+"
        ),
        CommandName.INCIDENTS: (
            r"\s*+(?:(?:is (?:anything|something|everything|all|prod(?:uction)?|the site)|what(?: is|['’]s)(?: currently)?|are (?:things|we)|anything)"
            r" (?:broken|down|on fire|failing|wrong|ok(?:ay)?|up|fine|burning|going on|healthy)"
            r"|(?:(?:are|is) there )?(?:any|an)(?: (?:open|active|current|ongoing))? (?:incidents?|outages?|alerts?)(?: open)?"
            r"|(?:what|which)(?: incidents?| alerts?) (?:is|are) (?:open|active|ongoing|firing)"
            r"|(?:show|list)(?: me)?(?: the| all)?(?: open| current)? incidents)"
            r"(?: right now| now| at the moment| today| currently)?[\s?!.]*+"
        ),
        CommandName.THANKS: (
            r"\s*(?:(?:ok(?:ay)?|great|perfect|awesome|nice|cool|works?|that works?|it works?|got it|yes)\b[\s,.!]*)*"
            r"(?:thanks|thank you|many thanks|thx|ty|cheers|danke|merci|gracias|obrigad[oa]|grazie|谢谢|ありがとう|감사합니다)"
            r"(?:\s+(?:you|a lot|so much|very much|again|all|both|everyone|sch[öo]n|beaucoup|plumbline|for (?:the|your) help))*"
            r"(?:[\s,.!]*(?:that|it|this) (?:works?|worked|helps?|helped|did it))?"
            r"[\s.!:)🙏🎉👍❤️]*"
        ),
    }.items()
}


@dataclass(frozen=True, slots=True)
class Command:
    name: CommandName
    argument: str = ""


def parse_command(text: str) -> Command:
    """Return the command that a message names, or the question that it asks.

    `help`, `home`, `incidents`, `status` and `settings` take no argument, `quiet` takes hours or `off`, `adopt` takes `on`, `off` or `reset`, and `ask`,
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
    begins, colon, correction = text.partition(":")
    if colon and begins.strip().lower() in _CORRECTIONS:
        return Command(CommandName.CORRECT, correction.strip())
    if is_resolution(text):
        return Command(CommandName.RESOLUTION, text.strip())
    words = text.strip().split(maxsplit=1)
    if not words:
        return Command(CommandName.HELP)
    first, rest = words[0].lower(), words[1] if len(words) > 1 else ""
    if first in _TAKES and _TAKES[first](rest):
        return Command(CommandName(first), rest)
    return Command(CommandName.ASK, rest if first == CommandName.ASK and rest else text.strip())


def _small_talk(text: str) -> CommandName | None:
    """Return the command that a greeting, thanks, or a question about the bot or the state means; None for other text.

    Such a question may follow a greeting.
    """
    question = _HELLO.sub("", text)
    if text and not question:
        return CommandName.HELLO
    return next((name for name, words in _SMALL_TALK.items() if words.fullmatch(question)), None)


LONGEST = timedelta(days=14)
MAX_REASON = 200  # characters that are kept

_THIS_ALERT = frozenset({"this", "the", "it", "alert", "incident", "for"})
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


def read_mute(text: str) -> MaintenanceWish | None:
    """Return the request in “this alert for 2 h, known noise”; None for any other text."""
    words = text.split()
    while words and words[0].lower() in _THIS_ALERT:
        words.pop(0)
    return read_maintenance(" ".join(["alert", *words])) if words and words[0][0].isdigit() else None


_TAKES: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(
        (CommandName.HELP, CommandName.STATUS, CommandName.INCIDENTS, CommandName.HOME, CommandName.SETTINGS),
        lambda rest: not rest,
    ),
    **dict.fromkeys((CommandName.TRIAGE, CommandName.RCA), lambda _: True),
    CommandName.QUIET: lambda rest: rest.lower() in ("", "off") or rest.lstrip(digits) != rest,
    CommandName.ADOPT: lambda rest: rest.lower() in ("", "on", "off", "reset"),
    CommandName.UPDATE: lambda rest: rest.split() in ([], [rest]),  # a word at most
    CommandName.MAINTENANCE: read_maintenance,
    CommandName.MUTE: read_mute,
    CommandName.UNMUTE: lambda rest: read_mute(f"{rest} 1h"),
}
"""The commands that are words, each with what tells the rest of a message that it takes from a question."""
