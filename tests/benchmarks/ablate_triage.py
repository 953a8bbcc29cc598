"""What each mechanism of finding the owner is worth: the figures of two sets with one mechanism taken out at a time.

    python -m tests.benchmarks ablate-triage --train FILE [--folds 5] [--learn 2200] [--only NAME…] [--json FILE]

`tickets` are those of FILE, as `eval triage` takes and splits them; of its five folds so many are asked as `--folds` says,
since a model is fitted for each. `sample` are the past incidents of the sample company, each judged by all others. `first`
is the share whose first candidate is their owner; `named` and `wrong` are the shares for which an owner is named that is
and is not theirs. What the model is made of is taken out of fits to `--learn` tickets drawn from FILE: `held out` is the
share of these whose owner is the likeliest team of a fit that had not seen them. A loss of more than half an interval is
marked with a star.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from adapters.sources.past_incidents import load_past_incidents
from bot.commands.demo import SAMPLE_COMPANY
from bot.config.workspace import load_workspace
from bot.evaluation import triage
from bot.evaluation.report import wilson_interval
from core.model.findings import PastIncident
from core.model.team import Team
from core.triage.managers import Enrichment, Ground, TriageEvidence, gather
from core.triage.negotiate import WEIGHTS, negotiate
from core.triage.owner_model import IncidentHistory, IncidentText, OwnerModel, Postings, TextSimilarity, _words

FOLDS, SEED = 5, 7
CANDIDATES, NEGOTIATE = "core.triage.candidates", "core.triage.negotiate"
MODEL, SIMILARITY = "core.triage.owner_model", "core.triage.owner_model"

Asked = tuple[str, TriageEvidence]  # the owner of an incident, and what is known of it
Figures = dict[str, list[bool]]  # name of a figure → its value for each incident


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is put in its place, by the dotted name of what it replaces; with `refit` the model is fitted without it."""

    name: str
    instead: dict[str, Any] = field(default_factory=dict[str, Any])
    refit: bool = False

    @property
    def gathers(self) -> bool:
        """Return whether the evidence is another one without it."""
        return not all(name.startswith(NEGOTIATE) for name in self.instead)


@dataclass(frozen=True, slots=True)
class Fold:
    """Incidents to ask about, and what is known when they are asked about."""

    asked: Sequence[PastIncident]
    teams: Sequence[Team]
    history: IncidentHistory
    model: OwnerModel | None


_similarity_of = TextSimilarity.of


def _without(part: str) -> Any:
    def of(texts: Sequence[IncidentText]) -> TextSimilarity:
        whole = _similarity_of(texts)
        return replace(whole, **{part: Postings.of({} for _ in range(whole.words.size))})

    return of


def _single_words(text: IncidentText) -> Counter[str]:
    return Counter(_words(text.text))


