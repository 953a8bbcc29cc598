"""Which team owns such incidents, learned from the past ones and checked on those that were left out.

Regressions and a discriminant analysis on the likeness of incidents, the words of the teams and the nearest neighbours
speak for each team; how much each of them, the team's document and its number of incidents count is learned from
predictions for incidents that were left out.
Where an embedding model gave vectors, regressions, a discriminant analysis and neighbours speak of them too; without the
vector of an incident, the rest does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.model.incident import PastIncident
from core.model.team import Team
from core.triage.complement_bayes import ComplementBayes
from core.triage.discriminant import Discriminant, discriminant
from core.triage.distil import Alignment
from core.triage.documents import matches
from core.triage.embeddings import Embeddings, Vector
from core.triage.kernel_ridge import kernel_ridge
from core.triage.likeness import IncidentText, Likeness
from core.triage.logistic_regression import LogisticRegression, MainAxes, logistic_regression
from core.triage.meaning import Meaning
from core.triage.neighbours import neighbour_signals
from core.triage.ranking import LeftOut, Ranking, fit_ranking

FORMAT = 6  # of what is kept: a model of another one is learned anew
MAX_INCIDENTS = 8_000  # that are learned from: a fit takes 12 bytes for each pair of them, 16 with vectors
QUOTA = 50  # newest incidents of each team that are learned from before the newest of all
MIN_INCIDENTS = 300  # below which too little is left out to learn from

FloatArray = NDArray[np.float64]

Kernel = Callable[[NDArray[np.floating]], NDArray[np.floating]]


def _plain(likeness: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sees words and letters, each on its own."""
    return likeness.copy()


