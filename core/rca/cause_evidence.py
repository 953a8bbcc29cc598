"""COE and RCE of a named cause, from the evidence of the investigation (LM-PACE, sections 3.2 and 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log

from core.confidence.calibrator import PROBABLE, badge_for
from core.model.badge import Strength
from core.model.explanation import TIED, Hypothesis, Origin
from core.model.prediction import Evaluation
from core.rca.incident_signals import IncidentSignals
from core.rca.observations import Observations

VERSION = "cause-evidence-3"
RANKING_VERSION = "cause-choice-2"  # if a language model ranked the causes (core/rca/model_ranking.py)
FINDING_VERSION = "cause-finding-1"  # if a language model found it with tools (core/rca/agent)
INTERCEPT, CHANCE, MARGIN = 0.8, 1.0, 0.0  # of the logistic curve fitted by `tests/evaluation/fit_causes.py`
UNEXPLAINED = 0.5  # maximum RCE if the cause inside a service is unknown
NOT_STRONG = 0.89  # maximum RCE if a second cause is about as likely
NEAREST = 0.01  # distance of a clipped score from 0 and 1
FAILED_TOOL_WEIGHT = 0.5  # factor on the COE if a tool could not be read


def evaluate_cause(
    hypotheses: Sequence[Hypothesis], incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of the first of `hypotheses`, which are named, ranked, and at least one.

    COE is the share of four kinds of data that were available: logs or other tool outputs, metrics, changes, and
    symptoms. RCE is how often a first cause with this score and this margin over the second was right on simulated
    incidents.
    """
    chance, margin = measures(hypotheses[0].score, hypotheses[1].score if len(hypotheses) > 1 else 0.0)
    rce = 1 / (1 + exp(-(INTERCEPT + CHANCE * chance + MARGIN * margin)))
    if hypotheses[0].origin is Origin.SERVICE:
        rce = min(rce, UNEXPLAINED)
    is_tied = len(hypotheses) > 1 and hypotheses[1].score >= TIED * hypotheses[0].score
    rce = min(rce, NOT_STRONG) if is_tied else rce
    return Evaluation(coe=_coverage(incident_signals, observations), rce=rce)


def _coverage(incident_signals: IncidentSignals, observations: Observations) -> float:
    """Return the share of the kinds of data that were available, less if a tool could not be read."""
    service = observations.incident.service
    available = (
        any(line.service == service for line in observations.logs) or bool(observations.outputs or observations.builds),
        any(series.service == service for series in observations.series),
        bool(observations.changes),
        bool(incident_signals.by_service or observations.outputs or observations.builds),
    )
    has_failed = any(gap.reason.is_failure for gap in observations.gaps)
    return sum(available) / len(available) * (FAILED_TOOL_WEIGHT if has_failed else 1.0)


def is_unsure(evaluation: Evaluation | None) -> bool:
    """Return whether a model is asked: there is no cause, or the evidence for the first one is not strong."""
    return evaluation is None or badge_for(evaluation, None, scale=PROBABLE).strength is not Strength.STRONG


def evaluate_finding(
    hypothesis: Hypothesis, incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of a cause that a language model found: RCE is its score.

    It is never strong, because no plan has checked it; only people's verdicts on such findings make it so.
    """
    return Evaluation(coe=_coverage(incident_signals, observations), rce=min(hypothesis.score, NOT_STRONG))


def evaluate_ranking(
    ranked: Sequence[Hypothesis], before: Evaluation, incident_signals: IncidentSignals, observations: Observations
) -> Evaluation:
    """Return the evaluation of the first ranked cause, with at most the RCE of `before`, the evidence engine's.

    A model's choice makes no badge stronger; only people's verdicts on its choices do.
    """
    measured = evaluate_cause(ranked, incident_signals, observations)
    return replace(measured, rce=min(measured.rce, before.rce))


def measures(score: float, rival: float) -> tuple[float, float]:
    """Return the log-odds of the first cause's score, and its relative margin over the second, in [0, 1]."""
    inside = min(max(score, NEAREST), 1 - NEAREST)
    return log(inside / (1 - inside)), 1 - min(rival / max(score, NEAREST), 1.0)
