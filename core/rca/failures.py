"""Trouble in the words of software, and the rest of what the engine of causes knows, read from `knowledge.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any

from core.knowledge.phrases import pattern_of
from core.model.language_model import Responsibility
from core.model.log_levels import DEBUG, INFO, WARN, level_in, level_named


class PhraseRole(StrEnum):
    """The role of a phrase: it names a cause, reports trouble, may report it, tells of its result, or only gives its kind."""

    CAUSE = "cause"
    COMPLAINT = "complaint"
    GRIEVANCE = "grievance"
    RESULT = "result"
    TOPIC = "topic"


class Kind(StrEnum):
    """The kind of thing that failed."""

    MEMORY = "memory"
    DISK = "disk"
    POOL = "connections"
    LIMIT = "limit"
    QUOTA = "quota"
    LOAD = "load"
    LOCK = "lock"
    NAME = "name resolution"
    NETWORK = "network"
    TIMEOUT = "timeout"
    ACCESS = "access"
    CERTIFICATE = "certificate"
    MISSING = "missing"
    FORM = "form"
    SCHEMA = "schema"
    CONFLICT = "conflict"
    CRASH = "crash"
    CODE = "code"
    PLACEMENT = "placement"
    IMAGE = "image"
    HOST = "host"
    STORE = "store"
    REQUEST = "request"
    PROBE = "probe"
    OTHER = "other"


UNANSWERED = frozenset({Kind.NETWORK, Kind.TIMEOUT, Kind.NAME})
"""The kinds that a caller reports of another service."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words with which software reports trouble, as a pattern without its beginning and end. `who` may be unknown."""

    kind: Kind
    who: Responsibility | None
    role: PhraseRole
    pattern: str


