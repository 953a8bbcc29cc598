"""The owner model: one linear support vector machine per team, with calibrated scores.

The machines are stored as weights of past incidents instead of terms, so that a score is a sum of similarities. That
takes three bytes for each term of an incident, instead of four bytes per team for each of 400,000 terms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from core.confidence.ensemble import softmax
from core.model.past_incident import PastIncident
from core.model.team import Team, current_ids
from core.triage.text_similarity import Embeddings, IncidentText, TextSimilarity, Vector, digest_of, embedded_text

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FORMAT = 7  # of a stored model; one of another format is fitted again
MAX_INCIDENTS = 8_000  # used for training; a fit takes 16 bytes for each pair
QUOTA = 50  # newest incidents of each team that are used before the newest of all
MIN_INCIDENTS = 300  # below this, too few are held out to validate on
FOLDS = 5  # of the incidents, each scored by a model fitted to the others
ABSENT = -1.0  # score of a team without an incident, like that of an incident that is clearly another team's
JITTER = 0.01  # on the diagonal of the similarities, which equal incidents would make singular
VECTOR_WEIGHT = 0.5  # of the cosine of two vectors, added to the text similarity, which is a sum of three cosines
SCALES = (0.5, 30.0)  # bounds of the factor that turns distances into logits
VOTES = 0.05  # share of the probability from the votes of similar incidents, which rank the third to fifth team better
VOTE_POWER = 5  # exponent of a voting similarity, so that only nearly equal incidents count
SEED = 7

FloatArray = NDArray[np.float64]
NarrowArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A prediction for a held-out incident: the first team, its probability, and whether it was correct."""

    owner: str
    probability: float
    correct: bool


@dataclass(frozen=True, slots=True)
class TeamScores:
    """Logits of the teams: `intercepts`, shape (teams,), plus similarities times `duals`, (past incidents, teams)."""

    duals: NarrowArray
    intercepts: NarrowArray

    def probabilities(self, similarity: NarrowArray, owners: NDArray[np.int32]) -> FloatArray:
        """Return the probability of each team, given the incident's similarity to each past incident."""
        logits = (self.intercepts + similarity @ self.duals).astype(np.float64)
        votes = _vote_shares(similarity, np.eye(len(logits), dtype=np.float32)[owners])
        return _blended(softmax(logits), votes)


@dataclass(frozen=True, slots=True)
class EmbeddingSignals:
    """The scores with an embedding model. `digests[i]` and row `i` of `vectors` belong to incident `i`."""

    embedder: str
    digests: tuple[bytes, ...]
    vectors: NarrowArray
    scores: TeamScores

    @property
    def embeddings(self) -> Embeddings:
        """Return the vectors that the scores were fitted to."""
        return Embeddings(self.embedder, dict(zip(self.digests, self.vectors, strict=True)))


@dataclass(frozen=True, slots=True)
class OwnerModel:
    """A fitted model. `owners[i]` is the index in `teams` of the owner of past incident `i`."""

    teams: tuple[str, ...]
    owners: NDArray[np.int32]
    similarity: TextSimilarity
    scores: TeamScores
    held_out: tuple[HeldOut, ...]
    embedding: EmbeddingSignals | None = None

    @classmethod
    def fitted(cls, incidents: Sequence[PastIncident], embeddings: Embeddings | None = None) -> Self | None:
        """Return the model of a history; None for fewer than MIN_INCIDENTS, or if all belong to one team.

        Takes about a minute on one core for 5,000 incidents of 70 teams. Raises KeyError if `embeddings` lack an
        incident that `learned_from` chooses.
        """
        learned = learned_from(incidents)
        teams = tuple(sorted({incident.owner for incident in learned}))
        texts = [text_of(incident) for incident in learned]
        _, groups = np.unique([text.key for text in texts], return_inverse=True)
        if len(teams) < 2 or groups.max() + 1 < FOLDS:
            return None
        owners = np.array([teams.index(incident.owner) for incident in learned], np.int32)
        similarity = TextSimilarity.of(texts)
        rows = similarity.matrix()
        scores, probabilities = _fit_scores(rows, owners, groups)
        embedding = None
        if embeddings is not None:
            from scipy.sparse import csr_array, hstack

            digests = tuple(digest_of(embedded_text(incident)) for incident in learned)
            vectors = embeddings.rows(digests)
            columns = csr_array(np.float32(VECTOR_WEIGHT**0.5) * vectors)
            meant, probabilities = _fit_scores(hstack([rows, columns], format="csr"), owners, groups)
            embedding = EmbeddingSignals(embeddings.embedder, digests, vectors, meant)
        first: list[int] = probabilities.argmax(axis=1).tolist()
        held_out = tuple(
            HeldOut(teams[team], float(row[team]), bool(team == owner))
            for team, row, owner in zip(first, probabilities, owners.tolist(), strict=True)
        )
        return cls(teams, owners, similarity, scores, held_out, embedding)

    def probabilities(self, text: IncidentText, vector: Vector | None = None) -> dict[str, float]:
        """Return the probability of each team with past incidents to own this one; `vector` is its embedding."""
        similarity = self.similarity.to(text).astype(np.float32)
        scores = self.scores
        if self.embedding is not None and vector is not None:
            similarity += np.float32(VECTOR_WEIGHT) * (self.embedding.vectors @ vector)
            scores = self.embedding.scores
        return dict(zip(self.teams, scores.probabilities(similarity, self.owners).tolist(), strict=True))


