"""Signs of a change in a service, and the analysis of log messages for such signs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import exp, log, prod

from core.knowledge.terms import terms
from core.model.explanation import Evidence, EvidenceKind
from core.model.log_levels import level_named
from core.ports import LogLine
from core.rca.log_lines import Frame, Template, frames, quote_of

CLEAR = 0.5  # strength from which a single sign shows trouble


@dataclass(frozen=True, slots=True)
class Signal:
    """A sign. `strength` in [0, 1] is the certainty that it is not ordinary variation.

    `what` describes it in the past tense and without the time; `terms` are the index terms of its text. `trouble` is
    False for a message that reports no trouble, such as “configuration reloaded”. `frames` are those of its stack
    trace. `subject` is the metric or the message template; `texts` are up to a few dozen verbatim records. A metric
    that `creeps` has risen slowly since `since`; one that `rises` is higher than usual.
    """

    service: str
    since: datetime
    strength: float
    what: str
    terms: frozenset[str]
    evidence: Evidence
    trouble: bool = True
    frames: tuple[Frame, ...] = ()
    subject: str = ""
    texts: tuple[str, ...] = ()
    creeps: bool = False
    rises: bool = False


def combined(signals: Iterable[Signal]) -> float:
    """Return the combined strength of signs, in [0, 1]: the probability that not all of them are chance."""
    return 1 - prod(1 - signal.strength for signal in signals)


TROUBLE = {"FATAL": 1.0, "CRITICAL": 1.0, "ERROR": 1.0, "WARN": 0.85}
"""Weights of the levels that report trouble."""

LEVELS = {"CRITICAL": "critical error", "ERROR": "error", "FATAL": "fatal error", "WARN": "warning"}
"""Names of these levels in a sentence."""
QUIET_WEIGHT = 0.4  # weight of the other levels
NEW_ERROR = (0.4, 0.55, 0.65)  # minimum strength of a new error that was logged once, twice, and more often
SURPRISE = 8.0  # log-likelihood ratio at which a change of rate has a strength of 0.63
MIN_RATIO = 3.0  # between the rates after and before; below it, it is ordinary traffic
MIN_STRENGTH = 0.25  # below this, a message is ignored
BUCKET = timedelta(minutes=1)
MAX_SAID = 90  # characters shown of a message
SHOWN, MAX_SHOWN = 40, 1_000  # records kept of a message, and characters of each


def message_signals(templates: Sequence[Template], first: datetime, suspect: datetime, until: datetime) -> list[Signal]:
    """Return one service's messages whose rate in [suspect, until) differs from that in [first, suspect), strongest first."""
    signals = [signal for template in templates if (signal := _signal(template, first, suspect, until)) is not None]
    return sorted(signals, key=lambda signal: -signal.strength)


def _signal(template: Template, first: datetime, suspect: datetime, until: datetime) -> Signal | None:
    before = [line for line in template.lines if line.at < suspect]
    after = [line for line in template.lines if line.at >= suspect]
    share = (until - suspect) / max(suspect - first, BUCKET)
    most_usual = (len(before) + 1) * share  # one more record, because a short baseline may have missed some
    level = level_named(template.level)
    if before and len(after) < most_usual * MIN_RATIO:
        return None
    surprise = _surprise(len(after), most_usual) if len(after) > most_usual else 0.0
    strength = (1 - exp(-surprise / SURPRISE)) * TROUBLE.get(level, QUIET_WEIGHT)
    if not before and level in TROUBLE:
        strength = max(strength, NEW_ERROR[min(len(after), len(NEW_ERROR)) - 1] * TROUBLE[level])
    return None if strength < MIN_STRENGTH else _appeared(template, before, after, strength)


def _surprise(count: int, expected: float) -> float:
    """Return the log-likelihood ratio of a Poisson rate of `count` against one of `expected`."""
    return (count * log(count / expected) if count else 0.0) - (count - expected)


def _appeared(template: Template, before: Sequence[LogLine], after: Sequence[LogLine], strength: float) -> Signal:
    since = _since(before, after)
    line = next(line for line in after if line.at >= since)
    level = level_named(template.level)
    named, message = LEVELS.get(level, "message"), _cut(quote_of(line.text))
    times = f" {len(after)} times" if len(after) > 1 else ""
    return Signal(
        service=line.service,
        since=since,
        strength=strength,
        what=f"logged the {named} “{message}”{times}, more than usual"
        if before
        else f"logged a new {named}{times}, “{message}”",
        terms=frozenset(terms(quote_of(line.text))),
        evidence=Evidence(EvidenceKind.LOG, f"log of {line.service}", quote_of(line.text), line.at),
        trouble=level in TROUBLE,
        frames=frames(line.text),
        subject=template.text,
        texts=tuple(each.text[:MAX_SHOWN] for each in after[:SHOWN]),
    )


def _since(before: Iterable[LogLine], after: Sequence[LogLine]) -> datetime:
    """Return the time of the first record in the first minute with more records than any minute before."""
    usual = max(Counter(_minute(line.at) for line in before).values(), default=0)
    per_minute = Counter(_minute(line.at) for line in after)
    busy = next((minute for minute in sorted(per_minute) if per_minute[minute] > usual), _minute(after[0].at))
    return next(line.at for line in after if _minute(line.at) >= busy)


def _minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SAID else f"{line[: MAX_SAID - 1].rstrip()}…"
