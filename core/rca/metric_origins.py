"""Where the metrics of an incident say that its time or its failures arise."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from core.ports import Series
from core.rca.metric_expert import level
from core.rca.telemetry import Telemetry, origins

LOSSES = re.compile(r"latency|duration|error|fail", re.IGNORECASE)  # metrics that add up along calls
REQUESTS = re.compile(r"requests?(?:_total|_count|_rate|_per_\w+)?", re.IGNORECASE)
MIN_STRETCHES = 2  # times that what is looked at must fit into the time before


def metric_origins(
    series: Sequence[Series], dependencies: Mapping[str, tuple[str, ...]], symptom: str, suspect: datetime
) -> dict[str, float]:
    """Service → how far the symptom's trouble arises there, in [0, 1], by the metric that says it most clearly.

    Compared are the series of one name that were measured at the same times, what was measured last, `suspect`
    at the earliest, with the time before that. Left out is a service with a callee that is not measured, which may be the origin.
    """
    found: dict[str, float] = {}
    for own in series:
        if own.service != symptom or not LOSSES.search(own.metric):
            continue
        alike = [one for one in series if one.times == own.times]
        losses = [one for one in alike if one.metric == own.metric]
        requests = [one for one in alike if REQUESTS.fullmatch(one.metric)]
        split = sum(at < suspect for at in own.times)
        latest = max(split, len(own.times) - split // MIN_STRETCHES)
        if split > 0 and latest < len(own.times):
            usual, now = (_telemetry(losses, requests, part) for part in (slice(split), slice(latest, None)))
            for service, share in origins(dependencies, symptom, usual, now).items():
                if now.values.keys() >= {service, *dependencies.get(service, ())}:
                    found[service] = max(share, found.get(service, 0.0))
    return found


def _telemetry(losses: Sequence[Series], requests: Sequence[Series], part: slice) -> Telemetry:
    return Telemetry(
        {one.service: level(one)[part].astype(np.float64) for one in losses},
        {one.service: level(one)[part].astype(np.float64) for one in requests},
    )