@dataclass(frozen=True, slots=True)
class Effect:
    """The failures that a line of a diff can make, which was removed, added, lowered, raised, changed or switched."""

    direction: str
    makes: frozenset[Kind]
    line: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Saying:
    """Words of an event or a log about a fault. `cause` may contain `{x}`, the group of that name."""

    where: str
    words: re.Pattern[str]
    cause: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that an object can have. It is one only with a symptom of `hurts`, and with none of `acquits`.

    `name` is the name that people may read, `who` repairs it, and `next_check` contains `{name}` and `{detail}`.
    """

    id: str
    name: str
    kind: Kind
    who: Responsibility
    hurts: tuple[str, ...]
    acquits: tuple[str, ...]
    next_check: str
    says: tuple[Saying, ...]


@dataclass(frozen=True, slots=True)
class WrongCondition:
    """Types of conditions that are wrong in one status, for reasons that begin with one of these words, if there are any.

    `symptom` is shown by the condition itself, if it is known to be recent.
    """

    types: frozenset[str]
    status: str
    reasons: tuple[str, ...]
    fault: str
    symptom: str

    def fits(self, type_: str, status: str, reason: str) -> bool:
        return type_ in self.types and status == self.status and reason.startswith(self.reasons or ("",))


def _effect(row: Mapping[str, Any]) -> Effect:
    line = row.get("line") or rf".{{0,60}}{pattern_of(row['has'])}"
    return Effect(
        row["direction"], frozenset(Kind[kind] for kind in row["makes"]), re.compile(rf"\A(?:{line})", re.IGNORECASE)
    )


def _faults(rows: Sequence[Mapping[str, Any]]) -> dict[str, Fault]:
    """Return the faults by their ids. What a row does not say, it has from the row that it is `like`."""
    whole: dict[str, dict[str, Any]] = {}
    for row in rows:
        inherited = {
            key: value for key, value in whole.get(row.get("like", ""), {}).items() if key not in ("says", "reads")
        }
        whole[row["id"]] = inherited | {**row}
    return {
        name: Fault(
            name,
            row["name"],
            Kind[row["kind"]],
            Responsibility[row["who"].upper()],
            tuple(row["hurts"]),
            tuple(row.get("acquits", ())),
            row["next"],
            tuple(
                Saying(where, re.compile(words, re.IGNORECASE), cause)
                for where, words, cause in (
                    *row.get("reads", ()),
                    *((where, pattern_of(phrase), cause) for where, phrase, cause in row.get("says", ())),
                )
            ),
        )
        for name, row in whole.items()
    }


_TABLES = tomllib.loads((files("core.rca") / "knowledge.toml").read_text("utf-8"))
FITTED: Mapping[str, Mapping[str, Any]] = _TABLES["fitted"]  # weights in log-odds, by what they are of and by feature
PHRASES = tuple(
    Phrase(
        Kind[row["kind"]],
        Responsibility[row["who"].upper()] if "who" in row else None,
        PhraseRole(row["role"]),
        pattern,
    )
    for row in _TABLES["phrase"]
    for pattern in (*map(pattern_of, row.get("says", "").splitlines()), *([row["pattern"]] if "pattern" in row else []))
)
EFFECTS = tuple(map(_effect, _TABLES["effect"]))
FAULTS = _faults(_TABLES["fault"])
WRONG = tuple(
    WrongCondition(
        frozenset(row["types"].split()),
        row["status"],
        tuple(row.get("reasons", "").split()),
        row["fault"],
        row["symptom"],
    )
    for row in _TABLES["condition"]
)


_IN_NAME = r"(?-i:(?<=[a-z.])(?=[A-Z]\w{0,80}(?:Error|Exception)\b))"  # a word in the name of an error
_BEFORE = rf"(?:(?<![A-Za-z0-9./-])|{_IN_NAME})"  # a word inside another name, such as `error-page`, does not count
# One in a constant, such as `PAYMENT_FAILED`, does, and so does the beginning of the name of an error.
_AFTER = r"(?:(?-i:(?=(?:Error|Exception)\b))|(?![A-Za-z0-9]|-\w|/\w|(?-i:_[a-z])))"


def _any_of(
    phrases: Iterable[Phrase], before: str = rf"(?:(?<![A-Za-z])|{_IN_NAME})", after: str = ""
) -> re.Pattern[str]:
    return re.compile(rf"{before}(?:{'|'.join(each.pattern for each in phrases)}){after}", re.IGNORECASE)


_BY_KIND = {kind: _any_of(each for each in PHRASES if each.kind is kind) for kind in Kind if kind is not Kind.OTHER}
_BY_RESPONSIBLE = tuple(
    (who, _any_of(each for each in PHRASES if each.who is who))
    for who in (Responsibility.PLATFORM, Responsibility.USER, Responsibility.DEPENDENCY, Responsibility.OWN_CODE)
)
# The phrases of each role, as whole words.
WORDS = {role: _any_of((each for each in PHRASES if each.role is role), _BEFORE, _AFTER) for role in PhraseRole}
_CAUSE, _COMPLAINT, _GRIEVANCE, _RESULT, _ = WORDS.values()
_NEGATED = re.compile(
    r"\b(?:no|without(?: any)?|zero|0) (?:\w+ )?(?:errors?|failures?|exceptions?|problems?|issues?|timeouts?)\b"
    r"|\b(?:\w+[_ ])?(?:errors?|failures?|failed|exceptions?|timeouts?|err|dropped|lost|missing)(?:_\w+)?[\"']?"
    r"\s*[=:]\s*[\"']?(?:0\b|none|null|nil|false|\[\]|\{\}|NO_ERROR)"
    r"|\b(?:no|not) (?:expired|lost|dropped|missing)\b|\b0 (?:failed|lost|dropped|missing)\b",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(?:took|takes|waits?|waited|waiting|blocked|duration|latency|elapsed|after|lag)\b.{0,60}?"
    r"\b(?:\d{5,}(?:\.\d+)? ?(?:ms|milliseconds)|\d{2,}(?:\.\d+)? ?(?:s|secs?|seconds)|\d+ ?(?:min|minutes|hours?))\b",
    re.IGNORECASE,
)
"""Matches a duration of ten seconds or more."""
_LEVEL = re.compile(
    r"\b(?:level|lvl|severity|log\.level)[\"']?\s*[=:]\s*[\"']?[a-z]+"
    r"|(?:^|[\s\[(|<])(?P<word>FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC|SEVERE|ERROR|ERR|WARN|WARNING|NOTICE|INFO|DEBUG|TRACE)"
    r"(?=[\s\])|>:,]|$)",
    re.IGNORECASE,
)
"""Matches a level in a field, or its name as a word of its own in a tool's output."""
_LEVEL_WITHIN = 120  # characters at the start of a line that contain its level
_TONES = {WARN: 0.85, INFO: 0.4, DEBUG: 0.4}
"""The weight of a message by its level, which is the program's own judgement."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The trouble that a line reports: its strength in [0, 1], and whether it gives a cause."""

    strength: float
    is_cause: bool = True


def trouble(line: str) -> Trouble | None:
    """Return the trouble that a line reports, by its level and its words; None if it reports none."""
    statement = _NEGATED.sub(lambda match: " " * len(match.group()), line)
    level_match = _LEVEL.search(statement[:_LEVEL_WITHIN])
    level = level_in(statement) or level_named((level_match and level_match["word"]) or "")
    weight, loud = _TONES.get(level, 1.0), level != "" and level not in _TONES
    message = _LEVEL.sub(lambda match: " " * len(match.group()), statement, count=1)
    result = _RESULT.search(message)
    if _CAUSE.search(statement):
        return Trouble((0.82 if loud or _COMPLAINT.search(statement) else 0.7) * weight)
    if _COMPLAINT.search(message):
        return Trouble((0.45 if result else 0.65 if loud else 0.5) * weight, is_cause=result is None)
    if _LONG.search(message):
        return Trouble(0.4)
    if _GRIEVANCE.search(message):
        return Trouble((0.6 if loud else 0.3) * weight)
    if result:
        return Trouble((0.35 if loud else 0.25) * weight, is_cause=False)
    return Trouble(0.55) if loud else Trouble(0.18) if weight == _TONES[WARN] else None


