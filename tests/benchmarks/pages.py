"""Measure how well it is predicted, when an incident begins, whether it needs a person.

Each line of FILE is an incident: `id`, `service`, `severity` (critical, warning or info) and `started_at`; the outcome,
either as `needed_person` (true or false), or as what people did: `acknowledged`, `taken`, `reassigned`, `commented` (a
truth value, a number or a list), `reassignments`, `root_cause`, `fix`. If none of these shows that a person did
something, the incident ended by itself if one of the first four is present; else its outcome is unknown. Optional are
`resolved_at`, `alert` or `title` (what repeats), `deploying`, `part_of` (an open incident was known that it belongs to),
and `flaps` (times that it fired again).

Each incident is judged as the product would have done: by a model that is fitted on the incidents that had ended before,
ten times over the file, with its own calibrator; before there is one, by the prior (`core.triage.paging`). Unlike the product, the model also learns from incidents that ended
while they were held back, because a file knows their outcome.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AwareDatetime, BaseModel, ValidationError
from rich.console import Console
from rich.table import Table

from bot.evaluation.report import SEED, json_lines, rounded
from core.confidence.calibrator import Calibrator, badge_for, fit
from core.confidence.ensemble import FloatArray
from core.confidence.measures import auroc, bootstrap, ece
from core.incidents.incident_view import NEEDED, UNCERTAIN, page_claim
from core.model.alert import Severity
from core.model.badge import Badge, Evaluation
from core.model.errors import MalformedInput
from core.triage.paging import Episode, Facts, PageModel, facts_in_order, fit_paging, prior, prior_probability

FITS = 10  # times that the model is fitted
RECALLS = (0.9, 0.95, 0.99)
BY_SEVERITY = {Severity.CRITICAL: 1.0, Severity.WARNING: 0.5, Severity.INFO: 0.0}
ACTED = ("acknowledged", "taken", "reassigned", "commented")
NOTED = ("reassignments", "root_cause", "fix")


class _Row(BaseModel):
    id: str
    service: str
    severity: Severity
    started_at: AwareDatetime
    resolved_at: AwareDatetime | None = None
    alert: str = ""
    title: str = ""
    labels: dict[str, str] = {}
    needed_person: bool | None = None
    deploying: bool = False
    part_of: Any = None
    flaps: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """An incident with its judgement, and whether it is that of the prior."""

    episode: Episode
    facts: Facts
    badge: Badge
    held: bool
    from_prior: bool


def load(path: Path) -> list[Episode]:
    """Return the incidents of a file. Raises MalformedInput that names the line."""
    return [_episode(row, number) for number, row in enumerate(json_lines(path, "id", "service", "started_at"), 1)]


def _episode(value: dict[str, Any], number: int) -> Episode:
    try:
        row = _Row.model_validate(value)
    except ValidationError as error:
        problem = error.errors()[0]
        raise MalformedInput(f"Line {number}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}.") from error
    needed = row.needed_person
    if needed is None:
        acted = any(value.get(name) for name in (*ACTED, *NOTED))
        needed = True if acted else False if any(name in value for name in ACTED) else None
    alert = row.alert or row.labels.get("alertname", "") or row.title
    return Episode(
        row.id,
        alert,
        row.service,
        row.severity,
        row.started_at,
        row.resolved_at,
        needed,
        row.deploying,
        bool(row.part_of),
        (row.started_at,) * row.flaps,
    )


def judge(episodes: Sequence[Episode], hold_below: float, *, cold: bool = False) -> list[Judged]:
    """Return each incident with the judgement that it would have got when it began; all by the prior if it is `cold`."""
    rows = facts_in_order(episodes)
    edges = [len(rows) * number // FITS for number in range(FITS + 1)]
    judged: list[Judged] = []
    for first, after in pairwise(edges):
        block = rows[first:after]
        began = block[0][0].began_at if block else datetime.max.replace(tzinfo=UTC)
        ended = [each for each, _ in rows[:first] if each.ended_at is not None and each.ended_at <= began]
        model = None if cold else fit_paging(ended)
        calibrator = fit(model.labels, "", began) if model is not None else None
        judged += [_judged(each, facts, model, calibrator, hold_below) for each, facts in block]
    return judged


def _judged(
    episode: Episode, facts: Facts, model: PageModel | None, calibrator: Calibrator | None, hold_below: float
) -> Judged:
    from_prior = model is None or calibrator is None
    judging = prior() if model is None or calibrator is None else model
    raw = judging.probability(facts)
    badge = badge_for(Evaluation(1.0, raw), None if from_prior else calibrator)
    if from_prior:
        badge = replace(badge, probability=prior_probability(raw))
    held = judging.may_wait(raw, badge.probability, facts, hold_below)
    return Judged(episode, facts, badge, held, from_prior)


def run(episodes: Sequence[Episode], hold_below: float, *, cold: bool = False) -> tuple[dict[str, Any], list[Judged]]:
    """Return the figures, and the judgements that they summarise."""
    return summarised(judge(episodes, hold_below, cold=cold), hold_below)


def summarised(everything: list[Judged], hold_below: float) -> tuple[dict[str, Any], list[Judged]]:
    """Return the figures of judgements, and the judgements."""
    needed = [each.episode.needed for each in everything]
    judged = [each for each in everything if each.episode.needed is not None]
    figures: dict[str, Any] = {
        "seed": SEED,
        "engine": "evidence",
        "incidents": len(everything),
        "needed_a_person": sum(each is True for each in needed),
        "needed_nobody": sum(each is False for each in needed),
        "judged": len(judged),
        "hold_below": hold_below,
        "held": _held(everything),
        "results": _results(judged),
        "cold_start": _results([each for each in judged if each.from_prior]),
        "learned": _results([each for each in judged if not each.from_prior]),
    }
    return figures, everything


def _results(judged: Sequence[Judged]) -> dict[str, Any]:
    needed = np.array([float(bool(each.episode.needed)) for each in judged])
    if len(set(needed.tolist())) < 2:  # all or none needed a person: nothing to tell apart
        return {}
    claimed = np.array([each.badge.probability for each in judged], float)
    severity = np.array([BY_SEVERITY[each.episode.severity] for each in judged])
    return {
        "plumbline": _figures(claimed, needed)
        | {"ece": round(ece(claimed, needed), 4), "auroc_ci": rounded(bootstrap(auroc, claimed, needed, seed=SEED))}
        | {"f1": _f1(claimed >= UNCERTAIN, needed), "probably": round(float((claimed >= NEEDED).mean()), 4)},
        "severity_only": _figures(severity, needed) | {"f1": _f1(severity == BY_SEVERITY[Severity.CRITICAL], needed)},
        "always_page": _figures(np.ones(len(needed)), needed) | {"f1": _f1(needed >= 0, needed)},
    }


def _held(judged: Sequence[Judged]) -> dict[str, Any]:
    held = [each.episode for each in judged if each.held]
    alone = sum(each.episode.needed is False for each in judged)
    return {
        "count": len(held),
        "critical": sum(each.severity is Severity.CRITICAL for each in held),
        "needed_a_person": sum(each.needed is True for each in held),
        "share_of_those_that_needed_nobody": round(sum(each.needed is False for each in held) / alone, 4)
        if alone
        else 0.0,
    }


def _figures(scores: FloatArray, needed: FloatArray) -> dict[str, float]:
    precision = {f"precision@recall{round(100 * recall)}": _precision(scores, needed, recall) for recall in RECALLS}
    return {"auroc": round(auroc(scores, needed), 4), **precision}


def _f1(called: NDArray[np.bool_], needed: FloatArray) -> float:
    """Return the F1 of calling a person: for Plumbline from where it says that one may be needed, else if it is critical."""
    return round(2 * float(needed[called].sum()) / float(called.sum() + needed.sum()), 4)


def _precision(scores: FloatArray, needed: FloatArray, recall: float) -> float:
    """Return the share of paged incidents that needed a person, with the fewest pages that reach this recall."""
    wanted = recall * needed.sum()
    for threshold in sorted(set(scores.tolist()), reverse=True):
        paged = scores >= threshold
        if needed[paged].sum() >= wanted:
            return round(float(needed[paged].mean()), 4)
    return float("nan")


def generate(count: int, seed: int, around: Sequence[Episode] = ()) -> list[Episode]:
    """Return generated incidents of 90 days: alerts that flap, faults, side effects of deployments, and storms.

    With `around`, they have the period and the services of those incidents.
    """
    draw = random.Random(seed)
    services = sorted({each.service for each in around}) or [f"service-{number}" for number in range(20)]
    begins = min((each.began_at for each in around), default=datetime(2026, 1, 1, tzinfo=UTC))
    length = max((each.began_at for each in around), default=begins + timedelta(days=90)) - begins
    made: list[Episode] = []

    def happen(
        kind: str, at: datetime, service: str, severity: Severity, need: float, minutes: float, **more: Any
    ) -> None:
        needed = draw.random() < need
        lasts = timedelta(minutes=draw.lognormvariate(0, 0.6) * (60 if needed else minutes))
        made.append(Episode(f"made-{len(made)}", kind, service, severity, at, at + lasts, needed, **more))

    noisy = {service: draw.betavariate(0.4, 12) for service in services}  # how often its flapping alert is real
    turned = {service: draw.random() if draw.random() < 0.1 else 2.0 for service in services}  # when that changes
    while len(made) < count:
        share = draw.random()
        at, service, what = begins + share * length, draw.choice(services), draw.random()
        if what < 0.5:
            need = 0.7 if share > turned[service] else noisy[service]
            severity = draw.choice([Severity.WARNING, Severity.WARNING, Severity.INFO, Severity.CRITICAL])
            for _ in range(draw.randint(1, 3)):
                happen("flapping", at, service, severity, need, 6, again=(at,) * draw.randint(0, 2))
                at += timedelta(minutes=draw.randint(15, 200))
        elif what < 0.7:
            severity = draw.choice([Severity.CRITICAL, Severity.WARNING])
            happen(f"fault-{draw.randint(1, 4)}", at, service, severity, 0.85, 20)
        elif what < 0.85:
            happen("restarting", at, service, Severity.WARNING, 0.12, 5, deploying=True)
            happen("restarting", at + timedelta(days=draw.random()), service, Severity.WARNING, 0.6, 15)
        else:
            happen("down", at, service, Severity.CRITICAL, 0.95, 20)
            for other in draw.sample(services, min(len(services), draw.randint(3, 12))):
                later = at + timedelta(seconds=draw.randint(10, 400))
                severity = draw.choice([Severity.CRITICAL, Severity.WARNING])
                happen("errors", later, other, severity, 0.03, 30, has_parent=draw.random() < 0.6)
    return made[:count]


def shown(each: Judged) -> str:
    """Return a judgement as the person on call reads it, with the outcome."""
    claim, badge = page_claim(each.badge, each.episode.severity)
    episode = each.episode
    became = "needed a person" if episode.needed else "ended by itself"
    held = ", held back" if each.held else ""
    judgement = f"{claim}: {', '.join(each.facts.evidence[:3])} · {badge.text}{held}"
    return f"{episode.began_at:%m-%d %H:%M} {episode.severity} {episode.service} {episode.alert}\n    {judgement}\n    ({became})"


def print_table(figures: dict[str, Any], console: Console) -> None:
    """Print the figures as tables."""
    counts = f"{figures['incidents']} incidents: {figures['needed_a_person']} needed a person, "
    console.print(f"{counts}{figures['needed_nobody']} needed nobody, {figures['judged']} were judged.")
    names = ["auroc", *(f"precision@recall{round(100 * recall)}" for recall in RECALLS), "ece", "f1", "probably"]
    for part, title in (("results", "all"), ("cold_start", "before enough was learned"), ("learned", "learned")):
        table = Table("method", *(name.replace("precision@recall", "p@r") for name in names), title=title)
        for method, row in figures[part].items():
            table.add_row(method, *(f"{row[name]:.3f}" if name in row else "" for name in names))
        if figures[part] and (part != "results" or figures["learned"]):
            console.print(table)
    console.print("p@r90: the share of pages that needed a person, if 90 % of the incidents that needed one are paged.")
    held = figures["held"]
    console.print(
        f"Held back below {figures['hold_below']}: {held['count']}, of which {held['critical']} critical and "
        f"{held['needed_a_person']} that needed a person; {held['share_of_those_that_needed_nobody']:.0%} of those that "
        "needed nobody."
    )
