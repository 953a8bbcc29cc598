"""`plumbline eval triage`: measure whether an incident reaches its team, and at which hop (Triangle, section 4.2).

Tickets are JSON lines with `title`, `body` and `owner`, plain or .gz. Folds are split by the text without case and
punctuation, so that equal texts are never on both sides. The team documents of `plumbline` are written from the
training tickets alone: the words that distinguish a team's tickets. A team that turns a ticket away takes no part in the
next hop. Of the ablations of Triangle's Table 2, `without_negotiation` assigns in the decider's order; without monitoring
there is no enrichment to leave out. With an embedding model, `without_embedding` is the result while it is unavailable.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from bot.evaluation.report import (
    ASKING,
    DEADLINE,
    NO_MODEL,
    SEED,
    CallCost,
    OpenedModel,
    RecordedModel,
    bootstrap_interval,
    cell,
    costs,
    json_lines,
    paired,
    print_model,
    print_rows,
    rounded,
)
from core.answering.model_exam import WRITES, Marks, examined, skill_of
from core.confidence.calibrator import fit
from core.confidence.measures import bootstrap, ece, ece_interval, risk_coverage
from core.model.alert import Alert, AlertStatus, Severity
from core.model.badge import Calibrator, Evaluation
from core.model.conversation import Place, Placement, Platform
from core.model.errors import InvalidReply, MalformedInput
from core.model.findings import PastIncident
from core.model.incident import Incident
from core.model.team import Team
from core.model_calls.choice import Skill
from core.model_calls.metered_model import Limits, MeteredModel
from core.ports import Embedder
from core.triage.agents import (
    Dispute,
    Session,
    Settled,
    TeamDocuments,
    needs_model,
    nothing_monitored,
    settled_by_model,
)
from core.triage.candidates import discussion_group
from core.triage.managers import Enrichment, TriageEvidence, gather
from core.triage.negotiate import VERSION, Verdict, evaluate_owner, labels_from, negotiate
from core.triage.owner_model import Embeddings, IncidentHistory, OwnerModel, Vector, embedded_text
from handlers.incidents.triage_incident import embed_past_incidents

HOPS = 5
PRECISION = 0.9  # precision at which the coverage is reported
DOCUMENT_WORDS = 40  # words in a team's document, which is written from its tickets
MIN_TICKETS = 2  # tickets of a team that must contain a word of its document
AT = datetime(2026, 1, 1, tzinfo=UTC)

_WORD = re.compile(r"\w+")

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ticket:
    title: str
    body: str
    owner: str

    @property
    def text(self) -> str:
        return "\n".join(dict.fromkeys(part for part in (self.title, self.body) if part))

    @property
    def key(self) -> str:
        return " ".join(_WORD.findall(f"{self.title} {self.body}".casefold()))


@dataclass(frozen=True, slots=True)
class TicketOutcome:
    """A method's result for one ticket: the teams it would ask, best first, and its confidence in the first.

    `confidence` orders tickets; `probability` in [0, 1] is the claimed probability.
    """

    ranked: tuple[str, ...]
    confidence: float
    probability: float
    owner: str

    @property
    def correct(self) -> bool:
        return self.ranked[:1] == (self.owner,)


Outcomes = dict[str, list[TicketOutcome]]  # method → one outcome per ticket

Split = tuple[list[Ticket], list[Ticket]]  # the training tickets, and those to assign


def run(
    train: Path,
    test: Path | None = None,
    folds: int = 5,
    on_fold: Callable[[int], None] = lambda _: None,
    embedder: Embedder | None = None,
    llm: OpenedModel = NO_MODEL,
    sample: int = 0,
) -> dict[str, Any]:
    """Return the figures of the tickets that `splits_of` returns.

    With an `embedder`, `plumbline` also learns from its embeddings.
    With a language model, three methods are paired: `evidence`; `model`, which takes the model at its word if the teams do
    not agree; and `plumbline`, which trusts it as far as its exam proves and does not ask a model that failed it. A model
    that proved that it writes plays the teams' agents, also at the next hops; another one chooses once. Raises
    MalformedInput for an invalid file.
    """
    return asyncio.run(_run(splits_of(train, test, folds, sample), on_fold, embedder, llm))


async def _run(
    splits: Sequence[Split], on_fold: Callable[[int], None], embedder: Embedder | None, llm: OpenedModel
) -> dict[str, Any]:
    by_method: defaultdict[str, list[TicketOutcome]] = defaultdict(list)
    embedding = TicketEmbedder(embedder) if embedder else None
    about: dict[str, Any] = {"engine": "evidence"}
    async with llm as model:
        marks = await examined(model, ASKING) if model is not None else Marks(0, 0, 0)
        decider = Decider(model, skill_of(marks), writes=marks.write >= WRITES) if model is not None else None
        for number, (training, tickets) in enumerate(splits, start=1):
            for method, outcomes in (await _measured(training, tickets, embedding, decider)).items():
                by_method[method] += outcomes
            on_fold(number)
    if decider is not None:
        about = {
            "engine": decider.model.name,
            "model": decider.model.name,
            "exam": str(marks),
            **costs(decider.asked),
            "paired": {
                name: paired(
                    (o.correct, e.correct) for o, e in zip(by_method[name], by_method["evidence"], strict=True)
                )
                for name in ("model", "plumbline")
            },
        }
    return {
        "measure": "triage",
        **about,
        "embeddings": embedder.name if embedder else "none",
        "seed": SEED,
        "cases": len(by_method["plumbline"]),
        "folds": len(splits),
        "results": {method: figures_of(outcomes) for method, outcomes in by_method.items()},
    }


def print_table(figures: Mapping[str, Any], console: Console) -> None:
    title = f"{figures['cases']} tickets, {figures['folds']} folds; embeddings: {figures['embeddings']}"
    keys = ("hop@1", "hop@3", "hop@5", "macro_f1", "ece", "coverage@precision90")
    rows = [(method, *(cell(row, key, ".3f") for key in keys)) for method, row in figures["results"].items()]
    print_rows(console, ("method", *keys), rows, title)
    console.print(
        "macro_f1 is the mean over teams; coverage@precision90 is the largest share of tickets, most confident first, of which "
        f"{PRECISION:.0%} are right."
    )
    print_model(figures, console)


class Decider:
    """A language model that is asked if the teams do not agree. `asked` lists its calls for each ticket."""

    def __init__(self, model: RecordedModel, skill: Skill | None, *, writes: bool) -> None:
        self.model = model
        self.asked: list[list[CallCost]] = []
        self._skills = {"model": Skill(1.0, float(writes)), "plumbline": skill}
        self._documents = TeamDocuments()

    async def outcomes(
        self, evidence: TriageEvidence, incident: Incident, calibrator: Calibrator, owner: str
    ) -> dict[str, TicketOutcome]:
        outcomes = {"evidence": _negotiated(evidence, calibrator, owner)}
        for name, skill in self._skills.items():
            before = len(self.model.calls)
            outcomes[name] = (
                await self._outcome(evidence, incident, calibrator, owner, skill) if skill else outcomes["evidence"]
            )
            if name == "model" and len(self.model.calls) > before:
                self.asked.append(self.model.calls[before:])
        return outcomes

    async def _outcome(
        self, evidence: TriageEvidence, incident: Incident, calibrator: Calibrator, owner: str, skill: Skill
    ) -> TicketOutcome:
        """Return the outcome of a model of this skill: until the owner is found, every hop is negotiated anew."""
        first = await self._settled(evidence, incident, (), skill)
        ranked = [first.verdict.candidates[0].team_id]
        while skill.writes and ranked[-1] != owner and len(ranked) < HOPS:
            following = await self._settled(evidence, incident, ranked, skill)
            if not following.verdict.candidates:
                break
            ranked.append(following.verdict.candidates[0].team_id)
        return _outcome_of(first, evidence, calibrator, owner, ranked)

    async def _settled(
        self, evidence: TriageEvidence, incident: Incident, turned_away: Sequence[str], skill: Skill
    ) -> Settled:
        removed = frozenset(turned_away)
        verdict = negotiate(evidence, removed)
        dispute = Dispute(incident, verdict, evidence, removed=removed)
        if not needs_model(dispute, skill):
            return _by_evidence(verdict)
        session = Session(MeteredModel(self.model, Limits(seconds=DEADLINE)), ASKING)
        try:
            return await settled_by_model(dispute, session, skill, self._documents, nothing_monitored)
        except InvalidReply:
            return _by_evidence(verdict)


async def _measured(
    training: Sequence[Ticket], tickets: Sequence[Ticket], embedding: TicketEmbedder | None, decider: Decider | None
) -> Outcomes:
    """Return the outcomes of the product's triage and its ablations."""
    incidents = as_past_incidents(training)
    teams = _teams(training)
    history = IncidentHistory(incidents)
    model = OwnerModel.fitted(incidents, await embedding.past(incidents) if embedding else None)
    if model is None:
        raise MalformedInput(f"{len(training)} tickets are too few to learn from.")
    calibrator = fit(labels_from(model), "eval", AT)
    assert calibrator is not None
    new = [as_incident(ticket.title, ticket.body) for ticket in tickets]
    vectors = await embedding.vectors(new) if embedding else [None] * len(new)
    outcomes: defaultdict[str, list[TicketOutcome]] = defaultdict(list)
    for ticket, incident, vector in zip(tickets, new, vectors, strict=True):
        evidence = gather(incident, teams, history, Enrichment(), model, vector=vector)
        if decider is None:
            outcomes["plumbline"].append(_negotiated(evidence, calibrator, ticket.owner))
        else:
            for name, outcome in (await decider.outcomes(evidence, incident, calibrator, ticket.owner)).items():
                outcomes[name].append(outcome)
        outcomes["without_negotiation"].append(_decided(evidence, ticket.owner))
        if vector is not None:
            unembedded = gather(incident, teams, history, Enrichment(), model)
            outcomes["without_embedding"].append(_negotiated(unembedded, calibrator, ticket.owner))
    return dict(outcomes)


