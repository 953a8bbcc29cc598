"""Signs of a change in a service: in its logs, and in metrics that left their usual range or began to creep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from math import exp, log, prod

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms, word_parts
from core.model.findings import Evidence, EvidenceKind
from core.model.log_levels import WARN, level_named
from core.ports import LogLine, Series
from core.rca.failures import Kind
from core.rca.log_lines import Frame, Template, frames, quote_of, reason_of

CLEAR = 0.5  # strength from which a single sign shows trouble

# Beginnings of words in the names of metrics; one that ends in a space is a whole word.
TIMES = ("latenc", "duration")
FAILURES = ("error", "fail", "reject", "timeout", "xx ")
REQUESTS = ("request ", "requests ", "rps ", "qps ", "tps ", "throughput", "traffic", "hits ")
NOT_SERVED = ("time", "size", "flight", "inflight", "queue", "pending")


def measures(metric: str, beginnings: tuple[str, ...]) -> bool:
    """Return whether a word of the name of a metric, such as `http_requests_total`, begins with one of these."""
    return any(f"{word} ".startswith(beginnings) for word in word_parts(metric))


def is_harm(metric: str) -> bool:
    """Return whether a metric measures failures, time or what waits, which those feel who call."""
    return measures(metric, TIMES + FAILURES + NOT_SERVED)


def is_rate(metric: str) -> bool:
    """Return whether a metric measures how many requests are served."""
    return measures(metric, REQUESTS) and not is_harm(metric)


@dataclass(frozen=True, slots=True)
class Signal:
    """A sign. `strength` in [0, 1] is the certainty that it is not ordinary variation.

    `what` describes it in the past tense and without the time; `terms` are the index terms of its text. `trouble` is
    False for a message that reports no trouble, such as “configuration reloaded”. `frames` are those of its stack
    trace. `subject` is the metric or the message template; `texts` are up to a few dozen verbatim records. A metric
    that `creeps` has risen slowly since `since`; one that `rises` is higher than usual. `kinds` are the kinds of failure
    that it shows by itself, where its words need not be read for them. If its evidence has no time, `since` is that of the
    incident.
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
    kinds: frozenset[Kind] = frozenset()
    is_warning: bool = False


def combined(strengths: Iterable[float]) -> float:
    """Return the combined strength of signs, in [0, 1]: the probability that not all of them are chance."""
    return 1 - prod(1 - min(strength, 1.0) for strength in strengths)


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
HOLDS = timedelta(minutes=10)  # before the end, within which trouble must have been seen to hold still
SILENCE = 5  # usual gaps between the records of a message, after which it has ended
MAX_SAID = 110  # characters shown of a message
SHOWN, MAX_SHOWN = 40, 1_000  # records kept of a message, and characters of each


def message_signals(templates: Sequence[Template], first: datetime, suspect: datetime, until: datetime) -> list[Signal]:
    """Return one service's messages whose rate in [suspect, until) differs from that in [first, suspect), strongest first."""
    signals = [signal for template in templates if (signal := _signal(template, first, suspect, until)) is not None]
    return sorted(signals, key=lambda signal: -signal.strength)


def _signal(template: Template, first: datetime, suspect: datetime, until: datetime) -> Signal | None:
    before = [line for line in template.lines if line.at < suspect]
    after = [line for line in template.lines if line.at >= suspect]
    if after and until - after[-1].at > max(HOLDS, SILENCE * (after[-1].at - after[0].at) / len(after)):
        return None  # it has ended
    share = (until - suspect) / max(suspect - first, BUCKET)
    most_usual = (len(before) + 1) * share  # one more record, because a short baseline may have missed some
    level = level_named(template.level)
    if before and len(after) < most_usual * MIN_RATIO:
        return None
    more = len(after) - most_usual
    # The log-likelihood ratio of a Poisson rate of these records against one of the usual ones.
    surprise = len(after) * log(len(after) / most_usual) - more if more > 0 else 0.0
    strength = (1 - exp(-surprise / SURPRISE)) * TROUBLE.get(level, QUIET_WEIGHT)
    if not before and level in TROUBLE:
        strength = max(strength, NEW_ERROR[min(len(after), len(NEW_ERROR)) - 1] * TROUBLE[level])
    return None if strength < MIN_STRENGTH else _appeared(template, before, after, strength)


