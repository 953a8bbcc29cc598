"""Which operations fail or take longer since the fault can have begun, by their spans."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from math import exp, log

import numpy as np

from core.knowledge.terms import terms
from core.model.incident import Evidence, EvidenceKind
from core.ports import Span
from core.rca.signals import Signal

MIN_SPANS = 4  # of an operation, before and after, without which no durations are compared
USUAL_SHARE, ORDINARY = 0.04, 0.3  # of requests that fail on any day, and how many failed ones that counts for
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
        found += _failures(service, operation, before, after)
        if len(after) >= MIN_SPANS and len(before) >= MIN_SPANS:
            found += _slowness(service, operation, before, after)
    return _specific(found)


class CallCounts:
    """When each service was asked, and when it asked which other one."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._served: defaultdict[str, list[datetime]] = defaultdict(list)
        self._calls: defaultdict[tuple[str, str], list[datetime]] = defaultdict(list)
        for span in spans:
            self._served[span.service].append(span.at)
            if span.caller:
                self._calls[span.caller, span.service].append(span.at)

    def for_each_request(self, caller: str, callee: str, at: datetime) -> tuple[float, float] | None:
        """Return how often one service called another for each request that it served, before and after a time.

        None where too few calls were seen before to compare with.
        """
        calls, served = self._calls[caller, callee], self._served[caller]
        called, was_served = bisect_left(calls, at), bisect_left(served, at)
        if min(called, was_served, len(served) - was_served) < MIN_SPANS:
            return None
        return called / was_served, (len(calls) - called) / (len(served) - was_served)


def _specific(found: list[Signal]) -> list[Signal]:
    """Of the signs of one service, what its requests show as a whole, or the one operation that alone shows it."""
    kept: list[Signal] = []
    for signal in found:
        operations = [
            each
            for each in found
            if each.subject
            and (each.service, each.peer) == (signal.service, signal.peer)
            and bool(each.texts) == bool(signal.texts)
        ]
        if (len(operations) == 1) if signal.subject else (len(operations) != 1):
            kept.append(signal)
    return kept


def _failures(service: str, operation: str, before: Sequence[Span], after: Sequence[Span]) -> list[Signal]:
    usual = (sum(span.failed for span in before) + ORDINARY) / (len(before) + ORDINARY / USUAL_SHARE)
    start, surprise = _outbreak([span.failed for span in after], usual)
    failed = [span for span in after[start:] if span.failed]
    strength = FULL_STRENGTH * (1 - exp(-surprise / SURPRISE))
    if len(failed) < 2 or strength < MIN_STRENGTH:
        return []
    own = [span for span in failed if not span.failed_below]
    first = (own or failed)[0]
    peers = [span.peer for span in own if span.peer]
    said = f"{len(failed)} of {len(after) - start} {_calls(service, operation)} failed"
    return [
        _signal(
            first,
            strength,
            f"{said} ({sum(span.failed for span in before)} of {len(before)} before) since {first.at:%H:%M:%S}",
            f"{operation or 'requests'}: {first.message or 'failed'}",
            subject=operation,
            texts=tuple(span.message for span in (own or failed)[:SHOWN] if span.message),
            peer=max(set(peers), key=peers.count) if len(peers) > len(own) / 2 else "",
            own=len(own) > len(failed) / 2,
        )
    ]


def _outbreak(happened: Sequence[bool], usual: float) -> tuple[int, float]:
    """Since which place something happens more often than is usual, and the log-likelihood ratio for that (0: it does not)."""
    best = (0, 0.0)
    places = [place for place, did in enumerate(happened) if did]
    for index, place in enumerate(places):
        count, expected = len(places) - index, usual * (len(happened) - place)
        if count > expected:
            best = max(best, (place, count * log(count / expected) - count + expected), key=lambda each: each[1])
    return best


def _slowness(service: str, operation: str, before: Sequence[Span], after: Sequence[Span]) -> list[Signal]:
    usual, now = (np.array([_own(span) for span in spans]) for spans in (before, after))
    middle = float(np.median(usual))
    if middle <= 0:
        return []
    slow = now > max(middle * SLOWER, float(np.quantile(usual, 0.9)))
    start, surprise = _outbreak(
        slow.tolist(),
        (float((usual > max(middle * SLOWER, float(np.quantile(usual, 0.9)))).sum()) + 0.5) / (len(usual) + 1),
    )
    times = float(np.median(now[start:])) / middle
    if slow[start:].sum() < 3 or times < SLOWER:
        return []
    strength = FULL_STRENGTH * (1 - exp(-surprise / SURPRISE)) * (1 - exp(-times / FULLY_SLOWER))
    if strength < MIN_STRENGTH:
        return []
    first = after[start]
    now_usual = f"{np.median(now[start:]):.0f}"
    return [
        _signal(
            first,
            strength,
            f"{_calls(service, operation)} took {now_usual} ms instead of {middle:.0f}, without what they called, "
            f"since {first.at:%H:%M:%S}",
            f"{operation or 'requests'}: {middle:.0f} to {now_usual} ms of its own time",
            subject=operation,
        )
    ]


def _calls(service: str, operation: str) -> str:
    return f"calls of {operation} in {service}" if operation else f"requests of {service}"


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
        subject=subject,
        texts=texts,
        peer=peer,
        own=own,
    )
