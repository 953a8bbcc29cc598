"""The sample messages of the product, which are those of the tests too: a new one belongs into core/samples.py."""

from __future__ import annotations

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
]