def cause_offset(text: str) -> int:
    """Return the offset of the last cause in a text, or 0; errors that wrap each other end with the innermost."""
    return max((match.start() for match in _CAUSE.finditer(text)), default=0)


_OUTCOME = (
    r"^(?:make(?:\[\d{1,4}\])?: \*\*\* |npm (?:ERR!|error) (?:code|errno|Lifecycle script|Exit status)|FAILED? \(|ELIFECYCLE"
    r"|error Command failed|FAILURE: Build failed|Execution failed for task|BUILD FAIL|error: could not compile|--- FAIL"
    r"|error: aborting due to)"
    r"|exit(?:ed)?(?: with)?(?: code| status)?:? '?[1-9]|\b[1-9]\d{0,5} (?:failed|failures?|errors?|problems?)\b|Failures: [1-9]"
)
OUTCOME = re.compile(rf"{_OUTCOME}|^not ok \d")
"""Matches a line in which a tool says that it is over and failed."""
_WRAPPER = re.compile(
    rf"{_OUTCOME}|^\W?(?:For more|See) |^(?:npm (?:ERR!|error) (?:path|A complete log)|\[ERROR\] (?:To see|Re-run|For more|After correcting|-> \[Help)"
    r"|\[INFO\]|ERROR: Job failed|>)"
    r"|\b0 (?:failed|failures?|errors?|problems?)\b|Failures: 0|^\W{0,200}FAILURES\W{0,200}$|:\d{1,6}: \w{1,80}(?:Error|Exception)$"
    r"|^name: \w{1,80}$|^\d{1,6}\) \w{1,80}:$|^[^A-Za-z]*$"
)
"""Lines of build tools that only repeat the failure of another tool."""
_WARNS = re.compile(r"(?:npm )?\W{0,3}warn(?:ing)?\b|.{0,200}: warning\b", re.IGNORECASE)
_QUIET = re.compile(
    r"^\W{0,5}(?:npm )?(?:info|note|notice|debug|trace|verbose|ok|passed|pass)\b|^\s*[✔✓√]|\bPASSED\b|^.{0,200}: note: |[:=] ?0\.?$|^\W{0,5}0 \w",
    re.IGNORECASE,
)
"""Lines below the level of a warning, counters of nothing, and what passed."""
_STATES = re.compile(
    r"^E {2,}\S|(?:^|[\s\]:(])(?:(?:fatal )?error(?:\[?[A-Z]+\d+\]?| TS\d+)?:|panic:|panicked at|[\w.]{0,80}(?:Error|Exception): )"
    r"|\bwant(?:ed)? \S|(?i:^expected: )|(?i:\bexpected)\b.{1,80}\b(?:but|got|to|actual|received)\b"
)
"""Lines in which a tool states its error."""


_LETTERS = re.compile(r"[a-z]{2,}")
_VERDICT = frozenset(word for row in _TABLES["verdict"] for word in row["words"].split())


def decisiveness(line: str) -> float:
    """Return how well a line of a build log tells why it failed, in [-0.5, 1.25]; a tool's error statement is best."""
    is_statement = _STATES.search(line) is not None
    is_exit = "zero exit" in line  # of another process, which said no more
    if is_exit or _QUIET.search(line) or (line.endswith(":") and not is_statement):  # a heading announces what follows
        return 0.1 if is_exit else -0.5
    strength = report.strength if (report := trouble(line)) else 0.0
    if _WRAPPER.search(line):
        return strength - 0.5
    # What is left of a line that only says that something failed is at most the name of a tool.
    named = [each for each in line.lower().split() if not _VERDICT.issuperset(_LETTERS.findall(each))]
    if len(named) < 2 and not is_statement and not any(mark in line for mark in "`'\"="):
        return strength / 10
    return strength - 0.25 if _WARNS.match(line) else strength + 0.25 * is_statement


def kinds_of(text: str, among: Iterable[Kind] = _BY_KIND) -> frozenset[Kind]:
    """Return the kinds of failure that a text reports."""
    return frozenset(kind for kind in among if _BY_KIND[kind].search(text))


def responsibility_of(text: str) -> Responsibility | None:
    """Return who is responsible for the first failure that a text reports; None if it does not tell.

    The first one counts, because a description of a cause begins with it. At the same offset, the side counts that is
    least likely to be mistaken.
    """
    matches = [
        (match.start(), place, who)
        for place, (who, words) in enumerate(_BY_RESPONSIBLE)
        if (match := words.search(text))
    ]
    return min(matches)[2] if matches else None
