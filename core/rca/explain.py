"""Observations become ranked hypotheses, or an honest “no culprit found, and here is what was ruled out”."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any, cast

from core.model.incident import EvidenceKind, Explanation, Hypothesis, Origin, TimelineEntry
from core.model.prediction import Evaluation
from core.rca.cause_evidence import evaluate_cause
from core.rca.failing_lines import NO_HISTORY, build_cause
from core.rca.failure_history import FailureHistory
from core.rca.merge import by_service, joined, tool_causes
from core.rca.observations import Observations
from core.rca.scene import Scene, survey
from core.rca.suspects import Suspect, first_failing, suspects
from core.rca.wording import hypothesis, named

MIN_SCORE = 0.3  # of a suspect that is named first
MIN_RIVAL = 0.04  # of one that is named beside it
MIN_SHARE = 0.4  # of the best hypothesis' score, from which what a tool says of another service stands beside it
MAX_HYPOTHESES = 3
MAX_RULED_OUT = 12  # suspects whose objection is shown
MAX_TIMELINE = 16  # entries
TIMELINE_BACK = timedelta(hours=2)  # before the start
SAID = frozenset({"cause", "next_check", "quote", "title", "text", "subject", "what", "files", "moved", "shared"})
"""Fields of an explanation that hold what systems said."""
NO_FAILURES: Mapping[str, FailureHistory] = {}


def explain(
    observations: Observations, failures: Mapping[str, FailureHistory] = NO_FAILURES
) -> tuple[Explanation, Evaluation | None]:
    """The explanation without its badge, and the two measures of its first hypothesis; None without a culprit.

    A symptom alone is no cause: unless something was changed, or a service shows signs beyond what the alert said,
    no culprit is named. Past incidents only support what was observed now. `failures` maps the history keys of builds
    to what was confirmed before.
    """
    scene = survey(observations)
    ranked = suspects(scene, observations)
    best = _best(ranked)
    hypotheses = _with_tool_causes(
        [hypothesis(each, scene, observations.similar) for each in best], observations, scene
    )
    built = [build_cause(build, failures.get(build.history_key, NO_HISTORY)) for build in observations.builds]
    hypotheses = (*(each for each in built if each is not None), *hypotheses)[:MAX_HYPOTHESES]
    explanation = Explanation(
        hypotheses=hypotheses,
        ruled_out=_ruled_out(ranked, best, scene, observations, {each.service for each in hypotheses}),
        similar=observations.similar,
        timeline=_timeline(best, scene, observations),
        gaps=observations.gaps,
        first_failing=first_failing(scene, observations),
    )
    return explanation, evaluate_cause(hypotheses, scene, observations) if hypotheses else None


def _with_tool_causes(
    hypotheses: Sequence[Hypothesis], observations: Observations, scene: Scene
) -> tuple[Hypothesis, ...]:
    """The hypotheses with the causes that tools tell: one of a service is told where the hypothesis about it names no change, and supports it in any case."""
    found = tuple(hypotheses)
    for cause in tool_causes(observations, scene):
        known = next((each for each in found if each.service == cause.service), None)
        if known is None and cause.score < max(MIN_SCORE, MIN_SHARE * max((each.score for each in found), default=0.0)):
            continue
        if known is not None and all(each.kind is not EvidenceKind.CHANGE for each in known.evidence):
            found = tuple(
                replace(each, cause=f"{each.cause} {cause.cause}") if each is known else each for each in found
            )
        found = joined(found, cause, cause.score)
    return found


def _best(ranked: Sequence[Suspect]) -> list[Suspect]:
    """The best suspects. What is no change is named once for each service."""
    best: list[Suspect] = []
    for suspect in ranked:
        if suspect.score < (MIN_RIVAL if best else MIN_SCORE) or len(best) == MAX_HYPOTHESES:
            break
        if suspect.change is not None or not any(
            suspect.service == other.service and other.change is None for other in best
        ):
            best.append(suspect)
    return best


def _ruled_out(
    ranked: Sequence[Suspect], best: Sequence[Suspect], scene: Scene, observations: Observations, blamed: set[str]
) -> tuple[str, ...]:
    others = [
        suspect
        for suspect in ranked
        if suspect not in best
        and (suspect.change or (suspect.origin is not Origin.SERVICE and suspect.service not in blamed))
    ]
    objections = list(dict.fromkeys(f"{_name(suspect, scene)}: {suspect.objection}." for suspect in others))
    lines = objections[:MAX_RULED_OUT]
    if len(objections) > MAX_RULED_OUT:
        lines.append(f"{len(objections) - MAX_RULED_OUT} more, less likely than these.")
    logged = {line.service for line in observations.logs}
    measured = {series.service for series in observations.series}
    read = logged | measured
    calm = [service for service in observations.services if service in read and service not in scene.signals]
    for what, services in (
        ("log message or metric", logged & measured),
        ("log message, and no metrics were found,", logged - measured),
        ("metric, and no logs were found,", measured - logged),
    ):
        if found := services.intersection(calm):
            lines.append(f"No unusual {what} in {_listed(found)}.")
    asked = by_service(observations)
    quiet = [service for service in asked if service and service not in blamed]
    if quiet:
        tools = dict.fromkeys(output.tool for service in quiet for output in asked[service])
        lines.append(f"Nothing in {_listed(tools)} explains it for {_listed(quiet)}.")
    unread = [service for service in observations.services if service not in read and service not in asked]
    if unread:
        lines.append(f"No logs or metrics were found of {_listed(unread)}.")
    return tuple(lines)


def _name(suspect: Suspect, scene: Scene) -> str:
    return (
        f"{named(suspect.revision, scene)} ({suspect.revision.change.title})" if suspect.revision else suspect.service
    )


def _timeline(best: Sequence[Suspect], scene: Scene, observations: Observations) -> tuple[TimelineEntry, ...]:
    incident = scene.incident
    known = {incident.service, *scene.distances, *(suspect.service for suspect in best)}
    entries = [TimelineEntry(incident.started_at, f"Alert: {incident.title}")]
    entries += [
        TimelineEntry(
            change.at,
            f"{change.kind} {change.id}{' of ' + ', '.join(change.touched) if change.touched else ''}: {change.title}",
        )
        for change in observations.changes
        if (not change.touched or known.intersection(change.touched))
        and change.at >= incident.started_at - TIMELINE_BACK
    ]
    entries += [
        TimelineEntry(build.at, f"Build {build.run} of {build.project} failed")
        for build in observations.builds
        if build.at
    ]
    signals = sorted(
        (signal for found in scene.signals.values() for signal in found), key=lambda signal: -signal.strength
    )
    entries += [TimelineEntry(signal.since, f"{signal.service}: {signal.what}") for signal in signals]
    return tuple(sorted(entries[:MAX_TIMELINE], key=lambda entry: entry.at))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def redacted_explanation(explanation: Explanation, clean: Callable[[str], str]) -> Explanation:
    """Return the causes, quotes and timeline as `clean` leaves them; where they come from stays as it is."""
    return replace(
        explanation,
        hypotheses=_cleaned(explanation.hypotheses, clean),
        ruled_out=tuple(map(clean, explanation.ruled_out)),
        timeline=_cleaned(explanation.timeline, clean),
    )


def _cleaned(value: Any, clean: Callable[[str], str], name: str = "") -> Any:
    """A value with the texts that systems gave as `clean` leaves them."""
    if isinstance(value, tuple):
        return tuple(_cleaned(each, clean, name) for each in cast("tuple[Any, ...]", value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _cleaned(getattr(value, each.name), clean, each.name) for each in fields(value)}
        )
    return clean(str(value)) if name in SAID else value
