from __future__ import annotations

import numpy as np
import pytest

from core.triage.owner_model import IncidentText, TextSimilarity

PRINTER = IncidentText("Drucker defekt", "Drucker defekt\nDruckerwarteschlange in Halle 3 steht")
LOGIN = IncidentText("Login fails", "Login fails\nnobody can sign in")
SIMILARITY = TextSimilarity.of([PRINTER, LOGIN])


def test_the_same_text_is_wholly_alike() -> None:
    assert SIMILARITY.to(PRINTER)[0] == pytest.approx(3.0, abs=1e-6)


def test_compounds_and_misspellings_are_alike_by_their_letters() -> None:
    found = SIMILARITY.to(IncidentText("Druckerproblem", "Druckerproblem: Warteschlage steht still"))
    assert found[0] > 0.3 > found[1]


def test_products_of_rows_are_the_similarities_that_a_search_finds() -> None:
    searched = np.stack([SIMILARITY.to(PRINTER), SIMILARITY.to(LOGIN)])
    rows = SIMILARITY.matrix()
    assert (rows @ rows.T).toarray() == pytest.approx(searched, abs=1e-5)


def test_case_and_punctuation_make_no_difference_to_what_is_said() -> None:
    assert IncidentText("a", "Login FAILS!").key == IncidentText("b", "login, fails").key


def test_a_text_without_an_end_is_read_in_part() -> None:
    assert SIMILARITY.to(IncidentText("x" * 100_000, "y " * 100_000)).shape == (2,)