def _negotiated(evidence: TriageEvidence, calibrator: Calibrator, owner: str) -> TicketOutcome:
    return _outcome_of(_by_evidence(negotiate(evidence)), evidence, calibrator, owner)


def _by_evidence(verdict: Verdict) -> Settled:
    return Settled(verdict, evaluate_owner(verdict) if verdict.candidates else Evaluation(0.0, 0.0), VERSION)


def _outcome_of(
    settled: Settled, evidence: TriageEvidence, calibrator: Calibrator, owner: str, hops: Sequence[str] = ()
) -> TicketOutcome:
    """Return the outcome of a verdict, with the teams asked at the next hops: `hops`, and then those of the evidence."""
    ranked = list(hops) or [settled.verdict.candidates[0].team_id]
    while len(ranked) < HOPS and (left := negotiate(evidence, frozenset(ranked)).candidates):
        ranked.append(left[0].team_id)
    probability = calibrator.probability(settled.evaluation, ranked[0])
    return TicketOutcome(tuple(ranked), probability + settled.evaluation.rce / 1_000, probability, owner)


def _decided(evidence: TriageEvidence, owner: str) -> TicketOutcome:
    ranked: list[str] = []
    while len(ranked) < HOPS and (group := discussion_group(evidence.votes, evidence.fits, {}, (), frozenset(ranked))):
        ranked.append(group[0])
    share = evidence.votes[ranked[0]].share if ranked and ranked[0] in evidence.votes else 0.0
    return TicketOutcome(tuple(ranked), share, min(1.0, share), owner)