def text_of(incident: PastIncident) -> IncidentText:
    """Return the text known at its opening, because the later cause and fix would blur the similarity."""
    parts = (incident.title, incident.description, incident.service)
    return IncidentText(incident.title, "\n".join(dict.fromkeys(part for part in parts if part)))


def training_incidents(past: Iterable[PastIncident], teams: Sequence[Team]) -> list[PastIncident]:
    """Return the incidents whose owner is a current team, with its current id."""
    current = current_ids(teams)
    return [replace(incident, owner=current[incident.owner]) for incident in past if incident.owner in current]


def learned_from(incidents: Sequence[PastIncident]) -> list[PastIncident]:
    """Return the newest QUOTA of each team, then the newest of all, because ownership changes. Empty if too few."""
    newest = sorted(incidents, key=lambda incident: (incident.started_at, incident.id), reverse=True)
    seen: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[bool, int]] = []
    for order, incident in enumerate(newest):
        seen[incident.owner] += 1
        ranked.append((seen[incident.owner] > QUOTA, order))
    chosen = [newest[order] for _, order in sorted(ranked)[:MAX_INCIDENTS]]
    return chosen if len(chosen) >= MIN_INCIDENTS else []


def _fit_scores(rows: csr_array, owners: NDArray[np.int32], groups: NDArray[np.int64]) -> tuple[TeamScores, FloatArray]:
    """Return the scores, and the out-of-fold probabilities of the incidents, shape (incidents, teams).

    Incidents of the same group, which have the same text, are held out together.
    """
    from scipy.linalg import solve
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    owned = np.eye(int(owners.max()) + 1, dtype=np.float32)[owners]
    gram = (rows @ rows.T).toarray()
    votes = _vote_shares(np.where(groups[:, np.newaxis] == groups, 0, gram), owned)
    held_out = np.empty(owned.shape)
    folds: Any = import_module("sklearn.model_selection").GroupKFold(FOLDS)
    for seen, unseen in folds.split(owners, groups=groups):
        held_out[unseen] = _distances(rows[seen], owned[seen], rows[unseen])[0]

    def loss(scale: float) -> float:
        return -float(log_softmax(scale * held_out, axis=1)[owned > 0].mean())

    scale = float(minimize_scalar(loss, bounds=SCALES, method="bounded").x)
    distances, intercepts = _distances(rows, owned, rows)
    gram[np.diag_indices(len(gram))] += JITTER
    duals = solve(gram, (distances - intercepts).astype(np.float32), assume_a="pos", overwrite_a=True)
    scores = TeamScores((scale * duals).astype(np.float32), (scale * intercepts).astype(np.float32))
    return scores, _blended(softmax(scale * held_out), votes)


def _vote_shares(similarity: NarrowArray, owned: NarrowArray) -> NarrowArray:
    """Return each team's share of the votes of similar incidents; `owned[i]` is 1 for the team of past incident `i`."""
    votes = np.maximum(similarity, 0) ** VOTE_POWER @ owned
    return votes / np.maximum(votes.sum(axis=-1, keepdims=True), 1e-9)


def _blended(probabilities: FloatArray, votes: NarrowArray) -> FloatArray:
    return (1 - VOTES) * probabilities + VOTES * votes


def _distances(rows: csr_array, owned: NarrowArray, queries: csr_array) -> tuple[FloatArray, FloatArray]:
    """Return the signed distance of each row of `queries` from each team's boundary, and the teams' intercepts."""
    support_vectors: Any = import_module("sklearn.svm").LinearSVC  # untyped
    intercepts = np.where(owned.any(axis=0), -ABSENT, ABSENT)
    distances = np.tile(intercepts, (queries.shape[0], 1))
    for team, own in enumerate(owned.T):
        if own.any() and not own.all():
            machine: Any = support_vectors(random_state=SEED).fit(rows, own > 0)
            distances[:, team], intercepts[team] = machine.decision_function(queries), machine.intercept_[0]
    return distances, intercepts
