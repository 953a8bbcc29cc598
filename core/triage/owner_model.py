"""The owner model: one linear support vector machine per team over the similarity of incidents, with calibrated scores.

Incidents are similar by words and word pairs, and by character sequences of the text and of the title; with an embedding
model, also by its vectors. Texts are TF-IDF vectors of unit length, kept as one posting list per term.

The machines are stored as weights of past incidents instead of terms, so that a score is a sum of similarities. That
takes three bytes for each term of an incident, instead of four bytes per team for each of 400,000 terms.

Past incidents are searched by the same posting lists (`IncidentHistory`).
"""

from __future__ import annotations

import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from core.confidence.ensemble import softmax
from core.knowledge.terms import terms
from core.model.conversation import Audience, Channel, current_readers
from core.model.findings import Neighbour, PastIncident
from core.model.incident import Incident
from core.model.team import Team, current_ids
from core.model.text import WORD

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MODEL_FORMAT = 7  # of a stored model; one of another format is fitted again
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


GRAMS = range(2, 6)  # lengths in characters; robust to inflection, spelling and broken encodings
MAX_CHARACTERS = 8_000  # read of a text
MAX_EMBEDDED = 2_000  # characters embedded of a text; such models read 128 to 512 tokens
MAX_WORD = 64  # characters; longer runs are encoded data
WORD_CACHE = 10_000  # distinct words whose character sequences are remembered: up to 2 KB each


Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class IncidentText:
    """The text known when an incident is opened. `text` includes the title."""

    title: str
    text: str

    @property
    def key(self) -> str:
        """Return a key that is equal for incidents with the same words."""
        return " ".join(_words(self.text))

    @property
    def words(self) -> Counter[str]:
        """Return the counts of its words and of its pairs of neighbouring words."""
        words = _words(self.text)
        return Counter([*words, *map(" ".join, pairwise(words))])


@dataclass(frozen=True, slots=True)
class TextSimilarity:
    """The texts of past incidents, to compare others with."""

    words: Postings
    characters: Postings
    titles: Postings

    @classmethod
    def of(cls, texts: Sequence[IncidentText]) -> Self:
        return cls(
            Postings.of(text.words for text in texts),
            Postings.of(_character_counts(text.text) for text in texts),
            Postings.of(_character_counts(text.title) for text in texts),
        )

    def to(self, text: IncidentText) -> NDArray[np.float64]:
        """Return the sum of three cosines with each of the texts, in [0, 3], shape (texts,).

        Unknown terms are mostly ignored, because a linear model would favour the largest team for them.
        """
        return (
            self.words.similarities(text.words, unknown=False)
            + self.characters.similarities(_character_counts(text.text), unknown=False)
            + self.titles.similarities(_character_counts(text.title), unknown=False)
        )

    def matrix(self) -> csr_array:
        """Return one row for each text; the product of two rows is their similarity."""
        from scipy.sparse import hstack

        return hstack([self.words.matrix(), self.characters.matrix(), self.titles.matrix()], format="csr")


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of unit length by the digest of their text, all from the embedding model with this name."""

    embedder: str
    vectors: Mapping[bytes, Vector]

    def rows(self, digests: Sequence[bytes]) -> NDArray[np.float32]:
        """Return one row for each digest. Raises KeyError for one that was not embedded."""
        return np.stack([self.vectors[digest] for digest in digests], dtype=np.float32)


def embedded_text(incident: Incident | PastIncident) -> str:
    """Return the text known at its opening, without repeated lines and white space, because alerts repeat their title."""
    lines = f"{incident.title}\n{incident.description}\n{incident.service}".splitlines()
    return "\n".join(dict.fromkeys(filter(None, (" ".join(line.split()) for line in lines))))[:MAX_EMBEDDED]


def digest_of(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _words(text: str) -> list[str]:
    return [word for word in WORD.findall(text[:MAX_CHARACTERS].casefold()) if len(word) <= MAX_WORD]


def _character_counts(text: str) -> Counter[str]:
    return Counter(gram for word in text[:MAX_CHARACTERS].casefold().split() for gram in _grams(word))


@lru_cache(maxsize=WORD_CACHE)
def _grams(word: str) -> tuple[str, ...]:
    """Return the character sequences of a word with its edges marked by blanks."""
    return tuple(_sequences(f" {word[:MAX_WORD]} "))


def _sequences(word: str) -> Iterator[str]:
    for length in GRAMS:
        if len(word) <= length:
            yield word
            return
        for start in range(len(word) - length + 1):
            yield word[start : start + length]


MIN_KNOWN = 0.6  # minimum known share of a length, so that a few known terms of a strange text do not match
MAX_COUNT = 255  # of one term in one text; more add nothing

_DAMPED = np.concatenate(([0.0], 1 + np.log(np.arange(1, MAX_COUNT + 1))))


@dataclass(frozen=True, slots=True)
class Postings:
    """The vectors of texts. A search reads only the posting lists of its own terms.

    `terms` are distinct ascending term numbers. Posting list `i` belongs to `terms[i]`: `rows[starts[i]:starts[i + 1]]`
    are the texts that contain it, ascending, and the same slice of `counts` is how often. `lengths[j]` is the length of
    vector `j` before normalisation. A posting takes three bytes for up to 65 536 texts.
    """

    terms: NDArray[np.uint32]
    starts: NDArray[np.int64]
    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.uint8]
    lengths: NDArray[np.float64]

    @classmethod
    def of(cls, texts: Iterable[Mapping[str, int]]) -> Self:
        """Return the postings of texts, given as term counts."""
        rows, numbers, counts = array("I"), array("I"), array("B")
        size = 0
        for row, text in enumerate(texts):
            size = row + 1
            for term, count in text.items():
                rows.append(row)
                numbers.append(_number(term))
                counts.append(min(count, MAX_COUNT))
        order = np.argsort(np.asarray(numbers, np.uint32), kind="stable")
        terms, frequencies = np.unique(np.asarray(numbers, np.uint32), return_counts=True)
        held = np.asarray(rows, np.uint32)[order].astype(np.min_scalar_type(max(size - 1, 0)))
        seen = np.asarray(counts, np.uint8)[order]
        weights = _DAMPED[seen] * np.repeat(_idf(frequencies, size), frequencies)
        lengths = np.sqrt(np.bincount(held, weights**2, minlength=size))
        return cls(terms, np.concatenate(([0], np.cumsum(frequencies))), held, seen, lengths)

    @property
    def size(self) -> int:
        """Return the number of texts."""
        return len(self.lengths)

    def similarities(self, text: Mapping[str, int], *, unknown: bool = True) -> NDArray[np.float64]:
        """Return the cosine of a text with each of the texts, in [0, 1], shape (size,).

        Terms that no text contains lower the similarity; without `unknown`, only if they are most of the text.
        """
        scores = np.zeros(self.size, np.float64)
        if not text or not self.terms.size:
            return scores
        numbers = np.array([_number(term) for term in text], np.uint32)
        places = np.minimum(np.searchsorted(self.terms, numbers), self.terms.size - 1)
        starts, ends = self.starts[places], self.starts[places + 1]
        frequencies = np.where(self.terms[places] == numbers, ends - starts, 0)
        idf = _idf(frequencies, self.size)
        weights = _DAMPED[np.minimum(list(text.values()), MAX_COUNT)] * idf
        for number in np.flatnonzero(frequencies):
            postings = slice(starts[number], ends[number])
            scores[self.rows[postings]] += weights[number] * idf[number] * _DAMPED[self.counts[postings]]
        whole, indexed = np.linalg.norm(weights), np.linalg.norm(weights[frequencies > 0])
        longest = self.lengths * (whole if unknown else max(indexed, MIN_KNOWN * whole))
        return np.minimum(np.divide(scores, longest, out=np.zeros_like(scores), where=longest > 0), 1.0)

    def matrix(self) -> csr_array:
        """Return the vectors, one row for each text and one column for each term."""
        from scipy.sparse import csc_array  # only a fit needs it

        frequencies = np.diff(self.starts)
        weights = _DAMPED[self.counts] * np.repeat(_idf(frequencies, self.size), frequencies) / self.lengths[self.rows]
        shape = (self.size, len(self.terms))
        indices = self.rows.astype(np.int32), self.starts.astype(np.int32)
        return csc_array((weights.astype(np.float32), *indices), shape=shape).tocsr()


def _number(term: str) -> int:
    """Return the number of a term; not cached like `term_number`, because there are far more sequences than words."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass"))