def _appeared(template: Template, before: Sequence[LogLine], after: Sequence[LogLine], strength: float) -> Signal:
    since = _since(before, after)
    line = next(line for line in after if line.at >= since)
    level = level_named(template.level)
    named, message = LEVELS.get(level, "message"), _cut(reason_of(line.text))
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
        is_warning=level == WARN,
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
    """Return a message with its end, which says why, if it is too long to be shown."""
    line = " ".join(text.split())
    half = (MAX_SAID - 3) // 2
    return line if len(line) <= MAX_SAID else f"{line[:half].rstrip()} … {line[-half:].lstrip()}"


MAD_TO_SIGMA = 1.4826  # of a normal distribution
SIGMAS = 6.0  # from the baseline's median; beyond, a value is unusual
MARGIN = 0.2  # of the baseline's range, by which a value must also be outside of it
MIN_RELATIVE = 0.2  # of the baseline's median; a smaller shift is drift
RUN = 6  # points checked after the first unusual one
RUN_SHARE = 0.7  # of these points that must also be unusual
MIN_POINTS = 2  # unusual points of a movement
MIN_BASELINE = 5  # points of a baseline
FULL_STRENGTH = 0.95  # limit of the strength for very large movements
CREEP_POINTS = 40  # required to search for a slow rise
CREEP_BREAKS = 40  # candidate start times of a slow rise
CREEP_RISE = 0.3  # of the base level that the rise must reach
CREEP_FIT = 0.75  # of the variance that the rise must explain
CREEP_BETTER = 0.7  # maximum squared error, relative to a straight line and to a step
CUMULATIVE = ("_total", "_count", "_sum")  # OpenMetrics suffixes of counters


def metric_signals(series: Sequence[Series], suspect: datetime) -> list[Signal]:
    """Return the metrics that moved at or after `suspect` and did not return, or that have risen slowly since before."""
    moved = [find(one, suspect) for find in (_movement, _creep) for one in series]  # a creep replaces a jump
    return list({(each.service, each.subject): each for each in moved if each is not None}.values())


