"""The dependencies that alerts themselves name: what they say does not answer, as in “connection to orders-db refused”."""

from __future__ import annotations

import re
from functools import lru_cache

from core.knowledge.terms import terms
from core.model.alert import Alert
from core.model.explanation import Evidence, EvidenceKind
from core.model.incident import Incident
from core.rca.failures import UNANSWERED, kinds_of
from core.rca.signals import Signal

PLACES = (
    "instance",
    "server",
    "target",
    "host",
    "hostname",
    "node",
)  # labels of what an alert without a service is about
_NAME = re.compile(r"[A-Za-z][\w-]{1,62}")


FIRING = 0.9  # strength of an alert of what others say does not answer


def unanswered(incident: Incident, other: Incident | Alert) -> str:
    """Return the name in an incident's alerts with which they say that what `other` is about does not answer; else empty."""
    places = (other.labels.get(label, "").partition(":")[0].partition(".")[0] for label in PLACES)
    names = [other.service] if other.service else places
    return next((name for name in names if name in unanswering(incident)), "")


def unanswering(incident: Incident) -> frozenset[str]:
    """Return the words of an incident's alerts, other than its service, among which are the names of what does not answer."""
    return _unanswering(incident.description) - {incident.service}


@lru_cache(maxsize=1_000)
def _unanswering(text: str) -> frozenset[str]:
    return frozenset(name for line in text.splitlines() if kinds_of(line, UNANSWERED) for name in _NAME.findall(line))


def sign_of(service: str, alert: Alert) -> Signal:
    """Return an alert of another service as a sign of trouble there."""
    title = alert.summary or alert.name
    evidence = Evidence(EvidenceKind.LOG, f"an alert of {service}", title, alert.starts_at, alert.url)
    return Signal(service, alert.starts_at, FIRING, f"has the alert “{title}”", frozenset(terms(title)), evidence)
