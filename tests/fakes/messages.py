"""The sample messages of the product, which are those of the tests too: a new one belongs into core/samples/messages.py."""

from __future__ import annotations

from core.messages import CorrectionRequest, DriftAlarm, Message
from core.samples import (
    CALIBRATED,
    HANDBOOK,
    SAMPLES,
    START,
    UNCALIBRATED,
    abstention,
    alert,
    answer,
    badge_explanation,
    citation,
    confirmed,
    drift_alarm,
    everywhere,
    explained_incident,
    explanation,
    hypothesis,
    incident,
    owner,
    proposed,
    resolved_incident,
)

__all__ = [
    "CALIBRATED",
    "HANDBOOK",
    "SAMPLES",
    "START",
    "UNCALIBRATED",
    "abstention",
    "alert",
    "answer",
    "badge_explanation",
    "citation",
    "confirmed",
    "drift_alarm",
    "everywhere",
    "explained_incident",
    "explanation",
    "hypothesis",
    "incident",
    "owner",
    "proposed",
    "resolved_incident",
    "telling",
]


def telling(text: str, count: int = 1) -> dict[str, Message]:
    """Of `everywhere`, the messages that hold text from outside at all."""
    found = everywhere(text, count)
    return {name: each for name, each in found.items() if not isinstance(each, CorrectionRequest | DriftAlarm)}
