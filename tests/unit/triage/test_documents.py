from __future__ import annotations

from core.model.team import Team
from core.triage.candidates import matches, profile

FLEET = Team("fleet", "Fleet", "# Fleet\n\n## We own\n\nPositions of vessels, satellite frames.\n")
IDENTITY = Team("identity", "Identity", "# Identity\n\n## We own\n\nTokens, signing keys, JWKS.\n")
BOARDING = Team(
    "boarding", "Boarding", "# Boarding\n\n## We own\n\nGates, kiosks.\n\n## We do not own\n\nTokens, JWKS, kiosks.\n"
)
TEAMS = [FLEET, IDENTITY, BOARDING]


def test_the_team_that_claims_the_words_fits() -> None:
    found = matches("no satellite frames from any vessel", TEAMS)
    assert found.keys() == {"fleet"}
    assert set(found["fleet"].words) == {"satellite", "frames"}  # "vessel" does not stand in the document


def test_what_a_team_turns_away_does_not_speak_for_it() -> None:
    assert matches("tokens are not in the JWKS", TEAMS).keys() == {"identity"}


def test_a_word_that_is_claimed_and_turned_away_counts_less() -> None:
    found = matches("kiosks gates", TEAMS)["boarding"].score
    assert 0 < found < matches("gates", TEAMS)["boarding"].score


def test_the_best_fit_is_the_one_that_claims_most_of_the_rare_words() -> None:
    found = matches("vessel tokens and signing keys", TEAMS)
    assert found["identity"].score > found["fleet"].score


def test_a_text_that_no_team_speaks_of_fits_nobody() -> None:
    assert matches("marmalade", TEAMS) == {}
    assert matches("", TEAMS) == {}


def test_a_team_without_a_document_fits_nothing() -> None:
    assert matches("anything", [Team("a", "A"), Team("b", "B")]) == {}


def test_a_heading_that_denies_makes_its_section_foreign() -> None:
    known = profile(
        "Intro\n\n## Out of scope\n\nprinters\n\n## Symptoms that only look like ours\n\nscanners\n\n## Words\n\nramp\n"
    )
    assert known.disowned == {"printer", "scanner"}
    assert known.claimed == {"intro", "ramp"}
