from __future__ import annotations

from core.confidence.prediction import Evaluation, PredictionKind
from core.confidence.track_record import TrackRecord
from core.samples import UNCALIBRATED, badge_explanation


def test_it_says_evidence_outcomes_track_record_and_versions() -> None:
    assert badge_explanation().sentences == (
        "What I found can settle this (COE 0.82 of 1); it clearly supports this answer (RCE 0.64 of 1).",
        "Calibrated on 120 labelled outcomes, fitted 2026-03-01.",
        "Of 34 answers that were shown at 80–90 % and judged since, 26 turned out right.",
        "Measured by evidence answer-evidence-3, calibrated by answer:evidence:answer-evidence-3:20260301T030000.",
    )


def test_without_a_calibrator_there_is_no_percentage_in_it() -> None:
    said = badge_explanation(badge=UNCALIBRATED, record=None, calibrator="").sentences
    assert not any("%" in sentence for sentence in said)
    assert "Too few labelled outcomes for an honest number (so far 7)." in said[1]


def test_one_outcome_and_weak_evidence_are_said_so() -> None:
    told = badge_explanation(
        kind=PredictionKind.CAUSE, evaluation=Evaluation(0.1, 0.4), record=TrackRecord(0.0, 0.1, 1, 0)
    ).sentences
    assert told[0].startswith("What I found can hardly settle this (COE 0.10 of 1); it supports this cause in part")
    assert told[2] == "Of 1 cause that was shown at 0–10 % and judged since, 0 turned out right."