def _teams(training: Sequence[Ticket]) -> list[Team]:
    """Return the teams, each with a document of the words that distinguish its tickets."""
    held: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for ticket in training:
        held[ticket.owner].update(set(_WORD.findall(ticket.text.casefold())))
    everywhere = Counter(word for words in held.values() for word in words.elements())
    sizes = Counter(ticket.owner for ticket in training)
    teams: list[Team] = []
    for owner, words in sorted(held.items()):
        gains = {
            word: count * log(count / sizes[owner] / (everywhere[word] / len(training)))
            for word, count in words.items()
            if count >= MIN_TICKETS
        }
        best = sorted((word for word, gain in gains.items() if gain > 0), key=lambda word: (-gains[word], word))
        teams.append(Team(owner, owner, f"## We own\n\n{' '.join(best[:DOCUMENT_WORDS])}\n"))
    return teams


def as_past_incidents(tickets: Sequence[Ticket]) -> list[PastIncident]:
    """Return tickets as closed incidents, one second apart."""
    return [
        PastIncident(str(number), ticket.title, ticket.body, "", Severity.WARNING, AT + number * timedelta(seconds=1), ticket.owner)
        for number, ticket in enumerate(tickets)
    ]  # fmt: skip


def as_incident(title: str, description: str, incident_id: str = "asked") -> Incident:
    """Return a ticket as an incident without further information."""
    alert = Alert("1", "ticket", AlertStatus.FIRING, Severity.WARNING, AT, description=description)
    return Incident(
        id=incident_id,
        source="eval",
        group_key="",
        title=title,
        severity=Severity.WARNING,
        service="",
        labels={},
        alerts=(alert,),
        alert_count=1,
        delivery_count=1,
        started_at=AT,
        opened_at=AT,
        updated_at=AT,
        placement=Placement(Place(Platform.CONSOLE, "eval")),
    )


