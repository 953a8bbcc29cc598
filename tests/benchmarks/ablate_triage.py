"""What each mechanism of finding the owner is worth: the figures of two sets with one mechanism taken out at a time.

    python -m tests.benchmarks ablate-triage --train FILE [--folds 5] [--only NAME…] [--json FILE]

`tickets` are those of FILE, as `eval triage` takes and splits them; of its five folds so many are asked as `--folds` says,
since a model is fitted for each. `sample` are the past incidents of the sample company, each judged by all others. `first`
is the share whose first candidate is their owner; `named` and `wrong` are the shares for which an owner is named that is
and is not theirs. A loss of more than half an interval is marked with a star.
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
from core.model.incident import PastIncident
from core.model.team import Team
from core.triage.history import IncidentHistory
from core.triage.managers import Ground
from core.triage.monitoring import Enrichment
from core.triage.negotiate import WEIGHTS
from core.triage.owner_model import OwnerModel
from core.triage.postings import Postings
from core.triage.text_similarity import IncidentText, TextSimilarity
from tests.fakes.triage import propose_owner

FOLDS = 5
CANDIDATES, NEGOTIATE = "core.triage.candidates", "core.triage.negotiate"
MODEL, SIMILARITY = "core.triage.owner_model", "core.triage.text_similarity"

Figures = dict[str, list[bool]]  # name of a figure → its value for each incident


@dataclass(frozen=True, slots=True)
class Mechanism:
    """What is put in its place, by the dotted name of what it replaces; with `refit` the model is fitted without it."""

    name: str
    instead: dict[str, Any] = field(default_factory=dict[str, Any])
    refit: bool = False


@dataclass(frozen=True, slots=True)
class Fold:
    """Incidents to ask about, and what is known when they are asked about."""

    asked: Sequence[PastIncident]
    teams: Sequence[Team]
    history: IncidentHistory
    model: OwnerModel | None


_similarity_of, _terms_of = TextSimilarity.of, IncidentText.words.fget  # type: ignore[attr-defined]


def _without(part: str) -> Any:
    def of(texts: Sequence[IncidentText]) -> TextSimilarity:
        whole = _similarity_of(texts)
        return replace(whole, **{part: Postings.of({} for _ in range(whole.words.size))})

    return of


def _single_words(text: IncidentText) -> Counter[str]:
    return Counter({term: count for term, count in _terms_of(text).items() if " " not in term})


MECHANISMS = (
    *(
        Mechanism(f"ground: {each.name.lower()}", {f"{NEGOTIATE}.WEIGHTS": {**WEIGHTS, each: 0.0}})
        for each in (Ground.HISTORY, Ground.DOCUMENT, Ground.OWNERSHIP, Ground.LEARNED)
    ),
    Mechanism("model instead of votes and documents", {f"{NEGOTIATE}.LEARNED_FROM": ()}),
    Mechanism("doubt", {f"{NEGOTIATE}.DOUBT": 1e-9}),
    Mechanism("least share", {f"{NEGOTIATE}.MIN_SHARE": 0.0}),
    Mechanism("least lead", {f"{NEGOTIATE}.MIN_LEAD": 0.0}),
    Mechanism("majority", {f"{NEGOTIATE}._has_majority": lambda _: True}),
    Mechanism("something to show", {f"{NEGOTIATE}._can_be_shown": lambda *_: True}),
    Mechanism("owners without a past", {f"{NEGOTIATE}._outvotes_a_new_team": lambda *_: False}),
    Mechanism("nobody's incidents", {f"{NEGOTIATE}.NO_OWNER_SHARE": 2.0}),
    Mechanism("votes: an imagined one", {f"{CANDIDATES}.NOVELTY": 1e-9}),
    Mechanism("votes: who passed it on", {f"{CANDIDATES}.REASSIGNED_WEIGHT": 0.0}),
    Mechanism("documents: what is turned away", {"core.triage.documents.DISOWNED_WEIGHT": 0.0}),
    Mechanism("documents: of new teams", {"core.triage.managers.NEW_TEAM": 0.0}),
    Mechanism("model: votes", {f"{MODEL}.VOTES": 0.0}, refit=True),
    Mechanism("model: quota of a team", {f"{MODEL}.QUOTA": 0}, refit=True),
    Mechanism("model: fitted scale", {f"{MODEL}.SCALES": (2.999, 3.001)}, refit=True),
    Mechanism("model: unknown terms", {"core.triage.postings.MIN_KNOWN": 1.0}, refit=True),
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
    parser.add_argument("--only", action="append", default=[], help="what a mechanism's name begins with; repeatable")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    parts = triage._folds(list(triage._tickets(given.train)), FOLDS)[: given.folds]
    sets = {"tickets": [_fold(*part) for part in parts], "sample": _sample()}
    rows = {"everything": _figures(sets)}
    _print("everything", rows["everything"], rows["everything"])
    for each in MECHANISMS:
        if not given.only or each.name.startswith(tuple(given.only)):
            with ExitStack() as stack:
                for name, instead in each.instead.items():
                    stack.enter_context(patch(name, instead))
                learned = [replace(fold, model=_fitted(fold.history)) for fold in sets["tickets"]] if each.refit else ()
                rows[each.name] = _figures({**sets, "tickets": learned or sets["tickets"]})
            _print(each.name, rows[each.name], rows["everything"])
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def _fold(known: Sequence[triage.Ticket], asked: Sequence[triage.Ticket]) -> Fold:
    history = IncidentHistory(triage.as_past_incidents(known))
    return Fold(triage.as_past_incidents(asked), triage._teams(known), history, _fitted(history))


def _fitted(history: IncidentHistory) -> OwnerModel | None:
    return OwnerModel.fitted(history.incidents)


def _sample() -> list[Fold]:
    past = load_past_incidents(SAMPLE_COMPANY / "incidents.jsonl")
    teams = load_workspace(SAMPLE_COMPANY / "plumbline.yaml").teams
    return [Fold([each], teams, IncidentHistory([other for other in past if other is not each]), None) for each in past]


def _figures(sets: dict[str, Sequence[Fold]]) -> Figures:
    found: Figures = {}
    with threadpool_limits(1, user_api="blas"):
        for name, folds in sets.items():
            asked = [(each, _judged(each, fold)) for fold in folds for each in fold.asked]
            found[f"{name}: first"] = [first == each.owner for each, (first, _) in asked]
            found[f"{name}: named"] = [named == each.owner for each, (_, named) in asked]
            found[f"{name}: wrong"] = [named not in (None, each.owner) for each, (_, named) in asked]
    return found


def _judged(past: PastIncident, fold: Fold) -> tuple[str, str | None]:
    """Return the first candidate, and the owner that is named."""
    incident = replace(triage.as_incident(past.title, past.description), service=past.service)
    verdict = propose_owner(incident, fold.teams, fold.history, Enrichment(), fold.model)
    return verdict.candidates[0].team_id, verdict.owner.team_id if verdict.owner else None


def _print(name: str, row: Figures, everything: Figures) -> None:
    shown: list[str] = []
    for key, values in row.items():
        low, high = wilson_interval(everything[key])
        loss = float(np.mean(everything[key]) - np.mean(values)) * (-1 if key.endswith("wrong") else 1)
        shown.append(f"{np.mean(values):.3f}{' *' if loss > (high - low) / 2 else ''}")
    sys.stdout.write(f"| {name} | {' | '.join(shown)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
