"""Domain hints mined from the corpus itself: the terms that set one family apart from the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

MAX_HINTS = 12  # terms of a family
PRIOR = 0.1  # occurrences of every term that each family is taken to have beforehand
SIGNIFICANT = 1.0  # standard deviations by which a term must prefer its family


def mined_hints(texts: Sequence[Sequence[str]], families: Sequence[str]) -> dict[str, dict[str, float]]:
    """Family → its most telling terms, most telling first, each with how many standard deviations it prefers it.

    `texts[i]` are the terms of the i-th text, `families[i]` its family. The log odds of a term in the family against
    all others, with a Dirichlet prior, in units of its standard deviation (Monroe, Colaresi and Quinn 2008, section
    3.5). A term counts once for each text: one text that repeats it is one witness.
    """
    names = sorted(set(families))
    counts = {name: Counter[str]() for name in names}
    for text, family in zip(texts, families, strict=True):
        counts[family].update(set(text))
    vocabulary = sorted(set[str]().union(*counts.values()))
    table = np.array([[counts[name][term] for term in vocabulary] for name in names], float) + PRIOR
    others = table.sum(axis=0) - table
    totals = table.sum(axis=1, keepdims=True)
    rest = totals.sum() - totals
    odds = np.log(table / (totals - table)) - np.log(others / (rest - others))
    preference = odds / np.sqrt(1 / table + 1 / others)
    best = np.argsort(-preference, axis=1, kind="stable")[:, :MAX_HINTS]
    return {
        name: {vocabulary[spot]: float(row[spot]) for spot in spots.tolist() if row[spot] >= SIGNIFICANT}
        for name, row, spots in zip(names, preference, best, strict=True)
    }
