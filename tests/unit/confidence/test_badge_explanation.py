from __future__ import annotations

from dataclasses import replace

import pytest

from core.confidence.measures import LATEST, explained
from core.model.badge import Badge, Evaluation, PredictionKind, Strength
from tests.samples import UNCALIBRATED, badge_explanation
from tests.samples.parts import JUDGED_ANSWER, UNCALIBRATED_ANSWER

JUDGED = [(0.71, True), (0.8, True), (0.75, False), (0.7, True), (0.9, False)]


def record_of(probability: float, judged: list[tuple[float, bool]]) -> str:
    verdicts = [(each, right) for each, right in judged]
    return explained(JUDGED_ANSWER, Badge(Strength.STRONG, probability, 40), verdicts, ()).sentences[1]


def test_it_says_the_evidence_how_often_such_claims_were_right_and_what_would_change_it() -> None:
    told = badge_explanation(evidence=("Two documents say so.",))
    assert told.sentences == (
        "What I found clearly supports this answer, and there was enough to decide it.",
        "Two documents say so.",
        "Of 34 answers that were shown at 80–90 % and judged since, 26 turned out right.",
        "What would change it: a newer or clearer document, or somebody who presses “Wrong” and gives the right answer.",
    )
    assert (told.hidden, told.withheld) == (1, "1 more that cannot be shown here")
    assert not any("COE" in sentence for sentence in told.sentences)


def test_measures_and_versions_are_named_for_whoever_asks_on() -> None:
    assert badge_explanation().for_experts == (
        "COE 0.82, RCE 0.64 (0 to 1); measured by evidence answer-evidence-3, calibrated by "
        "answer:evidence:answer-evidence-3:20260301T030000. Calibrated on 120 claims that people judged, fitted 2026-03-01."
    )


def test_without_a_calibrator_it_counts_what_was_judged_so_far() -> None:
    bare = badge_explanation(UNCALIBRATED_ANSWER, UNCALIBRATED, judged=0)
    assert "Nobody has judged such a claim yet. A percentage needs 30 judgements." in bare.sentences
    told = badge_explanation(UNCALIBRATED_ANSWER, UNCALIBRATED, judged=7, right=5).sentences
    assert "Of 7 answers that were judged so far, 5 turned out right; a percentage needs 30." in told
    assert not any("%" in sentence for sentence in told)


def test_one_outcome_and_weak_evidence_are_said_so() -> None:
    cause = replace(JUDGED_ANSWER, kind=PredictionKind.CAUSE, evaluation=Evaluation(0.1, 0.4))
    badge = Badge(Strength.WEAK, 0.1, 40)
    told = badge_explanation(cause, badge, judged=1, right=0, changes="No relief once it is undone.").sentences
    assert told == (
        "What I found partly supports this cause, but there was hardly anything to decide it by.",
        "Of 1 cause that was shown at 0–10 % and judged since, 0 turned out right.",
        "What would change it: No relief once it is undone.",
    )


def test_only_badges_of_about_the_same_percentage_count() -> None:
    assert record_of(0.78, JUDGED).startswith("Of 3 answers that were shown at 70–80 % and judged since, 2 ")
    assert record_of(0.5, JUDGED) == "Of 5 answers that were judged so far, 3 turned out right."


def test_where_only_the_latest_are_counted_it_does_not_speak_of_all() -> None:
    judged = [(0.75, True)] * LATEST
    assert record_of(0.5, judged) == f"Of {LATEST} answers that were judged lately, {LATEST} turned out right."
    assert "shown at 70–80 % and judged lately, " in record_of(0.75, judged)


@pytest.mark.parametrize(
    ("probability", "bounds"), [(0.0, "0–10 %"), (0.1, "0–10 %"), (0.3, "20–30 %"), (1.0, "90–100 %")]
)
def test_a_bin_includes_its_upper_edge_and_the_first_one_both(probability: float, bounds: str) -> None:
    assert f"shown at {bounds}" in record_of(probability, [(probability, True)])
