"""How long a triage takes on a long history, and what the history costs in time and memory.

`python -m tests.benchmarks triage --incidents 100000` writes made-up incidents: words by Zipf's law, a quarter of them the
owner's own, host and job names, a title of eight words and a description of forty. `--dimensions 384` adds made-up vectors of
that length, as an embedding model gives them; the time that the model takes is not in the figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
from threadpoolctl import threadpool_limits

from bot.evaluation.triage import as_incident
from core.model.alert import Severity
from core.model.findings import PastIncident
from core.model.team import Team
from core.triage.managers import Enrichment
from core.triage.owner_model import (
    Embeddings,
    IncidentHistory,
    OwnerModel,
    Vector,
    digest_of,
    embedded_text,
    learned_from,
)
from tests.fakes.triage import propose_owner

AT = datetime(2026, 1, 1, tzinfo=UTC)
VOCABULARY = 30_000  # words
OWN_WORDS = 60  # of a team
QUERIES = 200
SEED = 7


def main() -> None:
    arguments = _arguments()
    generator = np.random.default_rng(SEED)
    words = np.array(["".join(generator.choice(list("abcdefghijklmnoprstuvw"), length)) for length in generator.integers(4, 11, VOCABULARY)])  # fmt: skip
    own = [generator.choice(words, OWN_WORDS) for _ in range(arguments.teams)]
    teams = [Team(f"team-{number}", f"Team {number}", f"## We own\n\n{' '.join(own[number][:20])}\n") for number in range(arguments.teams)]  # fmt: skip
    owners = np.minimum(generator.zipf(1.3, arguments.incidents + QUERIES) - 1, arguments.teams - 1)
    texts = [_text(words, own[owner], generator) for owner in owners]
    incidents = [
        PastIncident(f"I-{number}", title, body, "", Severity.WARNING, AT + timedelta(minutes=number), teams[owner].id)
        for number, ((title, body), owner) in enumerate(zip(texts, owners, strict=True))
    ]
    figures = measured(incidents[: arguments.incidents], incidents[arguments.incidents :], teams, arguments.dimensions)
    print(json.dumps(figures, indent=2))


def measured(
    history: Sequence[PastIncident], incidents: Sequence[PastIncident], teams: Sequence[Team], dimensions: int
) -> dict[str, float]:
    before = _megabytes()
    began = time.perf_counter()
    index = IncidentHistory(history)
    indexed, index_memory = time.perf_counter() - began, _megabytes() - before
    embeddings = _embeddings([*learned_from(history), *incidents], dimensions) if dimensions else None
    began = time.perf_counter()
    model = OwnerModel.fitted(history, embeddings)
    fitted = time.perf_counter() - began
    spent: list[tuple[float, float]] = []  # milliseconds by the clock, and of the processor
    right = 0
    with threadpool_limits(1, user_api="blas"):  # as in the bot's process
        for past in incidents:
            incident = as_incident(past.title, past.description, past.id)
            vector = embeddings.vectors[digest_of(embedded_text(past))] if embeddings else None
            began, computed = time.perf_counter(), time.process_time()
            verdict = propose_owner(incident, teams, index, Enrichment(), model, vector=vector)
            spent.append(((time.perf_counter() - began) * 1_000, (time.process_time() - computed) * 1_000))
            right += verdict.candidates[0].team_id == past.owner
    elapsed, processor = zip(*spent, strict=True)
    return {
        "incidents": len(history),
        "teams": len(teams),
        "dimensions": dimensions,
        "index_s": round(indexed, 1),
        "index_mb": round(index_memory),
        "fit_s": round(fitted, 1),
        "peak_with_fit_mb": round(_megabytes()),
        "triage_p50_ms": round(float(np.percentile(elapsed, 50)), 1),
        "triage_p95_ms": round(float(np.percentile(elapsed, 95)), 1),
        "triage_cpu_p95_ms": round(float(np.percentile(processor, 95)), 1),
        "hop@1": right / len(incidents),
    }


def _embeddings(incidents: Sequence[PastIncident], dimensions: int) -> Embeddings:
    """Each near the direction of its owner."""
    generator = np.random.default_rng(SEED)
    owners = {incident.owner: generator.normal(size=dimensions) for incident in incidents}
    vectors: dict[bytes, Vector] = {}
    for incident in incidents:
        vector = owners[incident.owner] + generator.normal(0, 2, dimensions)
        vectors[digest_of(embedded_text(incident))] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return Embeddings("made up", vectors)


def _text(words: np.ndarray, own: np.ndarray, generator: np.random.Generator) -> tuple[str, str]:
    ranks = np.minimum(generator.zipf(1.2, 48), len(words)) - 1
    chosen = np.where(generator.random(48) < 0.25, generator.choice(own, 48), words[ranks])
    host = f"host-{generator.integers(2_000)}"
    return " ".join([host, *chosen[:8]]), " ".join([*chosen[8:], f"job_{generator.integers(5_000)}"])


def _megabytes() -> float:
    """The most memory that this process ever had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1_024**2 if sys.platform == "darwin" else 1_024)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--incidents", type=int, default=100_000)
    parser.add_argument("--teams", type=int, default=100)
    parser.add_argument("--dimensions", type=int, default=0)
    return parser.parse_args()
