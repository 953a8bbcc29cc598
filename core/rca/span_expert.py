"""Which operations fail or take longer since the fault can have begun, by their spans."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from math import exp, log

import numpy as np

from core.incident import Evidence, EvidenceKind
from core.knowledge.terms import terms
from core.ports import Span
from core.rca.signals import Signal

MIN_SPANS = 4  # of an operation, before and after, without which nothing is compared
SURPRISE = 5.0  # log-likelihood ratio at which a change of the share that fails is sure to 63 %
SLOWER = 1.6  # times the usual median, from which an operation is slow
FULLY_SLOWER = 4.0  # times the usual median, at which that is sure to 63 %
MIN_STRENGTH = 0.2  # below which a movement is not worth mentioning
FULL_STRENGTH = 0.95
SHOWN = 20  # messages of failures that are kept


def span_signals(spans: Sequence[Span], suspect: datetime) -> list[Signal]:
    """Return what changed at or after `suspect` in the operations of every service: failures, and time of their own."""
    operations: defaultdict[tuple[str, str], list[Span]] = defaultdict(list)
    for span in spans:
        operations[span.service, span.operation].append(span)
        operations[span.service, ""].append(span)
    found: list[Signal] = []
    for (service, operation), all_spans in sorted(operations.items()):
        before = [span for span in all_spans if span.at < suspect]
        after = [span for span in all_spans if span.at >= suspect]
        if len(after) >= MIN_SPANS and len(before) >= MIN_SPANS:
            found += _failures(service, operation, before, after)
            found += _slowness(service, operation, before, after)
    return _specific(found)


def calls_per_minute(spans: Sequence[Span], caller: str, callee: str, at: datetime) -> tuple[float, float] | None:
    """Return how often one service called another for each request that it served, before and after a time.

    None where too few calls were seen before to compare with.
    """
    counts = [0.0, 0.0]
    served = [0.0, 0.0]
    for span in spans:
        after = span.at >= at
        served[after] += span.service == caller
        counts[after] += span.service == callee and span.caller == caller
    if min(served) < MIN_SPANS or counts[0] < MIN_SPANS:
        return None
    return counts[0] / served[0], counts[1] / served[1]


def _specific(found: list[Signal]) -> list[Signal]:
    """Without what a service shows as a whole where one of its operations shows it as clearly."""
    return [
        signal
        for signal in found
        if signal.subject
        or not any(
            other.subject and other.service == signal.service and other.strength >= 0.7 * signal.strength
            for other in found
        )
    ]


def _failures(service: str, operation: str, before: Sequence[Span], after: Sequence[Span]) -> list[Signal]:
    failed = [span for span in after if span.failed]
    usual = (sum(span.failed for span in before) + 0.5) / (len(before) + 1)
    expected = usual * len(after)
    if len(failed) < 2 or len(failed) <= expected:
        return []
    strength = FULL_STRENGTH * (
        1 - exp(-(len(failed) * log(len(failed) / expected) - len(failed) + expected) / SURPRISE)
    )
    if strength < MIN_STRENGTH:
        return []
    own = [span for span in failed if not span.failed_below]
    first = (own or failed)[0]
    peers = [span.peer for span in own if span.peer]
    said = f"{operation or 'requests'} of {service} failed {len(failed)} of {len(after)} times"
    return [
        _signal(
            first,
            strength,
            f"{said} since {first.at:%H:%M:%S}, {usual:.0%} of the time before",
            f"{operation or 'requests'}: {first.message or 'failed'}",
            subject=operation,
            texts=tuple(span.message for span in (own or failed)[:SHOWN] if span.message),
            peer=max(set(peers), key=peers.count) if len(peers) > len(own) / 2 else "",
            own=len(own) > len(failed) / 2,
        )
    ]


def _slowness(service: str, operation: str, before: Sequence[Span], after: Sequence[Span]) -> list[Signal]:
    usual, now = (np.array([_own(span) for span in spans]) for spans in (before, after))
    middle = float(np.median(usual))
    if middle <= 0:
        return []
    spread = float(np.quantile(usual, 0.9)) / middle
    slow = np.flatnonzero(now > middle * max(SLOWER, spread))
    times = float(np.median(now)) / middle
    if len(slow) < 3 or times < SLOWER:
        return []
    strength = FULL_STRENGTH * (1 - exp(-times / FULLY_SLOWER)) * min(1.0, len(after) / (2 * MIN_SPANS))
    first = after[int(slow[0])]
    moved = f"{middle:.0f} to {np.median(now):.0f} ms"
    return [
        _signal(
            first,
            strength,
            f"{operation or 'requests'} of {service} went from {moved} of its own time since {first.at:%H:%M:%S}",
            f"{operation or 'requests'}: {moved} of its own time",
            subject=operation,
        )
    ]


def _own(span: Span) -> float:
    return max(0.0, span.milliseconds - span.below)


def _signal(
    first: Span,
    strength: float,
    what: str,
    quote: str,
    *,
    subject: str,
    texts: tuple[str, ...] = (),
    peer: str = "",
    own: bool = True,
) -> Signal:
    return Signal(
        service=first.service,
        since=first.at,
        strength=strength,
        what=what,
        terms=frozenset(terms(f"{first.operation} {' '.join(texts[:1])}")),
        evidence=Evidence(EvidenceKind.TRACE, f"traces of {first.service}", quote, first.at),
        subject=subject or first.operation,
        texts=texts,
        peer=peer,
        own=own,
    )
