"""Severity and duplicates judged by a language model, from what the evidence engine found."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from core.model.incident import Incident, PastIncident, Severity
from core.model.language_model import ModelRequest
from core.model.prediction import Evaluation
from core.model_calls.prompts import suggestions as prompts
from core.ports import LanguageModel
from core.triage.duplicates import DuplicateCandidate
from core.triage.severity import SeverityAssessment

SEVERITY_VERSION = "severity-model-1"
DUPLICATE_VERSION = "duplicate-model-1"
REFERENCES = 8  # past incidents that the model is shown
MAX_TEXT = 600  # characters of a past incident
MAX_SITUATION = 3_000  # characters of an incident
LABEL_TOKENS = 8  # room for one label in quotation marks
MIN_YES = 0.5  # probability below which two incidents are two


async def judge_severity(
    model: LanguageModel,
    request: ModelRequest,
    incident: Incident,
    found: SeverityAssessment,
    past: Sequence[PastIncident],
) -> SeverityAssessment:
    """Return the severity that the model finds likeliest, with its own probabilities; `past` are the most similar first.

    How far the references can decide stays as it was measured. Raises what the model raises.
    """
    references = [_case(each) for each in past[:REFERENCES]]
    messages = prompts.severity(references, _situation(incident), [*Severity])
    asked = replace(request, messages=messages, max_tokens=LABEL_TOKENS)
    expected = await model.expect(asked, [*Severity])
    shares = {severity: expected[severity] for severity in Severity}
    likeliest = max(shares, key=lambda each: shares[each])
    same = found.evidence if likeliest is found.severity else ()
    evidence = (f"{model.name} judged it by {len(references)} similar incidents", *same)
    return replace(
        found,
        severity=likeliest,
        shares=shares,
        evidence=evidence,
        evaluation=Evaluation(found.evaluation.coe, shares[likeliest]),
    )


async def judge_duplicates(
    model: LanguageModel, request: ModelRequest, incident: Incident, candidates: Sequence[DuplicateCandidate]
) -> tuple[DuplicateCandidate, float] | None:
    """Return the candidate that the model is surest of, and the probability that both are one incident; None if none is.

    There is at least one candidate; all are asked about at once. Raises what the model raises.
    """

    async def yes(candidate: DuplicateCandidate) -> float:
        messages = prompts.duplicate(_situation(candidate.incident), _situation(incident), candidate.evidence)
        asked = replace(request, messages=messages, max_tokens=LABEL_TOKENS)
        return (await model.expect(asked, prompts.YES_NO))[prompts.YES]

    said = await asyncio.gather(*map(yes, candidates))
    best = max(range(len(said)), key=lambda place: said[place])
    return (candidates[best], said[best]) if said[best] >= MIN_YES else None


def _situation(incident: Incident) -> str:
    parts = (incident.description, f"Service: {incident.service}" if incident.service else "")
    return "\n".join(filter(None, parts))[:MAX_SITUATION]


def _case(past: PastIncident) -> str:
    text = "\n".join(filter(None, (past.title, past.description)))[:MAX_TEXT]
    return f"{text}\nService: {past.service}\nSeverity: {past.severity}"
