"""Root-cause analysis: query every read-only tool by a fixed plan, and rank hypotheses by the results."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from core.answering.find import search
from core.confidence.model_estimator import Claim, settled_case
from core.incidents.thread_notes import named_first, without_denied
from core.knowledge.redactor import Redact, redacted
from core.knowledge.retriever import Retriever
from core.model.answer import EVIDENCE
from core.model.badge import Badge, Evaluation, PredictionKind
from core.model.conversation import Audience
from core.model.findings import Explanation, Hypothesis
from core.model.incident import Incident, may_see_incident
from core.model.language_model import Urgency
from core.model.running import run_in_analysis_thread
from core.model.text import counted
from core.model_calls.choice import Use
from core.ports import FailedBuild, LanguageModel, ToolParameter
from core.rca.cause_candidates import evaluate_cause, is_unsure
from core.rca.dependencies import names_of, unanswering
from core.rca.explain import explain, redacted_explanation
from core.rca.failing_lines import FailureHistory
from core.rca.incident_signals import survey
from core.rca.observation_tools import SEARCH_DOCUMENTS
from core.rca.observations import QUESTION, SUSPECT, Observations
from core.rca.wording import with_person
from core.triage.owner_model import IncidentHistory
from handlers.common.ports import Ports
from handlers.common.record_prediction import Claimed, estimate_confidence, is_likelier, record_prediction
from handlers.incidents.arrange_incident import MAX_NEAR
from handlers.incidents.investigate_with_model import (
    ClaimedExplanation,
    Progress,
    asks_model,
    by_evidence,
    investigate_with_model,
)
from handlers.incidents.observe_incident import observe_incident, similar_incidents
from handlers.knowledge.learn_failing_lines import failure_histories, record_failure

JUDGED_BY = 8  # similar past incidents used to judge a model's finding
PROGRESS_DELAY = 1.0  # seconds before a step's progress is shown
PROGRESS_INTERVAL = 10.0  # seconds after which it changes at the latest
CAUSE_SHARE = 0.55  # of what an incident may use of a language model, if it is asked about the owner as well
PASSAGES = 4  # of documents that are shown to a language model at once
COMPARING = "comparing {count} with the time before the incident"

T = TypeVar("T")
Show = Callable[[Incident], Awaitable[None]]  # receives the findings so far

LOOKS_CLOSER = "asking the language model"  # progress text while the evidence-only result is shown


async def explain_incident(
    incident: Incident,
    ports: Ports,
    *,
    history: IncidentHistory,
    progress: Progress | None = None,
    show: Show | None = None,
) -> Incident:
    """Return the incident with its explanation: ranked hypotheses, or none and what was ruled out.

    A tool that fails or times out is named in the explanation as a gap. If there is no cause, or the evidence for the first
    one is not strong, a language model that passed its exam investigates; before that, `show` receives the evidence-only
    result, which is a prediction of its own. If the model comes to another cause, both are kept, and the likelier is first,
    unless people's verdicts say that the evidence engine's is. A model makes no badge stronger. `progress` receives the
    current activity during slow steps. Everything stored and shown is redacted.
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
    conclusion = by_evidence(explanation, evaluation)
    examined = ports.models.examined
    if examined is None or (skill := examined.skill(Use.CAUSES)) is None or not asks_model(skill, conclusion):
        return await claimed(conclusion)
    if show is not None:
        await show(await claimed(conclusion))
    redact = partial(redacted, redact=ports.redact)
    asking = investigate_with_model(
        replace(conclusion, explanation=await run_in_analysis_thread(redacted_explanation, explanation, redact)),
        observations,
        await run_in_analysis_thread(survey, observations),
        model=examined.model,
        skill=skill,
        progress=report,
        limits=ports.models.limits.part(CAUSE_SHARE if examined.skill(Use.OWNERS) else 1.0),
        readers=ports.readers,
        past=partial(similar_incidents, history=history, incident=incident),
        trace=examined.trace,
        documents=[DocumentSearch(ports.knowledge.retriever, await ports.chats.audience_of(incident))],
    )
    model_conclusion = await _with_progress(asking, LOOKS_CLOSER, report)
    led = model_conclusion.first if model_conclusion.explanation.engine != EVIDENCE else None
    if led is not None and conclusion.first is not None and not await is_likelier(led, conclusion.first, ports.store):
        model_conclusion = _evidence_first(model_conclusion, conclusion)
    return await claimed(model_conclusion)


