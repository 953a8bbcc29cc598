"""Samples to series: those that differ only in the part that is not shown are one, and counters are rates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import NamedTuple

from core.ports import Series


class Samples(NamedTuple):
    """The samples of one metric with its labels: value by time, in seconds since 1970."""

    metric: str
    labels: Mapping[str, str]
    points: Mapping[float, float]


def joined(service: str, samples: Iterable[Samples], hidden: frozenset[str], counters: tuple[str, ...]) -> list[Series]:
    """Return the series, sorted by name: the sum of the rates of counters, and the average of anything else."""
    groups: defaultdict[tuple[str, bool], list[Mapping[float, float]]] = defaultdict(list)
    for each in samples:
        is_counter = bool(counters) and each.metric.endswith(counters)
        name = _shown(each, hidden, is_counter=is_counter)
        groups[name, is_counter].append(_rate(each.points) if is_counter else each.points)
    return [
        _combined(service, metric, group, is_sum=is_counter)
        for (metric, is_counter), group in sorted(groups.items())
        if any(group)
    ]


def _shown(samples: Samples, hidden: frozenset[str], *, is_counter: bool) -> str:
    name = samples.metric + ("/s" if is_counter else "")
    labels = ", ".join(f"{label}={value}" for label, value in sorted(samples.labels.items()) if label not in hidden)
    return f"{name}{{{labels}}}" if labels else name


def _rate(points: Mapping[float, float]) -> dict[float, float]:
    """Return the growth per second up to each point. After a restart, a counter starts at zero."""
    ordered = sorted(points.items())
    return {
        at: (value - before if value >= before else value) / (at - earlier)
        for (earlier, before), (at, value) in pairwise(ordered)
        if math.isfinite(before) and math.isfinite(value)
    }


def _combined(service: str, metric: str, group: Sequence[Mapping[float, float]], *, is_sum: bool) -> Series:
    times = sorted({at for points in group for at in points})
    values = [_together([points[at] for points in group if at in points], is_sum=is_sum) for at in times]
    return Series(service, metric, tuple(datetime.fromtimestamp(at, UTC) for at in times), tuple(values))


def _together(values: Sequence[float], *, is_sum: bool) -> float:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return math.nan
    return sum(finite) if is_sum else sum(finite) / len(finite)