def _curved(likeness: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sees words, and pairs of words that stand together."""
    return (likeness + likeness**2) / 2


def _local(likeness: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sees mainly incidents that are much alike."""
    return np.exp((likeness - 1) / 0.5)


KERNELS: tuple[tuple[Kernel, float], ...] = ((_plain, 0.1), (_curved, 0.05), (_local, 0.03))  # with their ridge
NEIGHBOURHOODS = (3, 8)  # powers of the likeness with which past incidents vote: a wide circle and a narrow one
SIGNALS = len(KERNELS) + 1 + len(NEIGHBOURHOODS) + 3  # those of an incident without a vector


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the model said of a past incident that it had not seen: the first team's probability, and if it was right."""

    owner: str
    probability: float
    correct: bool


@dataclass(frozen=True, slots=True)
class OwnerModel:
    """`owners[i]` is the place in `teams` of the owner of incident `i`; `duals[k]` has shape (incidents, teams).

    `meaning` is what an embedding model adds where an incident has a vector, and `meaning_ranking` was fitted to the
    signals of the words followed by those of the meaning; the rest stands without them.
    """

    teams: tuple[str, ...]
    owners: NDArray[np.int32]
    likeness: Likeness
    alignment: Alignment
    duals: tuple[NDArray[np.float32], ...]
    bayes: ComplementBayes
    logistic: LogisticRegression
    discriminant: Discriminant
    ranking: Ranking
    held_out: tuple[HeldOut, ...]
    meaning: Meaning | None = None
    meaning_ranking: Ranking | None = None

    @classmethod
    def fitted(
        cls,
        incidents: Sequence[PastIncident],
        documented: Sequence[Team],
        unseen: Callable[[PastIncident], Sequence[Team]] | None = None,
        embeddings: Embeddings | None = None,
    ) -> Self | None:
        """The model of a history; None if there are fewer than MIN_INCIDENTS. Takes some minutes for MAX_INCIDENTS.

        `documented` are the teams with their documents. If these were written from the incidents, `unseen` gives each
        incident teams whose documents were not written from it: what they are worth is learned from those.
        `embeddings` hold all that `learned_from` chooses of the incidents, else it raises KeyError.
        """
        learned = learned_from(incidents)
        if not learned:
            return None
        texts = [text_of(incident) for incident in learned]
        teams = tuple(sorted({incident.owner for incident in learned}))
        place = {team: number for number, team in enumerate(teams)}
        owners = np.array([place[incident.owner] for incident in learned], np.int32)
        likeness = Likeness.of(texts)
        among = likeness.among()
        same = _same([text.key for text in texts])
        targets = np.eye(len(teams), dtype=np.float32)[owners]
        fits = [kernel_ridge(kernel(among), ridge, targets, same) for kernel, ridge in KERNELS]
        axes = MainAxes.of(among)
        logistic, regressed = logistic_regression(axes, owners, len(teams), same)
        meant = Meaning.fitted(learned, embeddings, among, axes, targets, same) if embeddings else None
        bayes = ComplementBayes.of(likeness.words, owners, len(teams))
        worded = bayes.left_out(likeness.words, owners, [text.words for text in texts], same)
        for block in same:
            among[np.ix_(block, block)] = 0
        shared = axes.shared
        # Each about where it would stand if it were new: a past one is drawn aside by its likeness to itself.
        analysis, likely = discriminant(among @ shared, owners, len(teams), same)
        voted = neighbour_signals(among, owners, len(teams), NEIGHBOURHOODS)
        signals = np.stack([*(held for _, held in fits), worded, *voted, regressed, likely], axis=2)
        alignment = Alignment.fitted([text.text for text in texts], documented)
        matched = np.stack(
            [
                _document_shares(alignment.aligned(text.text), unseen(incident) if unseen else documented, teams)
                for incident, text in zip(learned, texts, strict=True)
            ]
        )
        left_out = LeftOut(_other_counts(owners, len(teams), same), matched, owners, same)
        ranking, probabilities = fit_ranking(signals, left_out)
        meaning = meaning_ranking = None
        if meant is not None:
            meaning, added = meant
            meaning_ranking, probabilities = fit_ranking(np.concatenate([signals, added], axis=2), left_out)
        held_out = _held_out(probabilities, owners, teams)
        duals = tuple(dual for dual, _ in fits)
        learners = (duals, bayes, logistic, analysis.after(shared))
        return cls(teams, owners, likeness, alignment, *learners, ranking, held_out, meaning, meaning_ranking)

    def probabilities(
        self, text: IncidentText, teams: Sequence[Team], vector: Vector | None = None
    ) -> dict[str, float]:
        """Team id → probability to own the incident, for all of `teams`, also those without any past incident.

        `vector` is by the embedding model of the `meaning`.
        """
        return self.weighed(self.signals(text, teams, vector), text, teams)

    def signals(self, text: IncidentText, teams: Sequence[Team], vector: Vector | None = None) -> FloatArray:
        """What the history says for each of `teams`, shape (teams, signals): more of them with a vector."""
        likeness = self.likeness.to(text)
        narrow = likeness.astype(np.float32)  # as the weights are: otherwise each product would copy them first
        scores = [kernel(narrow) @ dual for (kernel, _), dual in zip(KERNELS, self.duals, strict=True)]
        worded = self.bayes.scores(self.likeness.words, self.owners, text.words)
        voted = neighbour_signals(likeness[np.newaxis], self.owners, len(self.teams), NEIGHBOURHOODS)
        regressed, likely = self.logistic.probabilities(narrow), self.discriminant.probabilities(narrow)
        found = np.stack([*scores, worded, *(votes[0] for votes in voted), regressed, likely], axis=1, dtype=np.float64)
        if self.meaning is not None and vector is not None:
            found = np.concatenate([found, self.meaning.signals(vector, narrow, self.owners)], axis=1)
        unknown = np.zeros((1, found.shape[1]))
        return np.concatenate([found, unknown])[self._places(teams)]

    def weighed(self, signals: FloatArray, text: IncidentText, teams: Sequence[Team]) -> dict[str, float]:
        """The probabilities that follow from the signals and from what the documents of the teams say now."""
        names = [team.id for team in teams]
        counts = np.append(np.bincount(self.owners, minlength=len(self.teams)), 0)[self._places(teams)]
        documented = _document_shares(self.alignment.aligned(text.text), teams, names)
        probabilities = self._ranking_of(signals).probabilities(signals, counts, documented)
        return dict(zip(names, probabilities.tolist(), strict=True))

    def _ranking_of(self, signals: FloatArray) -> Ranking:
        return self.meaning_ranking if self.meaning_ranking and signals.shape[1] > SIGNALS else self.ranking

    def _places(self, teams: Sequence[Team]) -> list[int]:
        place = {team: number for number, team in enumerate(self.teams)}
        return [place.get(team.id, -1) for team in teams]


def text_of(incident: PastIncident) -> IncidentText:
    """What was known when it was opened; cause and fix came later and would blur the likeness."""
    parts = (incident.title, incident.description, incident.service)
    return IncidentText(incident.title, "\n".join(dict.fromkeys(part for part in parts if part)))


def _document_shares(text: str, documented: Sequence[Team], teams: Sequence[str]) -> FloatArray:
    """Of each of `teams`, in what all documents say of the text; they sum to at most 1."""
    found = matches(text, documented)
    total = sum(match.score for match in found.values())
    return np.array([found[team].score / total if team in found else 0.0 for team in teams])


def learned_from(incidents: Sequence[PastIncident]) -> list[PastIncident]:
    """The newest QUOTA of each team, then the newest of all: what teams own changes. Empty if too few."""
    newest = sorted(incidents, key=lambda incident: (incident.started_at, incident.id), reverse=True)
    seen: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[bool, int]] = []
    for order, incident in enumerate(newest):
        seen[incident.owner] += 1
        ranked.append((seen[incident.owner] > QUOTA, order))
    chosen = [newest[order] for _, order in sorted(ranked)[:MAX_INCIDENTS]]
    return chosen if len(chosen) >= MIN_INCIDENTS else []


def _same(keys: Sequence[str]) -> list[NDArray[np.int64]]:
    """The incidents that say the same, together: they are left out together."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    return [np.array(block) for block in rows.values()]


def _other_counts(owners: NDArray[np.int32], teams: int, same: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Each team's incidents without those that say the same as the incident, shape (incidents, teams)."""
    counts = np.tile(np.bincount(owners, minlength=teams), (len(owners), 1))
    for block in same:
        counts[block] -= np.bincount(owners[block], minlength=teams)
    return counts


def _held_out(probabilities: FloatArray, owners: NDArray[np.int32], teams: Sequence[str]) -> tuple[HeldOut, ...]:
    first: list[int] = probabilities.argmax(axis=1).tolist()
    return tuple(
        HeldOut(teams[team], float(probabilities[row, team]), bool(team == owners[row]))
        for row, team in enumerate(first)
    )