@dataclass(frozen=True, slots=True)
class DocumentSearch:
    """A tool that searches the documents and runbooks that everybody who sees the incident may read."""

    retriever: Retriever
    audience: Audience
    name: str = SEARCH_DOCUMENTS
    description: str = "Searches the company's documents and runbooks: how a system works, and what to do in a case."
    parameters: tuple[ToolParameter, ...] = (ToolParameter("question", "what to look for, in a few words"),)

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return the nearest passages below their titles. Raises IndexUnavailable."""
        nearest = (await search(arguments["question"], self.audience, self.retriever)).passages[:PASSAGES]
        shown = (f"{each.passage.title} › {each.passage.heading}\n{each.passage.text}" for each in nearest)
        return "\n\n".join(shown) or "No document says anything of that."


def _evidence_first(of_model: ClaimedExplanation, of_engine: ClaimedExplanation) -> ClaimedExplanation:
    """Return a model's conclusion with the evidence engine's cause before it, because people's verdicts say so."""
    if of_model.second is None:
        return replace(
            of_engine, explanation=replace(of_engine.explanation, trajectory=of_model.explanation.trajectory)
        )
    first, second, *others = of_model.explanation.hypotheses
    swapped = replace(of_model.explanation, hypotheses=(second, first, *others), engine=EVIDENCE)
    return ClaimedExplanation(swapped, of_model.second, of_model.first)


async def _observed(
    incident: Incident, ports: Ports, history: IncidentHistory, report: Progress
) -> tuple[Observations, Sequence[str]]:
    """Return the observations, with redacted builds and without the data that people denied, and the denials."""
    others = await _firing(incident, ports)
    reading = observe_incident(incident, ports.readers, history=history, clock=ports.clock, others=others)
    observations = await _with_progress(reading, "reading logs, metrics, changes and tools", report)
    builds = await run_in_analysis_thread(_clean_builds, observations.builds, ports.redact)
    return await run_in_analysis_thread(without_denied, replace(observations, builds=builds))


async def _firing(incident: Incident, ports: Ports) -> list[Incident]:
    """Return the open incidents of what this one says does not answer, as far as its readers may see them."""
    if not (words := unanswering(incident)):
        return []
    async with ports.store.transaction() as transaction:
        others = await transaction.incidents.near(incident, words, incident.started_at - SUSPECT, MAX_NEAR)
        others += await transaction.incidents.latest_open(MAX_NEAR)
    named = [each for each in others if each.id != incident.id and not words.isdisjoint(names_of(each))]
    channels = await ports.chats.channels_of([incident, *named])
    return [each for each in named if may_see_incident(incident.placement.audience(channels), each, channels)]


