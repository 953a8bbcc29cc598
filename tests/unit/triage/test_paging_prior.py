"""What needs a person is judged on the first day too, better than by its severity, and nothing critical waits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.incident_view import page_claim
from core.model.alert import Severity
from core.model.badge import Badge, Strength
from core.triage.paging import PRIOR_FILE, prior, prior_probability
from tests.benchmarks import page_scenarios, pages

MARGIN = 0.1  # of the area under the curve, above the severity's
FRESH = 77  # a seed that no fit has seen


@pytest.mark.parametrize("name", page_scenarios.SCENARIOS)
def test_the_first_days_of_new_companies_are_judged_better_than_by_severity(name: str) -> None:
    figures = page_scenarios.first_days(name, 1_500, FRESH, hold_below=0.2)
    results = figures["cold_start"]
    assert results["plumbline"]["auroc"] >= results["severity_only"]["auroc"] + MARGIN
    assert figures["held"]["critical"] == 0


def test_the_generator_is_judged_better_than_by_severity_before_anything_was_learned() -> None:
    figures, judged = pages.run(pages.generate(900, seed=FRESH), hold_below=0.2, cold=True)
    assert figures["results"]["plumbline"]["auroc"] >= figures["results"]["severity_only"]["auroc"] + MARGIN
    assert figures["learned"] == {}
    assert all(each.from_prior for each in judged)


def test_once_enough_is_known_the_prior_is_no_longer_asked() -> None:
    _, judged = pages.run(pages.generate(900, seed=FRESH), hold_below=0.05)
    assert judged[0].from_prior
    assert not judged[-1].from_prior


def test_the_file_says_where_it_comes_from_and_how_it_does_on_kinds_it_was_not_fitted_on() -> None:
    read = json.loads(PRIOR_FILE.read_text("utf-8"))
    assert "generated" in read["from"]
    figures = read["judged_by_a_fit_on_the_other_families"]
    assert set(figures) == {"generated", *page_scenarios.SCENARIOS}
    for family, row in figures.items():
        assert row["auroc"] >= row["auroc_of_severity"] + MARGIN, family


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_likelier_need_is_never_given_a_lower_probability(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= prior_probability(low) <= prior_probability(high) <= 1


def test_the_model_fits_its_features() -> None:
    facts = pages.judge(pages.generate(1, seed=1), 0.05, cold=True)[0].facts
    assert len(facts.features) == len(prior().weights) == len(prior().mean)
    assert len(prior().judged) == len(prior().needed)


def test_a_critical_incident_is_never_said_to_be_able_to_wait() -> None:
    said, _ = page_claim(Badge(Strength.WEAK, 0.01), Severity.CRITICAL)
    assert said == "May need a person"