def _idf(frequencies: NDArray[np.integer], size: int) -> NDArray[np.float64]:
    return np.log((1 + size) / (1 + frequencies)) + 1


KEPT_VIEWS = 8  # histories kept for audiences that may not read everything; each takes as much memory as the whole


class IncidentHistory:
    """Past incidents as TF-IDF vectors (Triangle, Algorithm 1, step 1), kept as one posting list per term.

    Built once: about 1 ms per 10 incidents. A search reads only the posting lists of its own terms.
    """

    def __init__(self, incidents: Sequence[PastIncident]) -> None:
        self.incidents = tuple(incidents)
        self._readers = frozenset(r for each in self.incidents for r in (each.readers, *sum(each.veiled.values(), ())))
        self.reader_names = frozenset(reader for readers in self._readers for reader in readers)
        self._readable: dict[frozenset[frozenset[str]], IncidentHistory] = {}
        self.owners = frozenset(incident.owner for incident in self.incidents)
        # By the text known at its opening, because the later cause and fix would blur the similarity.
        texts = (f"{each.title}\n{each.description}\n{each.service}" for each in self.incidents)
        self._postings = Postings.of(Counter(terms(text)) for text in texts)

    def readable_by(self, audience: Audience, channels: Sequence[Channel] = ()) -> IncidentHistory:
        """Return the history without the incidents and fields that this audience may not read; cached by access.

        `channels` are the channels as they are now.
        """
        hidden = frozenset(each for each in self._readers if not audience.may_read(current_readers(each, channels)))
        if not hidden:
            return self
        if hidden not in self._readable:
            kept = [incident.without(hidden) for incident in self.incidents if incident.readers not in hidden]
            self._readable = {hidden: IncidentHistory(kept), **dict(list(self._readable.items())[: KEPT_VIEWS - 1])}
        return self._readable[hidden]

    def similar(self, text: str, limit: int, without: frozenset[str] = frozenset()) -> list[Neighbour]:
        """Return the `limit` incidents most similar to `text`, best first, except those with an id in `without`."""
        scores = self._postings.similarities(Counter(terms(text)))
        wanted = min(limit + len(without), len(scores))
        if not wanted:
            return []
        best = np.argpartition(-scores, wanted - 1)[:wanted]
        ranked: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
        return [
            Neighbour(self.incidents[row], float(scores[row]))
            for row in ranked
            if scores[row] > 0 and self.incidents[row].id not in without
        ][:limit]