MECHANISMS = (
    *(
        Mechanism(f"ground: {each.name.lower()}", {f"{NEGOTIATE}.WEIGHTS": {**WEIGHTS, each: 0.0}})
        for each in (Ground.HISTORY, Ground.DOCUMENT, Ground.OWNERSHIP, Ground.LEARNED)
    ),
    Mechanism("model instead of votes and documents", {f"{NEGOTIATE}.LEARNED_FROM": ()}),
    Mechanism("doubt", {f"{NEGOTIATE}.DOUBT": 1e-9}),
    Mechanism("least share", {f"{NEGOTIATE}.MIN_SHARE": 0.0}),
    Mechanism("majority", {f"{NEGOTIATE}._has_majority": lambda _: True}),
    Mechanism("something to show", {f"{NEGOTIATE}._can_be_shown": lambda *_: True}),
    Mechanism("owners without a past", {f"{NEGOTIATE}._outvotes_a_new_team": lambda *_: False}),
    Mechanism("nobody's incidents", {f"{NEGOTIATE}.NO_OWNER_SHARE": 2.0}),
    Mechanism("votes: an imagined one", {f"{CANDIDATES}.NOVELTY": 1e-9}),
    Mechanism("votes: who passed it on", {f"{CANDIDATES}.REASSIGNED_WEIGHT": 0.0}),
    Mechanism("documents: what is turned away", {"core.triage.candidates.DISOWNED_WEIGHT": 0.0}),
    Mechanism("documents: of new teams", {"core.triage.managers.NEW_TEAM": 0.0}),
    Mechanism("model: votes", {f"{MODEL}.VOTES": 0.0}, refit=True),
    Mechanism("model: fitted scale", {f"{MODEL}.SCALES": (2.999, 3.001)}, refit=True),
    Mechanism("model: unknown terms of what is asked", {"core.triage.owner_model.MIN_KNOWN": 1.0}),
    Mechanism("model: pairs of words", {f"{SIMILARITY}.IncidentText.words": property(_single_words)}, refit=True),
    *(
        Mechanism(f"model: {part}", {f"{SIMILARITY}.TextSimilarity.of": _without(part)}, refit=True)
        for part in ("words", "characters", "titles")
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the mechanisms of finding the owner out, one at a time.")
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--learn", type=int, default=2200)
    parser.add_argument("--only", action="append", default=[], help="what a mechanism's name begins with; repeatable")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    tickets = list(triage.tickets_of(given.train))
    drawn = np.random.default_rng(SEED).choice(len(tickets), given.learn, replace=False)
    learned_from = triage.as_past_incidents([tickets[number] for number in sorted(drawn.tolist())])
    parts = triage._folds(tickets, FOLDS)[: given.folds]
    sets = {"tickets": [_fold(*part) for part in parts], "sample": _sample()}
    whole = {name: _gathered(folds) for name, folds in sets.items()}
    rows = {"everything": _figures(whole) | _held_out(learned_from)}
    print("| taken out | first | named | wrong | first, sample | named, sample | wrong, sample | held out |")
    print(f"{'| --- ' * 8}|")
    _print("everything", rows["everything"], rows["everything"])
    for each in MECHANISMS:
        if not given.only or each.name.startswith(tuple(given.only)):
            with ExitStack() as stack:
                for name, instead in each.instead.items():
                    stack.enter_context(patch(name, instead))
                if each.refit:
                    rows[each.name] = _held_out(learned_from)
                elif each.gathers:
                    rows[each.name] = _figures({name: _gathered(folds) for name, folds in sets.items()})
                else:
                    rows[each.name] = _figures(whole)
            _print(each.name, rows[each.name], rows["everything"])
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def _fold(training: Sequence[triage.Ticket], tested: Sequence[triage.Ticket]) -> Fold:
    history = IncidentHistory(triage.as_past_incidents(training))
    return Fold(
        triage.as_past_incidents(tested), triage._teams(training), history, OwnerModel.fitted(history.incidents)
    )


def _sample() -> list[Fold]:
    past = load_past_incidents(SAMPLE_COMPANY / "incidents.jsonl")
    teams = load_workspace(SAMPLE_COMPANY / "plumbline.yaml").teams
    return [Fold([each], teams, IncidentHistory([other for other in past if other is not each]), None) for each in past]


def _held_out(incidents: Sequence[PastIncident]) -> Figures:
    model = OwnerModel.fitted(incidents)
    return {"held out": [each.correct for each in model.held_out] if model else []}


def _gathered(folds: Sequence[Fold]) -> list[Asked]:
    with threadpool_limits(1, user_api="blas"):
        return [(past.owner, _evidence(past, fold)) for fold in folds for past in fold.asked]


def _evidence(past: PastIncident, fold: Fold) -> TriageEvidence:
    incident = replace(triage.as_incident(past.title, past.description), service=past.service)
    return gather(incident, fold.teams, fold.history, Enrichment(), fold.model)


def _figures(sets: dict[str, list[Asked]]) -> Figures:
    figures: Figures = {}
    for name, incidents in sets.items():
        verdicts = [(owner, negotiate(evidence)) for owner, evidence in incidents]
        named = [(owner, verdict.owner.team_id if verdict.owner else None) for owner, verdict in verdicts]
        figures[f"{name}: first"] = [verdict.candidates[0].team_id == owner for owner, verdict in verdicts]
        figures[f"{name}: named"] = [team == owner for owner, team in named]
        figures[f"{name}: wrong"] = [team not in (None, owner) for owner, team in named]
    return figures


def _print(name: str, row: Figures, everything: Figures) -> None:
    shown: list[str] = []
    for key, whole in everything.items():
        values = row.get(key)
        if values is None:
            shown.append("–")
            continue
        low, high = wilson_interval(whole)
        loss = float(np.mean(whole) - np.mean(values)) * (-1 if key.endswith("wrong") else 1)
        shown.append(f"{np.mean(values):.3f}{' *' if loss > (high - low) / 2 else ''}")
    sys.stdout.write(f"| {name} | {' | '.join(shown)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
