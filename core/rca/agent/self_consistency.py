"""Trajectory-level self-consistency: several endings of one investigation, and the finding on which they agree.

RCAgent, section 3.4. The vote decides which cause it is; the model merges the findings that name it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from core.knowledge.terms import terms
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.trajectory import Finding, Trajectory
from core.model_calls.prompts import rca as prompts
from core.rca.agent.actions import MAX_FINDING_TOKENS, RefusedAction, finding_of, finding_schema, parse, schema
from core.rca.agent.budget import ENOUGH
from core.rca.agent.controller import Investigation

LEAST_SAMPLES = 2  # fewer tell nothing about agreement
SHARE = 0.8  # of what is left of the budget that may be spent on samples; the rest merges them


async def investigate(investigation: Investigation, incident: str) -> Trajectory:
    """Run the controller greedily; from the step at which it finalises, sample more endings and let them vote.

    A sample may take further actions before it ends (section 3.4.2). As many are drawn as the limits allow, and as fit into
    what is left of the budget at the measured speed of the model; none if fewer than LEAST_SAMPLES do.
    """
    trajectory = await investigation.run(incident)
    count = min(investigation.model.limits.samples, investigation.model.replies_left(SHARE))
    if trajectory.finding is None or count < LEAST_SAMPLES or investigation.model.spent >= ENOUGH:
        return trajectory
    findings = (trajectory.finding, *await _drawn(investigation, incident, count))
    elected = vote(findings)
    return replace(trajectory, finding=await _merged(elected, findings, investigation), samples=findings)


def vote(findings: Sequence[Finding]) -> Finding:
    """Return the finding nearest to the mean of those that name the most frequent cause (section 3.4.1).

    Findings are compared by the terms of cause and solution. Of causes that are equally frequent, the one nearest to the
    mean of all findings wins.
    """
    counted = [Counter(terms(f"{finding.root_cause}\n{finding.solution}")) for finding in findings]
    vocabulary = sorted({term for counts in counted for term in counts})
    rows = np.array([[counts[term] for term in vocabulary] for counts in counted], dtype=np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    nearness = rows @ rows.mean(axis=0)
    frequency = [sum(each.names_same(other) for other in findings) for each in findings]
    return findings[max(range(len(findings)), key=lambda place: (frequency[place], nearness[place]))]


async def _drawn(investigation: Investigation, incident: str, count: int) -> list[Finding]:
    """Return the findings of the samples that have one."""
    opening = investigation.opening(incident)
    choices = investigation.choices()
    request = replace(
        investigation.request,
        messages=investigation.messages(opening),
        schema=schema(choices),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=1.0,
    )
    try:
        replies = await investigation.model.sample(request, count)
    except (InvalidReply, ModelUnavailable, PromptTooLong):
        return []
    findings: list[Finding] = []
    for reply in replies:
        try:
            chosen = parse(reply.text, choices)
        except RefusedAction:
            continue
        if isinstance(chosen, Finding):
            findings.append(chosen)
        elif investigation.model.spent >= ENOUGH:
            continue
        elif (ended := await investigation.branch(reply.text, chosen, incident)).finding is not None:
            findings.append(ended.finding)
    return findings


async def _merged(elected: Finding, findings: Sequence[Finding], investigation: Investigation) -> Finding:
    """Return the model's merge of the findings that name the elected cause; `elected` if there is only one or it fails.

    The merge may only repeat quotes of the findings, and names the same cause.
    """
    agreeing = [each for each in dict.fromkeys(findings) if each.names_same(elected)]
    if len(agreeing) == 1 or not investigation.model.replies_left():
        return elected
    quotes = list(dict.fromkeys(quote for each in agreeing for quote in each.evidence))
    request = replace(
        investigation.request,
        messages=prompts.aggregate(agreeing),
        schema=finding_schema([elected.service], [elected.change] if elected.change else [], quotes),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=0.0,
    )
    try:
        reply = await investigation.model.generate(request)
        fields = cast("object", json.loads(reply.text))
        if not isinstance(fields, dict):
            return elected
        changes = [elected.change] if elected.change else []
        merged = finding_of(elected.thought, cast("Mapping[str, object]", fields), [elected.service], changes)
    except (InvalidReply, ModelUnavailable, PromptTooLong, RefusedAction, ValueError, RecursionError):
        return elected
    kept = tuple(quote for quote in merged.evidence if quote in quotes)
    return replace(merged, evidence=kept or elected.evidence) if merged.names_same(elected) else elected
