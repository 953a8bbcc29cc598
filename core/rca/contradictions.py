"""What speaks against a cause, as it was observed: trouble that is older, an earlier fault further down, silence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from core.model.incident import Evidence
from core.rca.scene import SLACK, Scene
from core.rca.signals import CLEAR, Signal

MAX_CONTRADICTING = 3  # lines
EXPLAINS = 0.3  # how well a callee has to explain a service's trouble, in [0, 1], to speak against the service


def contradicting(service: str, since: datetime | None, scene: Scene) -> tuple[Evidence, ...]:
    """Lines that do not fit a cause in `service` which began at `since` (None: when its own trouble did).

    First the trouble in the service and in the incident's own that is older than the cause, since no cause follows its
    effect; then the trouble of a callee that would explain that of the service as well.
    """
    found: list[Signal] = []
    if since is not None:
        symptoms = [*scene.signals.get(service, ()), *scene.signals.get(scene.incident.service, ())]
        found += [signal for signal in _clear(symptoms) if signal.since < since - SLACK]
    callee, explained = scene.explained_by(service)
    if explained >= EXPLAINS:
        found += _clear(scene.signals.get(callee, ()))[:1]
    return tuple(dict.fromkeys(signal.evidence for signal in found))[:MAX_CONTRADICTING]


def _clear(signals: Iterable[Signal]) -> list[Signal]:
    """The signs that alone show trouble, the oldest first."""
    clear = [signal for signal in signals if signal.trouble and signal.strength >= CLEAR]
    return sorted(clear, key=lambda signal: signal.since)