def _creep(series: Series, suspect: datetime) -> Signal | None:
    """Return a rise that began before `suspect` and continues: level, then slope, fitted by least squares.

    It dates from the first value outside of its own baseline. Only measured values are named.
    """
    values = level(series)
    seconds = _seconds(series.times)
    measured = ~np.isnan(values)
    values, seconds = values[measured], seconds[measured]
    if values.size < CREEP_POINTS:
        return None
    breaks = seconds[0] + (suspect.timestamp() - seconds[0]) * np.arange(CREEP_BREAKS, dtype=np.float64) / CREEP_BREAKS
    total = float(((values - values.mean()) ** 2).sum())
    if total <= 0 or breaks[-1] <= seconds[0]:
        return None
    hinges = np.maximum(0.0, seconds - breaks[:, None])
    errors, slopes = _fits(values, hinges)
    steps, _ = _fits(
        values, (seconds >= seconds[1 :: max(1, seconds.size // CREEP_BREAKS)][:, None]).astype(np.float64)
    )
    best = int(np.argmin(errors))
    error, slope = float(errors[best]), float(slopes[best])
    rise = slope * float(hinges[best][-1])
    base = float(values.mean() - slope * hinges[best].mean())
    noise = (error / values.size) ** 0.5
    if (
        best == 0  # it has risen from the start
        or error > (1 - CREEP_FIT) * total
        or error > CREEP_BETTER * min(float(steps.min()), float(errors[0]))
        or rise < max(CREEP_RISE * abs(base), SIGMAS / 2 * noise)
    ):
        return None
    before, after = values[seconds < breaks[best]], values[seconds >= breaks[best]]
    start = _first_sustained(after > before.max())
    if start is None:
        return None
    since = datetime.fromtimestamp(float(seconds[seconds >= breaks[best]][start]), series.times[0].tzinfo)
    change = f"from {_number(_middle(before))} to {_number(float(after[start:].max()))}"
    return Signal(
        service=series.service,
        since=since,
        strength=FULL_STRENGTH * (1 - exp(-rise / max(noise, 1e-9) / SIGMAS)),
        what=f"{series.metric} began to creep up {change}",
        terms=frozenset(terms(series.metric)),
        evidence=Evidence(EvidenceKind.METRIC, f"metrics of {series.service}", f"{series.metric} {change}", since),
        subject=series.metric,
        creeps=True,
        rises=True,
    )


def _fits(values: NDArray[np.float64], rises: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the squared error and the slope of a fit of `values` to each row of `rises`, shape (rises, values)."""
    centred = rises - rises.mean(axis=1, keepdims=True)
    spread = np.maximum((centred**2).sum(axis=1), 1e-12)
    slopes = centred @ values / spread
    total = float(((values - values.mean()) ** 2).sum())
    return total - slopes**2 * spread, slopes


def _movement(series: Series, suspect: datetime) -> Signal | None:
    values = level(series)
    times = _seconds(series.times)
    measured = ~np.isnan(values)
    baseline = values[measured & (times < suspect.timestamp())]
    after = np.flatnonzero(measured & (times >= suspect.timestamp()))
    if baseline.size < MIN_BASELINE or after.size < MIN_POINTS:
        return None
    median = _middle(baseline)
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(baseline - median)))
    low, high = float(baseline.min()), float(baseline.max())
    distance = max(SIGMAS * sigma, MIN_RELATIVE * abs(median), 1e-9)
    margin = MARGIN * (high - low)
    unusual_high = values[after] > max(median + distance, high + margin)
    unusual_low = values[after] < min(median - distance, low - margin)
    for unusual in (unusual_high, unusual_low):
        if (start := _first_sustained(unusual)) is not None:
            moved = values[after][start:][unusual[start:]]
            return _moved(series, series.times[int(after[start])], moved, median, sigma or distance / SIGMAS)
    return None


@lru_cache(maxsize=16)  # series of one answer have the same times
def _seconds(times: tuple[datetime, ...]) -> NDArray[np.float64]:
    return np.array([at.timestamp() for at in times])


def level(series: Series) -> NDArray[np.float64]:
    """Return the values of a gauge, or the increments of a counter, with NaN first."""
    values = np.array(series.values, np.float64)
    may_count = series.is_counter is not False and series.metric.split("{", maxsplit=1)[0].endswith(CUMULATIVE)
    steps = np.diff(values[~np.isnan(values)])
    if may_count and steps.size > 0 and (steps >= 0).all():
        return np.concatenate(([np.nan], np.diff(values)))
    return values


def _middle(values: NDArray[np.float64]) -> float:
    """Return the median, as a value that was measured."""
    return float(np.sort(values)[(values.size - 1) // 2])


def _first_sustained(unusual: NDArray[np.bool_]) -> int | None:
    for index in np.flatnonzero(unusual):
        run = unusual[index : index + RUN]
        if run.size >= MIN_POINTS and run.mean() >= RUN_SHARE:
            return int(index)
    return None


def _moved(series: Series, since: datetime, moved: NDArray[np.float64], median: float, sigma: float) -> Signal:
    """Return a movement from the median of the baseline to the values that `moved`."""
    extreme = float(moved[np.argmax(np.abs(moved - median))])
    sigmas = abs(float(np.median(moved)) - median) / sigma
    change = f"from {_number(median)} to {_number(extreme)}"
    return Signal(
        service=series.service,
        since=since,
        strength=FULL_STRENGTH * (1 - exp(-sigmas / SIGMAS)),
        what=f"{series.metric} {'rose' if extreme > median else 'fell'} {change}",
        terms=frozenset(terms(series.metric)),
        evidence=Evidence(EvidenceKind.METRIC, f"metrics of {series.service}", f"{series.metric} {change}", since),
        subject=series.metric,
        rises=extreme > median,
    )


def _number(value: float) -> str:
    """Return the number with three significant digits and without an exponent."""
    return f"{value:.3g}" if abs(value) < 1_000 else f"{value:.0f}"
