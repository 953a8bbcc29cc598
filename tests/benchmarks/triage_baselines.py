"""The baselines of Triangle's table 1 (without DeepCT), and a linear SVM. Each scores every team.

`lgbm` needs LightGBM, a development dependency. `mart` uses scikit-learn's
histogram gradient boosting with FastTree's defaults and fewer trees, on latent features because it accepts no sparse
ones. Both are one-vs-all.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from bot.evaluation.triage import HOPS, Split, TicketOutcome, figures_of
from core.confidence.ensemble import FloatArray

HASHES = 64  # of a MinHash signature
BAND = 2  # hashes that must agree before two texts are compared
MIN_OWN = 5  # minimum incidents of a team with its own trees
LGBM_TREES = 100
MART_TREES = 30
LATENT = 50  # dimensions
SEED = 7

Scorer = Callable[[Sequence[str], NDArray[np.int64], int, Sequence[str]], FloatArray]
"""Training texts, their teams (0 to teams - 1), number of teams, test texts → scores, shape (test texts, teams)."""

_PRIME = (1 << 31) - 1
_WORD = re.compile(r"\w+")


def content_based(texts: Sequence[str], owners: NDArray[np.int64], teams: int, tested: Sequence[str]) -> FloatArray:
    """Score teams by the estimated Jaccard similarity of incidents in the same locality-sensitive hash bucket."""
    generator = np.random.default_rng(SEED)
    factors, shifts = generator.integers(1, _PRIME, (2, HASHES))
    buckets: defaultdict[tuple[int, bytes], list[int]] = defaultdict(list)
    signatures = [_signature(text, factors, shifts) for text in texts]
    for row, signature in enumerate(signatures):
        for band in range(0, HASHES, BAND):
            buckets[band, signature[band : band + BAND].tobytes()].append(row)
    training = np.array(signatures)
    scores = np.zeros((len(tested), teams))
    for number, text in enumerate(tested):
        signature = _signature(text, factors, shifts)
        matches = [buckets.get((band, signature[band : band + BAND].tobytes()), []) for band in range(0, HASHES, BAND)]
        rows = sorted({row for bucket in matches for row in bucket})
        if rows:
            np.add.at(scores[number], owners[rows], (training[rows] == signature).mean(axis=1) ** 2)
    return scores


def _signature(text: str, factors: NDArray[np.int64], shifts: NDArray[np.int64]) -> NDArray[np.int64]:
    numbers = np.array([crc32(word.encode()) % _PRIME for word in set(_words(text))] or [0], np.int64)
    return ((numbers[:, np.newaxis] * factors + shifts) % _PRIME).min(axis=0)


def inverted_index(texts: Sequence[str], owners: NDArray[np.int64], teams: int, tested: Sequence[str]) -> FloatArray:
    """Score teams by the inverse document frequencies of the text's words, weighted by the team's share of each."""
    table: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for text, owner in zip(texts, owners.tolist(), strict=True):
        for word in set(_words(text)):
            table[word][owner] += 1
    scores = np.zeros((len(tested), teams))
    for number, text in enumerate(tested):
        for word in set(_words(text)) & table.keys():
            held = table[word].total()
            for owner, count in table[word].items():
                scores[number, owner] += np.log(len(texts) / held) * count / held
    return scores


def lgbm(texts: Sequence[str], owners: NDArray[np.int64], teams: int, tickets: Sequence[str]) -> FloatArray:
    """Score teams with one LightGBM model per team on TF-IDF words."""
    new_model = import_module("lightgbm").LGBMClassifier
    words = _text_features().TfidfVectorizer(min_df=5, max_features=3_000, sublinear_tf=True, dtype=np.float32)
    training, tested = words.fit_transform(texts), words.transform(tickets)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return _one_vs_all(
            lambda: new_model(n_estimators=LGBM_TREES, n_jobs=1, verbose=-1, random_state=SEED),
            training, owners, teams, tested,
        )  # fmt: skip


def mart(texts: Sequence[str], owners: NDArray[np.int64], teams: int, tickets: Sequence[str]) -> FloatArray:
    """Score teams with one boosted-trees model per team on latent features."""
    new_model = import_module("sklearn.ensemble").HistGradientBoostingClassifier
    words = _text_features().TfidfVectorizer(min_df=2, sublinear_tf=True)
    counted = words.fit_transform(texts)
    latent = import_module("sklearn.decomposition").TruncatedSVD(min(LATENT, counted.shape[1]), random_state=SEED)
    training, tested = latent.fit_transform(counted), latent.transform(words.transform(tickets))
    return _one_vs_all(
        lambda: new_model(
            learning_rate=0.2, max_iter=MART_TREES, max_leaf_nodes=20, min_samples_leaf=10, early_stopping=False
        ),
        training, owners, teams, tested,
    )  # fmt: skip


def linear_svm(texts: Sequence[str], owners: NDArray[np.int64], teams: int, tickets: Sequence[str]) -> FloatArray:
    """Score teams with a linear SVM on word and character n-grams; scores are signed distances."""
    hstack = import_module("scipy.sparse").hstack
    new_view = _text_features().TfidfVectorizer
    views = [
        new_view(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32),
        new_view(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True, dtype=np.float32),
    ]
    training = hstack([view.fit_transform(texts) for view in views]).tocsr()
    model = import_module("sklearn.svm").LinearSVC(C=1.0).fit(training, owners)
    scores = np.full((len(tickets), teams), -2.0)
    scores[:, model.classes_] = model.decision_function(hstack([view.transform(tickets) for view in views]).tocsr())
    return scores


def _one_vs_all(
    new_model: Callable[[], Any], training: Any, owners: NDArray[np.int64], teams: int, tested: Any
) -> FloatArray:
    """Fit one model per team. A team with too few incidents scores its share of all incidents."""
    shares = np.bincount(owners, minlength=teams) / len(owners)
    columns = [
        new_model().fit(training, owners == team).predict_proba(tested)[:, 1]
        if shares[team] * len(owners) >= MIN_OWN
        else None
        for team in range(teams)
    ]
    size = next(len(column) for column in columns if column is not None)
    return np.stack(
        [np.full(size, share) if column is None else column for column, share in zip(columns, shares, strict=True)],
        axis=1,
    )


def _text_features() -> Any:
    """Import the untyped module, which is slow to load."""
    return import_module("sklearn.feature_extraction.text")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


BASELINES: Mapping[str, Scorer] = {
    "content_based": content_based,
    "inverted_index": inverted_index,
    "lgbm": lgbm,
    "mart": mart,
    "linear_svm": linear_svm,
}


def beside(
    figures: Mapping[str, Any], splits: Sequence[Split], baselines: Mapping[str, Scorer] = BASELINES
) -> dict[str, Any]:
    """Return the figures of `plumbline eval triage`, with those of the baselines for the same tickets."""
    outcomes = {
        name: [outcome for split in splits for outcome in _outcomes(scorer, split)]
        for name, scorer in baselines.items()
    }
    rows = {name: figures_of(each) for name, each in outcomes.items()}
    return {**figures, "results": {**figures["results"], **rows}}


def _outcomes(scorer: Scorer, split: Split) -> list[TicketOutcome]:
    training, tickets = split
    teams = sorted({ticket.owner for ticket in training})
    owners = np.array([teams.index(ticket.owner) for ticket in training])
    scores = scorer([ticket.text for ticket in training], owners, len(teams), [ticket.text for ticket in tickets])
    return [_outcome(row, teams, ticket.owner) for row, ticket in zip(scores, tickets, strict=True)]


def _outcome(scores: FloatArray, teams: Sequence[str], owner: str) -> TicketOutcome:
    """Return the outcome of a ticket: the first team's share of all scores.

    For signed distances, the share is computed after the logistic function, and tickets are ordered by the margin.
    """
    order: list[int] = np.argsort(-scores, kind="stable").tolist()
    distances = scores.min() < 0
    positive = 1 / (1 + np.exp(-scores)) if distances else scores
    share = float(positive[order[0]] / positive.sum()) if positive.sum() else 0.0
    confidence = float(scores[order[0]] - scores[order[1]]) if distances else share
    return TicketOutcome(tuple(teams[team] for team in order[:HOPS]), confidence, share, owner)
