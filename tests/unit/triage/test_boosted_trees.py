from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from core.triage import boosted_trees
from core.triage.boosted_trees import DEPTH, BoostedTrees, fit_trees

RANDOM = np.random.default_rng(7)
ROWS = RANDOM.normal(size=(2_000, 3))
RIGHT = (ROWS[:, 0] > 0) ^ (ROWS[:, 1] > 0)  # which neither says alone


@pytest.fixture(autouse=True)
def _few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "TREES", 40)


def test_they_see_what_two_features_say_together() -> None:
    trees = fit_trees(ROWS, RIGHT)
    asked = RANDOM.normal(size=(500, 3))
    assert ((trees.log_odds(asked) > 0) == (asked[:, 0] > 0) ^ (asked[:, 1] > 0)).mean() > 0.9


def test_they_say_what_the_library_says_that_grew_them() -> None:
    model = HistGradientBoostingClassifier(max_iter=30, max_depth=DEPTH).fit(ROWS, RIGHT)
    said = BoostedTrees.of(model).log_odds(ROWS)
    assert said == pytest.approx(model.decision_function(ROWS))


def test_equal_rows_grow_equal_trees() -> None:
    one, other = fit_trees(ROWS, RIGHT), fit_trees(ROWS, RIGHT)
    for field in fields(BoostedTrees):
        assert np.array_equal(getattr(one, field.name), getattr(other, field.name))
