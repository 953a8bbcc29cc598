"""Explain observations by ranked hypotheses, or say that no cause was found and what was ruled out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, cast

from core.model.badge import Evaluation
from core.model.findings import Explanation, Origin, TimelineEntry
from core.rca.cause_candidates import CauseCandidate, cause_candidates, evaluate_cause, first_failing
from core.rca.failing_lines import NO_HISTORY, FailureHistory, build_cause
from core.rca.incident_signals import IncidentSignals, survey
from core.rca.observations import (
    LOGS,
    METRICS,
    OUTPUTS,
    SUSPECT,
    UNREAD,
    Observations,
    Rebuttal,
    outputs_by_service,
)
from core.rca.wording import hypothesis, named

MIN_SCORE = 0.3  # of a candidate that is named first
MIN_RIVAL = 0.04  # of a candidate that is named beside it
MAX_HYPOTHESES = 3
MAX_RULED_OUT = 12  # candidates whose objection is shown
MAX_TIMELINE = 16  # entries
TIMELINE_BACK = timedelta(hours=2)  # before the start
SAID = frozenset(
    {"cause", "next_check", "quote", "title", "text", "subject", "what", "files", "moved", "shared", "detail"}
    | {"disproof", "solution", "root_cause", "thought", "reply", "shown", "fault", "arguments", "evidence"}
)
"""Fields of an explanation with text from other systems."""
NO_FAILURES: Mapping[str, FailureHistory] = {}


def explain(
    observations: Observations, failures: Mapping[str, FailureHistory] = NO_FAILURES
) -> tuple[Explanation, Evaluation | None]:
    """Return the explanation without its badge, and the evaluation of its first hypothesis; None without one.

    A symptom alone is not a cause: a cause is named only if something was changed, or a service shows signs beyond the
    alert. Past incidents only support present observations. `failures` maps the history keys of builds to their
    confirmed failures.
    """
    incident_signals = survey(observations)
    ranked = cause_candidates(incident_signals, observations)
    best = _best(ranked)
    hypotheses = [hypothesis(each, incident_signals, observations) for each in best]
    built = [build_cause(build, failures.get(build.history_key, NO_HISTORY)) for build in observations.builds]
    hypotheses = (*(each for each in built if each is not None), *hypotheses)[:MAX_HYPOTHESES]
    blamed = {each.service for each in hypotheses}
    ruled_out = _ruled_out(ranked, best, incident_signals, observations, blamed)
    explanation = Explanation(
        hypotheses=hypotheses,
        ruled_out=tuple(line.text for line in ruled_out if line.is_checked),
        similar=observations.similar,
        timeline=_timeline(best, incident_signals, observations),
        gaps=observations.gaps,
        first_failing=first_failing(incident_signals, observations),
        unchecked=tuple(line.text for line in ruled_out if not line.is_checked),
    )
    return explanation, evaluate_cause(hypotheses, incident_signals, observations) if hypotheses else None


def _best(ranked: Sequence[CauseCandidate]) -> list[CauseCandidate]:
    """Return the best candidates. Of those without a change, an object has at most one, and the trouble of a service without
    a known fault counts as that of all its objects.
    """
    best: list[CauseCandidate] = []
    for candidate in ranked:
        if candidate.score < (MIN_RIVAL if best else MIN_SCORE) or len(best) == MAX_HYPOTHESES:
            break
        unchanged = [each for each in best if each.change is None and each.service == candidate.service]
        name = candidate.fault.name if candidate.fault is not None else ""
        if candidate.change or not any(name in ("", each.fault.name if each.fault else "") for each in unchanged):
            best.append(candidate)
    return best


def _ruled_out(
    ranked: Sequence[CauseCandidate],
    best: Sequence[CauseCandidate],
    incident_signals: IncidentSignals,
    observations: Observations,
    blamed: set[str],
) -> tuple[Rebuttal, ...]:
    others = [
        candidate
        for candidate in ranked
        if candidate not in best
        and (candidate.change or (candidate.origin is not Origin.SERVICE and candidate.service not in blamed))
    ]
    objections = dict.fromkeys(
        each.objection._replace(
            text=f"{named(each.revision, incident_signals)} ({each.revision.change.title}): {each.objection.text}."
            if each.revision
            else f"{each.service}: {each.objection.text}."
        )
        for each in others
    )
    lines = list(objections)[:MAX_RULED_OUT]
    if (more := len(objections) - MAX_RULED_OUT) > 0:
        lines.append(Rebuttal(f"{more} more that {'is' if more == 1 else 'are'} less likely."))
    since = observations.incident.started_at - SUSPECT
    with_logs = observations.covered(LOGS, observations.services, since)
    with_metrics = observations.covered(METRICS, observations.services, since)
    read = with_logs | with_metrics
    calm = [
        service for service in observations.services if service in read and service not in incident_signals.by_service
    ]
    is_whole = observations.is_whole(LOGS, METRICS)
    part = "" if is_whole else "what was read of "
    for what, services, missing in (
        ("log message or metric", with_logs & with_metrics, ""),
        ("log message", with_logs - with_metrics, " No metrics were found there."),
        ("metric", with_metrics - with_logs, " No logs were found there."),
    ):
        if silent := services.intersection(calm):
            lines.append(Rebuttal(f"No unusual {what} in {part}{_listed(silent)}.{missing}", is_whole))
    outputs_of = outputs_by_service(observations)
    quiet = [service for service in outputs_of if service and service not in blamed]
    if quiet:
        outputs = [output for service in quiet for output in outputs_of[service]]
        is_whole = observations.is_whole(OUTPUTS) and not any(UNREAD in output.text for output in outputs)
        lines.append(
            Rebuttal(
                f"Nothing in {_listed({each.tool for each in outputs})} shows a cause in {_listed(quiet)}.", is_whole
            )
        )
    unread = [service for service in observations.services if service not in read and service not in outputs_of]
    if unread:
        lines.append(
            Rebuttal(
                f"No logs or metrics of {_listed(unread)} were found for the time before the alert.", is_checked=False
            )
        )
    return tuple(lines)


def _timeline(
    best: Sequence[CauseCandidate], incident_signals: IncidentSignals, observations: Observations
) -> tuple[TimelineEntry, ...]:
    incident = incident_signals.incident
    services = {incident.service, *incident_signals.distances, *(candidate.service for candidate in best)}
    shown = (
        change
        for change in observations.changes
        if (not change.touched or services.intersection(change.touched))
        and change.at >= incident.started_at - TIMELINE_BACK
    )
    signals = [signal for of_service in incident_signals.by_service.values() for signal in of_service]
    entries = [
        TimelineEntry(incident.started_at, f"Alert: {incident.title}"),
        *(
            TimelineEntry(
                each.at, f"{each.name}{' of ' + ', '.join(each.touched) if each.touched else ''}: {each.title}"
            )
            for each in shown
        ),
        *(
            TimelineEntry(each.at, f"Build {each.run} of {each.project} failed")
            for each in observations.builds
            if each.at
        ),
        *(
            TimelineEntry(each.since, f"{each.service}: {each.what}")
            for each in sorted(signals, key=lambda signal: -signal.strength)
        ),
    ]
    return tuple(sorted(entries[:MAX_TIMELINE], key=lambda entry: entry.at))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def redacted_explanation(explanation: Explanation, clean: Callable[[str], str]) -> Explanation:
    """Return the explanation with `clean` applied to what systems and a model said, but not to the names of sources."""
    return replace(
        explanation,
        hypotheses=_cleaned(explanation.hypotheses, clean),
        ruled_out=tuple(map(clean, explanation.ruled_out)),
        unchecked=tuple(map(clean, explanation.unchecked)),
        timeline=_cleaned(explanation.timeline, clean),
        gaps=_cleaned(explanation.gaps, clean),
        trajectory=_cleaned(explanation.trajectory, clean),
    )


def _cleaned(value: Any, clean: Callable[[str], str], name: str = "") -> Any:
    """Return a value with `clean` applied to its texts from other systems or from a model."""
    if isinstance(value, tuple):
        return tuple(_cleaned(each, clean, name) for each in cast("tuple[Any, ...]", value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _cleaned(getattr(value, each.name), clean, each.name) for each in fields(value)}
        )
    if isinstance(value, Mapping):
        return {key: _cleaned(each, clean, name) for key, each in cast("Mapping[str, Any]", value).items()}
    return clean(value) if name in SAID and isinstance(value, str) else value