def figures_of(outcomes: Sequence[TicketOutcome]) -> dict[str, Any]:
    """Return every figure with its 95 % bootstrap interval over tickets."""
    hops = {
        f"hop@{hop}": [float(outcome.owner in outcome.ranked[:hop]) for outcome in outcomes]
        for hop in range(1, HOPS + 1)
    }
    teams = sorted({name for outcome in outcomes for name in (outcome.owner, *outcome.ranked[:1])})
    place = {team: number for number, team in enumerate(teams)}
    owners = np.array([place[outcome.owner] for outcome in outcomes])
    first = np.array([place[outcome.ranked[0]] if outcome.ranked else -1 for outcome in outcomes])
    confidence = np.array([outcome.confidence for outcome in outcomes])
    probability = np.array([outcome.probability for outcome in outcomes])
    correct = (owners == first).astype(np.float64)
    figures: dict[str, Any] = {}
    for name, values in hops.items():
        figures |= {name: round(float(np.mean(values)), 4), f"{name}_ci": bootstrap_interval(values)}
    return figures | {
        "macro_f1": round(_macro_f1(owners, first), 4),
        "macro_f1_ci": rounded(bootstrap(_macro_f1, owners, first)),
        "ece": round(ece(probability, correct), 4),
        "ece_ci": rounded(ece_interval(probability, correct)),
        "coverage@precision90": round(_coverage(confidence, correct), 4),
        "coverage@precision90_ci": rounded(bootstrap(_coverage, confidence, correct)),
    }


def _macro_f1(owners: NDArray[np.int64], first: NDArray[np.int64]) -> float:
    """Return the mean F1 over the teams that own a ticket or were named for one."""
    teams = max(owners.max(), first.max()) + 1
    right = np.bincount(owners[owners == first], minlength=teams)
    both = np.bincount(owners, minlength=teams) + np.bincount(first[first >= 0], minlength=teams)
    return float((2 * right[both > 0] / both[both > 0]).mean())


def _coverage(confidence: FloatArray, correct: FloatArray) -> float:
    """Return the largest share of tickets, most confident first, of which PRECISION are right."""
    curve = risk_coverage(confidence, correct)
    return float(curve.coverage[curve.risk <= 1 - PRECISION].max(initial=0.0))


def splits_of(train: Path, test: Path | None = None, folds: int = 5, sample: int = 0) -> list[Split]:
    """Return one split with a test file, otherwise `folds` of the training file. Raises MalformedInput.

    With a `sample`, that many tickets are drawn by SEED, in equal shares of the splits.
    """
    tickets = tickets_of(train)
    splits = [(tickets, tickets_of(test))] if test else _folds(tickets, folds)
    shares = [sample // len(splits) + (number < sample % len(splits)) for number in range(len(splits))]
    return [
        (training, random.Random(SEED).sample(tested, min(share, len(tested))) if sample else tested)
        for (training, tested), share in zip(splits, shares, strict=True)
    ]


def _folds(tickets: Sequence[Ticket], folds: int) -> list[Split]:
    """Return training and test tickets of each fold, deterministically."""
    keys = sorted({ticket.key for ticket in tickets})
    order = np.random.default_rng(SEED).permutation(len(keys))
    part = {key: int(place) % folds for key, place in zip(keys, order, strict=True)}
    return [
        (
            [ticket for ticket in tickets if part[ticket.key] != fold],
            [ticket for ticket in tickets if part[ticket.key] == fold],
        )
        for fold in range(folds)
    ]


def tickets_of(path: Path) -> list[Ticket]:
    """Return the tickets of a file. Raises MalformedInput."""
    rows = json_lines(path, "title", "body", "owner")
    return [Ticket(str(row["title"]), str(row["body"]), str(row["owner"])) for row in rows]


@dataclass(slots=True)
class TicketEmbedder:
    """Embeds tickets, and caches embeddings between folds."""

    embedder: Embedder
    known: Embeddings | None = None

    async def past(self, incidents: Sequence[PastIncident]) -> Embeddings:
        embeddings = await embed_past_incidents(incidents, self.embedder, self.known)
        self.known = (
            Embeddings(embeddings.embedder, {**self.known.vectors, **embeddings.vectors}) if self.known else embeddings
        )
        return embeddings

    async def vectors(self, incidents: Sequence[Incident]) -> list[Vector]:
        return [await self.embedder.embed_query(embedded_text(incident)) for incident in incidents]
