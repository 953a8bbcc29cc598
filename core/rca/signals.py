"""A sign that something changed in a service: a log message, a metric or a span, with the time since when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import prod

from core.model.incident import Evidence
from core.rca.stack_traces import Frame

CLEAR = 0.5  # strength from which a sign alone shows that the service is in trouble


@dataclass(frozen=True, slots=True)
class Signal:
    """`strength` in [0, 1] says how sure it is that this is no ordinary variation.

    `what` describes it in words, `terms` are the index terms of its text. `trouble` is False for a message that does
    not complain, such as “configuration reloaded”: it dates what happened, but is no symptom. `frames` are those of the
    stack trace in it. `subject` is what moved: the metric, the operation, or the message; `texts` are up to a few dozen
    records as they stand. `peer` is the outside host that failing spans called. `own` is False where the trouble is said
    to come from a callee. A metric that `creeps` rises slowly since then; one that `rises` is higher than usual.
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
    peer: str = ""
    own: bool = True
    creeps: bool = False
    rises: bool = False


def combined(signals: Iterable[Signal]) -> float:
    """Return the strength of several signs together, in [0, 1]: the chance that not all of them are chance."""
    return 1 - prod(1 - signal.strength for signal in signals)