async def _claimed(
    incident: Incident,
    observations: Observations,
    failures: dict[str, FailureHistory],
    history: IncidentHistory,
    ports: Ports,
    conclusion: ClaimedExplanation,
) -> Incident:
    """Return the incident with the redacted explanation.

    Its first cause is stored as a prediction and has a badge, and so is the second if the engines disagree.
    """
    redact = partial(redacted, redact=ports.redact)
    explanation = await run_in_analysis_thread(redacted_explanation, conclusion.explanation, redact)
    if explanation.cause is None or conclusion.first is None:
        return incident.with_findings(explanation=explanation)
    first, *others = explanation.hypotheses
    if not is_unsure(conclusion.first[1]):
        first = with_person(first, redact)
    judged = await _judged(incident, explanation, conclusion.first, history, ports.models.judge)

    async def recorded(cause: Hypothesis, claim: Claimed) -> tuple[str, Badge]:
        # Grouped by the team that runs the blamed service, or by the service itself if no team does.
        teams = (team.id for team in ports.company.teams if cause.service in team.services)
        return await record_prediction(
            PredictionKind.CAUSE,
            incident.id,
            cause.cause,
            claim[1],
            ports,
            engine=claim[0].engine,
            estimator_version=claim[0].version,
            group=next(teams, cause.service),
            references=tuple(similar.id for similar in explanation.similar),
        )

    prediction_id, badge = await recorded(first, judged)
    if conclusion.second is not None:
        second_id, second_badge = await recorded(others[0], conclusion.second)
        others[0] = replace(others[0], prediction_id=second_id, badge=second_badge)
    explanation = replace(explanation, hypotheses=(first, *others), badge=badge, prediction_id=prediction_id)
    await record_failure(
        explanation,
        observations.builds,
        failures,
        place=incident.placement.place if incident.source == QUESTION else None,
        at=ports.clock.now(),
        store=ports.store,
    )
    return incident.with_findings(explanation=explanation)


async def _with_progress(work: Coroutine[Any, Any, T], doing: str, report: Progress) -> T:
    """Return the result of `work`, reporting the activity after PROGRESS_DELAY and then every PROGRESS_INTERVAL."""
    task, began = asyncio.create_task(work), time.monotonic()
    pause, activity = PROGRESS_DELAY, doing
    try:
        while not (await asyncio.wait({task}, timeout=pause))[0]:
            await report(activity)
            pause = PROGRESS_INTERVAL
            activity = f"{doing}, for {time.monotonic() - began + pause:.0f} s"
        return await task
    finally:
        task.cancel()


async def _no_progress(_: str) -> None:
    """Ignore progress."""


def _count(observations: Observations) -> str:
    counts = (
        (len(observations.logs), "log record"),
        (len(observations.series), "metric"),
        (len(observations.changes), "change"),
        (len(observations.outputs), "tool output"),
        (len(observations.builds), "failed build"),
    )
    return ", ".join(counted(number, noun) for number, noun in counts if number) or "nothing"


def _evaluated(explanation: Explanation, observations: Observations) -> Evaluation | None:
    """Return the evaluation of the first hypothesis, after people named or ruled out a cause."""
    return (
        evaluate_cause(explanation.hypotheses, survey(observations), observations) if explanation.hypotheses else None
    )


def _clean_builds(builds: Sequence[FailedBuild], redact: Redact) -> tuple[FailedBuild, ...]:
    """Return the builds with redacted logs. Line numbers refer to the redacted log from here on."""
    return tuple(
        replace(build, log=redacted(build.log, redact), stated=redacted(build.stated, redact)) for build in builds
    )


async def _judged(
    incident: Incident,
    explanation: Explanation,
    measured: Claimed,
    history: IncidentHistory,
    judge: LanguageModel | None,
) -> Claimed:
    """Return the claim of the first cause as `judge` estimates it, if a model made it; else as it was `measured`.

    It is judged against similar incidents from before this one.
    """
    estimator, evaluation = measured
    if estimator.engine == EVIDENCE or explanation.cause is None or judge is None:
        return measured
    situation = f"{incident.description}\n{incident.service}"
    similar = history.similar(situation, JUDGED_BY, without=frozenset({incident.id}))
    evaluation, version = await estimate_confidence(
        Claim(incident.id, situation, explanation.cause.cause, incident.started_at),
        [settled_case(neighbour.incident) for neighbour in similar],
        (evaluation, estimator.version),
        model=judge,
        urgency=Urgency.INCIDENT,
        requester=incident.id,
    )
    return replace(estimator, version=version), evaluation
