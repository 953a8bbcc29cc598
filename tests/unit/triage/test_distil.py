from __future__ import annotations

from core.model.team import Team
from core.triage.distil import Alignment, key_phrases
from core.triage.documents import matches

PRINTING = Team("printing", "Printing", "## We own\n\nPrinters and toner.\n", frozenset({"spooler"}))
ACCESS = Team("access", "Access", "## We own\n\nPasswords and tokens.\n")
TEAMS = [PRINTING, ACCESS]
HISTORY = ["der Drucker printer steht", "Drucker printer ohne Papier", "printer Drucker kaputt", "password vergessen"]


def test_a_word_that_goes_with_a_word_of_the_documents_stands_for_it() -> None:
    aligned = Alignment.fitted(HISTORY, TEAMS).aligned("Drucker in Halle 3")
    assert matches("Drucker in Halle 3", TEAMS) == {}
    assert matches(aligned, TEAMS).keys() == {"printing"}


def test_a_word_that_was_met_too_seldom_stands_for_nothing() -> None:
    text = "vergessen"
    assert Alignment.fitted(HISTORY, TEAMS).aligned(text) == text


def test_without_history_or_documents_nothing_is_aligned() -> None:
    assert Alignment.fitted([], TEAMS) == Alignment.fitted(HISTORY, [Team("a", "A")]) == Alignment()


def test_key_phrases_tell_where_it_fails_how_and_what_it_takes() -> None:
    found = key_phrases("spooler on host-17.north crashed: toner unknown, crashed again", TEAMS)
    assert found.location == ("spooler", "host-17.north")
    assert found.symptoms[0] == "crashed"
    assert found.capability == ("toner",)


def test_an_empty_text_has_no_key_phrases() -> None:
    found = key_phrases("", TEAMS)
    assert (found.location, found.symptoms, found.capability) == ((), (), ())
