"""Which team owns such incidents, learned from the past ones and checked on those that were left out.

Regressions on the likeness of incidents and their nearest neighbours speak for each team; how much each of them,
the team's document and its number of incidents count is learned from predictions for incidents that were left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.incident import PastIncident
from core.team import Team
from core.triage.distil import Alignment
from core.triage.documents import matches
from core.triage.likeness import IncidentText, Likeness
from core.triage.stacking import Stack, fit_stack

FORMAT = 1  # of what is kept: a model of another one is learned anew
MAX_INCIDENTS = 8_000  # that are learned from: a fit takes 12 bytes for each pair of them
QUOTA = 50  # newest incidents of each team that are learned from before the newest of all
MAX_PAIRS = 600_000  # of an incident and a team, that the weights of the signals are learned from
PAIRS_AT_ONCE = 100_000  # each takes half a kilobyte
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


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What the model said of a past incident that it had not seen: the first team's probability, and if it was right."""

    owner: str
    probability: float
    correct: bool


@dataclass(frozen=True, slots=True)
class OwnerModel:
    """`owners[i]` is the place in `teams` of the owner of incident `i`; `duals[k]` has shape (incidents, teams)."""

    teams: tuple[str, ...]
    owners: NDArray[np.int32]
    likeness: Likeness
    alignment: Alignment
    duals: tuple[NDArray[np.float32], ...]
    stack: Stack
    held_out: tuple[HeldOut, ...]

    @classmethod
    def fitted(
        cls,
        incidents: Sequence[PastIncident],
        documented: Sequence[Team],
        unseen: Callable[[PastIncident], Sequence[Team]] | None = None,
    ) -> Self | None:
        """The model of a history; None if there are fewer than MIN_INCIDENTS. Takes a minute for MAX_INCIDENTS.

        `documented` are the teams with their documents. If these were written from the incidents, `unseen` gives each
        incident teams whose documents were not written from it: what they are worth is learned from those.
        """
        learned = _chosen(incidents)
        if len(learned) < MIN_INCIDENTS:
            return None
        texts = [text_of(incident) for incident in learned]
        teams = tuple(sorted({incident.owner for incident in learned}))
        place = {team: number for number, team in enumerate(teams)}
        owners = np.array([place[incident.owner] for incident in learned], np.int32)
        likeness = Likeness.of(texts)
        among = likeness.among()
        same = _same([text.key for text in texts])
        targets = np.eye(len(teams), dtype=np.float32)[owners]
        fits = [_ridge(kernel(among), ridge, targets, same) for kernel, ridge in KERNELS]
        for block in same:
            among[np.ix_(block, block)] = 0
        signals = _signals([held for _, held in fits], among.astype(np.float64), owners, len(teams))
        alignment = Alignment.fitted([text.text for text in texts], documented)
        matched = np.stack(
            [
                _document_shares(alignment.aligned(text.text), unseen(incident) if unseen else documented, teams)
                for incident, text in zip(learned, texts, strict=True)
            ]
        )
        counts = np.tile(np.bincount(owners, minlength=len(teams)), (len(owners), 1))
        for block in same:
            counts[block] -= np.bincount(owners[block], minlength=len(teams))
        guessable = counts[np.arange(len(owners)), owners] > 0  # the only team without incidents would give itself away
        rows = np.flatnonzero(guessable)[:: 1 + len(owners) * len(teams) // MAX_PAIRS]
        stack = fit_stack(signals[rows], np.log1p(counts)[rows], matched[rows], owners[rows])
        pieces = np.array_split(np.arange(len(owners)), 1 + len(owners) * len(teams) // PAIRS_AT_ONCE)
        probabilities = np.concatenate(
            [stack.probabilities(signals[piece], np.log1p(counts)[piece], matched[piece]) for piece in pieces]
        )
        first: list[int] = probabilities.argmax(axis=1).tolist()
        held_out = tuple(
            HeldOut(teams[team], float(probabilities[row, team]), bool(team == owners[row]))
            for row, team in enumerate(first)
        )
        return cls(teams, owners, likeness, alignment, tuple(dual for dual, _ in fits), stack, held_out)

    def probabilities(self, text: IncidentText, teams: Sequence[Team]) -> dict[str, float]:
        """Team id → probability to own the incident, for all of `teams`, also those without any past incident."""
        return self.weighed(self.signals(text, teams), text, teams)

    def signals(self, text: IncidentText, teams: Sequence[Team]) -> FloatArray:
        """What the history says for each of `teams`, shape (teams, signals)."""
        likeness = self.likeness.to(text)
        narrow = likeness.astype(np.float32)  # as the weights are: otherwise each product would copy them first
        scores = [(kernel(narrow) @ dual)[np.newaxis] for (kernel, _), dual in zip(KERNELS, self.duals, strict=True)]
        found = _signals(scores, likeness[np.newaxis], self.owners, len(self.teams))[0]
        unknown = np.zeros((1, found.shape[1]))
        return np.concatenate([found, unknown])[self._places(teams)]

    def weighed(self, signals: FloatArray, text: IncidentText, teams: Sequence[Team]) -> dict[str, float]:
        """The probabilities that follow from the signals and from what the documents of the teams say now."""
        names = [team.id for team in teams]
        counts = np.append(np.log1p(np.bincount(self.owners, minlength=len(self.teams))), 0.0)[self._places(teams)]
        documented = _document_shares(self.alignment.aligned(text.text), teams, names)
        return dict(zip(names, self.stack.probabilities(signals, counts, documented).tolist(), strict=True))

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


def _chosen(incidents: Sequence[PastIncident]) -> list[PastIncident]:
    """The newest QUOTA of each team, then the newest of all: what teams own changes."""
    newest = sorted(incidents, key=lambda incident: (incident.started_at, incident.id), reverse=True)
    seen: defaultdict[str, int] = defaultdict(int)
    ranked: list[tuple[bool, int]] = []
    for order, incident in enumerate(newest):
        seen[incident.owner] += 1
        ranked.append((seen[incident.owner] > QUOTA, order))
    return [newest[order] for _, order in sorted(ranked)[:MAX_INCIDENTS]]


def _same(keys: Sequence[str]) -> list[NDArray[np.int64]]:
    """The incidents that say the same, together: they are left out together."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    return [np.array(block) for block in rows.values()]


def _ridge(
    kernel: NDArray[np.floating], ridge: float, targets: NDArray[np.float32], same: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.float32], FloatArray]:
    """Kernel ridge regression: its dual weights, and its score for each incident as if its block had been left out.

    With G the inverse of the regularised kernel and a = G·targets, a block that is left out has residuals
    inv(G[block, block])·a[block] (Pahikkala et al. 2006), so that nothing is fitted twice.
    """
    from scipy.linalg import inv

    inverse = inv(kernel + ridge * np.eye(len(kernel), dtype=np.float32), overwrite_a=True, assume_a="pos")
    dual = inverse @ targets
    residuals = dual / np.diag(inverse)[:, np.newaxis]
    for block in same:
        if len(block) > 1:
            residuals[block] = np.linalg.solve(inverse[np.ix_(block, block)], dual[block])
    return dual.astype(np.float32), (targets - residuals).astype(np.float64)


def _signals(
    scores: Sequence[NDArray[np.floating]], likeness: FloatArray, owners: NDArray[np.int32], teams: int
) -> FloatArray:
    """What speaks for each team, shape (incidents, teams, signals): the regressions, the neighbours' votes, the nearest."""
    by_owner = np.argsort(owners, kind="stable")
    owning, first = np.unique(owners[by_owner], return_index=True)
    nearest = np.zeros((len(likeness), teams))
    nearest[:, owning] = np.maximum.reduceat(likeness[:, by_owner], first, axis=1)
    found = [np.asarray(score, np.float64) for score in scores]
    for power in NEIGHBOURHOODS:
        weights = likeness**power
        votes = np.stack([np.bincount(owners, row, teams) for row in weights])
        found.append(votes / (weights.sum(axis=1, keepdims=True) + 1e-9))
    return np.stack([*found, nearest], axis=2)
