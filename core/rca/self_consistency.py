"""Several findings for one incident, and the one that they agree on (RCAgent, section 3.4)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import ModelRequest
from core.model.trajectory import Finding, Trajectory
from core.model_calls.prompts import rca as prompts
from core.ports import LanguageModel
from core.rca.actions import MAX_FINDING_TOKENS, Refused, finding_schema, parse, parse_finding, schema
from core.rca.controller import Investigation

SAMPLES = 10  # RCAgent, section 4.1
SLOW = 60.0  # seconds of the first run above which a server is too slow for samples: they would take as long again

Embed = Callable[[Sequence[str]], NDArray[np.float64]]  # texts → one row of unit length each


def by_terms(texts: Sequence[str]) -> NDArray[np.float64]:
    """Texts as the counts of their terms: enough to tell findings about one incident apart."""
    counted = [Counter(terms(text)) for text in texts]
    vocabulary = sorted({term for counts in counted for term in counts})
    rows = np.array([[counts[term] for term in vocabulary] for counts in counted], dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


async def investigate(
    investigation: Investigation, incident: str, *, samples: int = SAMPLES, embed: Embed = by_terms, onward: bool = True
) -> Trajectory:
    """Run the controller greedily; from the step at which it finalises, draw `samples` more endings and let them agree.

    `onward`: a sample that would rather look further may do so (trajectory-level self-consistency); otherwise only
    samples that finalise at once count (step-wise). After a run of more than SLOW seconds no samples are drawn. The model merges what was found; where it cannot, the finding
    nearest to all others is taken.
    """
    started = time.monotonic()
    trajectory = await investigation.run(incident)
    if trajectory.finding is None or samples == 0 or time.monotonic() - started > SLOW:
        return trajectory
    drawn = await _drawn(investigation, incident, samples, onward=onward)
    findings = (trajectory.finding, *drawn)
    if len(findings) == 1:
        return replace(trajectory, samples=findings)
    agreed = await aggregated(investigation.model, findings, investigation.services, investigation.request)
    return replace(trajectory, finding=agreed or vote(findings, embed), samples=findings)


def vote(findings: Sequence[Finding], embed: Embed) -> Finding:
    """The finding whose cause and solution are nearest to the mean of all (section 3.4.1, vote with embedding)."""
    rows = embed([f"{finding.root_cause}\n{finding.solution}" for finding in findings])
    return findings[int(np.argmax(rows @ rows.mean(axis=0)))]


async def aggregated(
    model: LanguageModel, findings: Sequence[Finding], services: tuple[str, ...], request: ModelRequest
) -> Finding | None:
    """The findings merged by the model (section 3.4.1, aggregate with LLMs); None if it gives no valid one."""
    asked = replace(
        request,
        messages=prompts.aggregation(findings),
        schema=finding_schema(services),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=0.0,
    )
    try:
        return parse_finding((await model.generate(asked)).text, services)
    except (Refused, InvalidReply, ModelUnavailable, PromptTooLong):
        return None


async def _drawn(investigation: Investigation, incident: str, samples: int, *, onward: bool) -> list[Finding]:
    """The findings of the samples that came to one."""
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
        replies = await investigation.model.sample(request, samples)
    except (InvalidReply, ModelUnavailable, PromptTooLong):
        return []
    found: list[Finding] = []
    for reply in replies:
        try:
            chosen = parse(reply.text, choices)
        except Refused:
            continue
        if isinstance(chosen, Finding):
            found.append(chosen)
        elif onward and (ended := await investigation.branch(reply.text, chosen, incident)).finding is not None:
            found.append(ended.finding)
    return found
