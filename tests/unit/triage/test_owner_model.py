from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from core.model.alert import Severity
from core.model.findings import PastIncident
from core.model.incident import Incident
from core.model.team import Team
from core.triage.managers import Enrichment, gather
from core.triage.negotiate import evaluate_owner, labels_from
from core.triage.owner_model import MIN_INCIDENTS, IncidentHistory, IncidentText, OwnerModel, training_incidents
from tests.fakes.incidents import bare_incident
from tests.fakes.past_incidents import AT, TEAMS, WORDS, past_incidents
from tests.fakes.triage import propose_owner

NEW = Team("cranes", "Cranes", "## We own\n\nCranes, hooks, winches.\n")


@cache
def model() -> OwnerModel:
    fitted = OwnerModel.fitted(past_incidents())
    assert fitted is not None
    return fitted


def incident(title: str) -> Incident:
    return bare_incident(title, severity=Severity.WARNING)


@pytest.mark.parametrize(("team", "words"), WORDS.items())
def test_the_team_whose_incidents_read_alike_is_most_probable(team: str, words: str) -> None:
    text = f"{words.split(maxsplit=1)[0]} stolen from hall99"
    found = model().probabilities(IncidentText(text, text))
    assert max(found, key=lambda name: found[name]) == team
    assert sum(found.values()) == pytest.approx(1.0)


def test_too_short_a_history_teaches_nothing() -> None:
    assert OwnerModel.fitted(past_incidents()[: MIN_INCIDENTS - 1]) is None


def test_what_is_said_of_past_incidents_is_said_without_having_seen_them() -> None:
    """A team of one incident cannot be guessed by whoever has not seen it."""
    lone = PastIncident("LONE", "zeppelin adrift", "", "", Severity.WARNING, AT, "airships")
    fitted = OwnerModel.fitted([*past_incidents(), lone])
    assert fitted is not None
    assert sum(not held.correct for held in fitted.held_out) >= 1
    assert "airships" not in {held.owner for held in fitted.held_out if held.correct}


def test_a_history_of_one_team_or_of_one_text_teaches_nothing() -> None:
    past = past_incidents()
    assert OwnerModel.fitted([replace(each, owner="printing") for each in past]) is None
    assert OwnerModel.fitted([replace(each, title="toner") for each in past]) is None


def test_incidents_of_a_renamed_or_merged_team_count_for_its_successor_and_of_a_dissolved_one_for_nobody() -> None:
    first, second, third, fourth = (
        replace(incident, owner=owner)
        for incident, owner in zip(past_incidents()[:4], ("login", "identity", "dissolved", ""), strict=True)
    )
    learned = training_incidents([first, second, third, fourth], [Team("identity", "Identity", aliases=("login",))])
    assert learned == [replace(first, owner="identity"), second]


def test_a_new_team_without_history_is_found_by_its_document() -> None:
    asked, history = incident("winches and hooks"), IncidentHistory(past_incidents())
    before, after = (
        gather(asked, [*TEAMS, cranes], history, Enrichment(), model()).learned["cranes"]
        for cranes in (Team("cranes", "Cranes"), NEW)
    )
    assert before == 0 < after


def test_probabilities_are_those_of_the_teams_of_today() -> None:
    found = gather(incident("toner"), TEAMS[1:], IncidentHistory([]), Enrichment(), model()).learned
    assert found.keys() == {team.id for team in TEAMS[1:]}
    assert sum(found.values()) == pytest.approx(1.0)


def test_a_proposal_rests_on_what_was_learned_and_is_sure_of_the_familiar_only() -> None:
    history = IncidentHistory(past_incidents())
    familiar, strange = (
        propose_owner(incident(title), TEAMS, history, Enrichment(), model())
        for title in ("toner slow in hall7", "marmalade everywhere")
    )
    assert familiar.owner is not None
    assert familiar.owner.team_id == "printing"
    assert strange.owner is None
    assert len(strange.candidates) >= 2
    assert evaluate_owner(familiar).rce > evaluate_owner(strange).rce
    assert evaluate_owner(familiar).coe == 1.0


def test_a_team_that_turned_the_incident_away_takes_no_part() -> None:
    found = propose_owner(
        incident("toner slow in hall7"),
        TEAMS,
        IncidentHistory(past_incidents()),
        Enrichment(),
        model(),
        frozenset({"printing"}),
    )
    assert {candidate.team_id for candidate in found.candidates} == {"access", "network"}


def test_labels_are_the_models_own_record_on_what_it_had_not_seen() -> None:
    labels = labels_from(model())
    assert len(labels) == len(past_incidents())
    assert all(0 <= label.evaluation.rce <= 1 and label.evaluation.coe == 1 for label in labels)
    assert {label.group for label in labels} <= WORDS.keys()
