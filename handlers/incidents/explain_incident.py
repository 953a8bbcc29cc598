"""Root-cause analysis: query every read-only tool by a fixed plan, and rank hypotheses by the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from core.confidence.model_estimator import Claim, settled_case
from core.incidents.thread_notes import named_first, without_denied
from core.knowledge.redactor import Redact, redacted
from core.model.compute_thread import run_in_analysis_thread
from core.model.incident import Explanation, Hypothesis, Incident
from core.model.language_model import Urgency
from core.model.prediction import Estimator, Evaluation, PredictionKind
from core.model.team import Team
from core.model_calls.choice import Use
from core.ports import FailedBuild, LanguageModel
from core.rca.cause_evidence import RANKING_VERSION, VERSION, evaluate_cause, evaluate_ranking, needs_ranking
from core.rca.explain import explain, redacted_explanation
from core.rca.failure_history import FailureHistory
from core.rca.incident_signals import survey
from core.rca.observations import QUESTION, Observations
from core.rca.wording import with_person
from core.triage.history import IncidentHistory
from handlers.feedback.record_prediction import estimate_confidence, is_likelier, record_prediction
from handlers.incidents.investigate_with_model import Progress, investigate_with_model
from handlers.incidents.observe_incident import observe_incident
from handlers.knowledge.learn_failing_lines import failure_histories, record_failure
from handlers.ports import IncidentPorts

EVIDENCE = "evidence"  # the engine that uses no language model
JUDGED_BY = 8  # similar past incidents used to judge a model's finding
PROGRESS_DELAY = 1.0  # seconds before a step's progress is shown
PROGRESS_INTERVAL = 10.0  # seconds after which it changes at the latest
READING = "reading logs, metrics, changes and tools"
COMPARING = "comparing {count} with the time before the incident"

T = TypeVar("T")
Show = Callable[[Incident], Awaitable[None]]  # receives the findings so far

LOOKS_CLOSER = "asking the language model"  # progress text while the evidence-only result is shown


async def explain_incident(
    incident: Incident,
    ports: IncidentPorts,
    *,
    history: IncidentHistory,
    progress: Progress | None = None,
    show: Show | None = None,
) -> Incident:
    """Return the incident with its explanation: ranked hypotheses, or none and what was ruled out.

    A tool that fails or times out is named in the explanation as a gap. If the evidence for the first cause is not
    strong, a language model that passed its exam ranks the causes; before that, `show` receives the evidence-only
    result, which is a prediction of its own. The model's ranking is shown unless people's verdicts say that the
    evidence ranks better, and never with a stronger badge. `progress` receives the current activity during slow steps.
    Everything stored and shown is redacted.
    """
    report = progress or _no_progress
    observations, ruled_out = await _observed(incident, ports, history, report)
    failures = await failure_histories(observations.builds, ports.store)
    comparing = run_in_analysis_thread(explain, observations, failures)
    explanation, evaluation = await _with_progress(comparing, COMPARING.format(count=_count(observations)), report)
    if incident.notes:
        explanation = named_first(explanation, incident.notes, ruled_out)
        evaluation = await run_in_analysis_thread(_evaluated, explanation, observations)
    claimed = partial(_claimed, incident, observations, failures, history, ports)
    examined = ports.examined
    skill = examined.skill(Use.CAUSES) if examined is not None and needs_ranking(evaluation) else None
    if examined is None or skill is None or evaluation is None:
        return await claimed(explanation, evaluation)
    if show is not None:
        await show(await claimed(explanation, evaluation))
    incident_signals = await run_in_analysis_thread(survey, observations)
    asking = investigate_with_model(
        await run_in_analysis_thread(redacted_explanation, explanation, partial(redacted, redact=ports.redact)),
        observations,
        incident_signals,
        model=examined.model,
        right=skill.right,
        progress=report,
        readers=ports.readers,
    )
    asked = await _with_progress(asking, LOOKS_CLOSER, report)
    if asked.engine == EVIDENCE:
        return await claimed(asked, evaluation)
    judged = evaluate_ranking(asked.hypotheses, evaluation, incident_signals, observations)
    claim = Estimator(PredictionKind.CAUSE, asked.engine, RANKING_VERSION), judged
    if await is_likelier(claim, (Estimator(PredictionKind.CAUSE, EVIDENCE, VERSION), evaluation), ports.store):
        return await claimed(asked, judged)
    return await claimed(explanation, evaluation)


async def _observed(
    incident: Incident, ports: IncidentPorts, history: IncidentHistory, report: Progress
) -> tuple[Observations, Sequence[str]]:
    """Return the observations, with redacted builds and without the data that people denied, and the denials."""
    reading = observe_incident(incident, ports.readers, history=history, clock=ports.clock)
    observations = await _with_progress(reading, READING, report)
    builds = await run_in_analysis_thread(_clean_builds, observations.builds, ports.redact)
    return await run_in_analysis_thread(without_denied, replace(observations, builds=builds))


async def _claimed(
    incident: Incident,
    observations: Observations,
    failures: dict[str, FailureHistory],
    history: IncidentHistory,
    ports: IncidentPorts,
    explanation: Explanation,
    evaluation: Evaluation | None,
) -> Incident:
    """Return the incident with the redacted explanation; its first cause is stored as a prediction and has a badge."""
    explanation = await run_in_analysis_thread(
        redacted_explanation, explanation, partial(redacted, redact=ports.redact)
    )
    if explanation.cause is None or evaluation is None:
        return replace(incident, explanation=explanation)
    evaluation, version = await _judged(incident, explanation, evaluation, history, ports.judge)
    first = explanation.cause
    if not needs_ranking(evaluation):
        first = with_person(first, partial(redacted, redact=ports.redact))
        explanation = replace(explanation, hypotheses=(first, *explanation.hypotheses[1:]))
    prediction_id, badge = await record_prediction(
        PredictionKind.CAUSE,
        incident.id,
        first.cause,
        evaluation,
        ports,
        engine=explanation.engine,
        estimator_version=version,
        group=_group(first, ports.teams),
        references=tuple(similar.id for similar in explanation.similar),
    )
    explanation = replace(explanation, badge=badge, prediction_id=prediction_id)
    place = incident.place if incident.source == QUESTION else None
    await record_failure(
        explanation, observations.builds, failures, place=place, at=ports.clock.now(), store=ports.store
    )
    return replace(incident, explanation=explanation)


async def _with_progress(work: Coroutine[Any, Any, T], doing: str, report: Progress) -> T:
    """Return the result of `work`, reporting the activity after PROGRESS_DELAY and then every PROGRESS_INTERVAL."""
    task, began = asyncio.create_task(work), time.monotonic()
    pause, said = PROGRESS_DELAY, doing
    try:
        while not (await asyncio.wait({task}, timeout=pause))[0]:
            await report(said)
            pause = PROGRESS_INTERVAL
            said = f"{doing}, for {time.monotonic() - began + pause:.0f} s"
        return await task
    finally:
        task.cancel()


async def _no_progress(_: str) -> None:
    """Ignore progress."""


def _count(observations: Observations) -> str:
    told = (
        (len(observations.logs), "log record", "log records"),
        (len(observations.series), "metric", "metrics"),
        (len(observations.changes), "change", "changes"),
        (len(observations.outputs), "tool output", "tool outputs"),
        (len(observations.builds), "failed build", "failed builds"),
    )
    return ", ".join(f"{count} {one if count == 1 else many}" for count, one, many in told if count) or "nothing"


def _evaluated(explanation: Explanation, observations: Observations) -> Evaluation | None:
    """Return the evaluation of the first hypothesis, after people named or ruled out a cause."""
    if not explanation.hypotheses:
        return None
    return evaluate_cause(explanation.hypotheses, survey(observations), observations)


def _clean_builds(builds: Sequence[FailedBuild], redact: Redact) -> tuple[FailedBuild, ...]:
    """Return the builds with redacted logs. Line numbers refer to the redacted log from here on."""
    return tuple(replace(build, log=redacted(build.log, redact)) for build in builds)


async def _judged(
    incident: Incident,
    explanation: Explanation,
    measured: Evaluation,
    history: IncidentHistory,
    judge: LanguageModel | None,
) -> tuple[Evaluation, str]:
    """Return the evaluation of the cause and its version.

    The evidence engine's own measures are kept. A cause that a model ranked first is judged by `judge`, if there is
    one, against similar incidents from before this one.
    """
    if explanation.engine == EVIDENCE or explanation.cause is None:
        return measured, VERSION
    if judge is None:
        return measured, RANKING_VERSION
    situation = f"{incident.description}\n{incident.service}"
    similar = history.similar(situation, JUDGED_BY, without=frozenset({incident.id}))
    return await estimate_confidence(
        Claim(incident.id, situation, explanation.cause.cause, incident.started_at),
        [settled_case(neighbour.incident) for neighbour in similar],
        (measured, RANKING_VERSION),
        model=judge,
        urgency=Urgency.INCIDENT,
        requester=incident.id,
    )


def _group(cause: Hypothesis, teams: Sequence[Team]) -> str:
    """Return the team that runs the blamed service; the service itself if no team does."""
    return next((team.id for team in teams if cause.service in team.services), cause.service)
