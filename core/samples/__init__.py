"""Sample messages: each thing that Plumbline can say, at its smallest, as it usually is, and at its largest.

The tests render them for every platform.
"""

from core.samples.messages import SAMPLES
from core.samples.parts import (
    CALIBRATED,
    HANDBOOK,
    START,
    UNCALIBRATED,
    abstention,
    alert,
    answer,
    badge_explanation,
    citation,
    confirmed,
    drift_alarm,
    excerpt_answer,
    explained_incident,
    explanation,
    hypothesis,
    incident,
    owner,
    proposed,
    resolved_incident,
    suggested_duplicate,
    suggested_severity,
    unclear_owner,
)
from core.samples.text_everywhere import everywhere

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
    "excerpt_answer",
    "explained_incident",
    "explanation",
    "hypothesis",
    "incident",
    "owner",
    "proposed",
    "resolved_incident",
    "suggested_duplicate",
    "suggested_severity",
    "unclear_owner",
]
