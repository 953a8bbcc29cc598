from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.incident import Explanation, Hop, Incident
from core.model.team import Team
from core.rca.observations import Observations
from core.triage.history import IncidentHistory
from core.triage.model_managers import TeamDocuments
from core.triage.model_negotiation import VERSION
from handlers.incidents.negotiate_owner import Negotiator
from handlers.incidents.triage_incident import ENGINE, NOT_AGREED, WITHOUT_MODEL, triage_incident
from tests.fakes.clock import FakeClock
from tests.fakes.language_model import ScriptedModel
from tests.fakes.outage import START, errors, incident, observations
from tests.fakes.ports import incident_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.triage_script import Cast, TriageScript

SHOP = Team("sales", "Sales", "## We own\n\nBaskets, tills.\n", frozenset({"shop"}), on_call=("Ines",))
LOGIN = Team("identity", "Identity", "## We own\n\nTokens, keys.\n", frozenset({"login"}), on_call=("Mira",))
STOCK = Team("stock", "Stock", "## We own\n\nShelves.\n", frozenset({"stock"}))
TEAMS = (SHOP, LOGIN, STOCK)


async def triaged(model: ScriptedModel, of: Incident, store: FakePredictionStore | None = None) -> Incident:
    async def observe(seen: Incident) -> Observations:
        return observations([errors("login", "token rejected", -4)], of=seen)

    return await triage_incident(
        of,
        incident_ports(teams=TEAMS, store=store or FakePredictionStore(), clock=FakeClock()),
        history=IncidentHistory(()),
        negotiator=Negotiator(model, TeamDocuments(model), observe),
    )


async def test_what_the_managers_agree_on_is_proposed_with_their_reasons_as_a_claim_of_the_model() -> None:
    store = FakePredictionStore()
    found = await triaged(TriageScript(lambda *_: "identity").model(), incident(), store)
    assert found.owner is not None
    assert found.owner.owner is not None
    assert found.owner.owner == found.owner.candidates[0]
    assert found.owner.owner.team_id == "identity"
    assert found.owner.owner.score == 1.0
    assert "Sales says identity" in found.owner.owner.reasons
    assert found.owner.on_call == ("Mira",)
    assert found.owner.note == ""
    (prediction,) = store.predictions.values()
    assert (prediction.engine, prediction.estimator_version, prediction.group) == ("scripted", VERSION, "identity")


async def test_where_they_do_not_agree_a_person_is_asked_and_the_last_votes_say_who_is_nearest() -> None:
    own = {"Sales": "sales", "Identity": "identity", "Stock": "stock"}
    found = await triaged(TriageScript(lambda team, _: own[team]).model(), incident())
    assert found.owner is not None
    assert found.owner.owner is None
    assert found.owner.note == NOT_AGREED
    assert {vote.round for vote in found.owner.votes} == {1, 2, 3, 4, 5}
    assert {candidate.score for candidate in found.owner.candidates} == {1 / 3}


@pytest.mark.parametrize("voters", [("sales", "identity", "stock"), ("sales", "stock"), ("stock",)])
async def test_at_most_two_teams_are_asked_and_none_that_nobody_votes_for(voters: tuple[str, ...]) -> None:
    found = await triaged(
        TriageScript(lambda team, _: team.lower() if team.lower() in voters else None).model(), incident()
    )
    assert found.owner is not None
    assert found.owner.owner is None
    assert len(found.owner.asked) == min(2, len(voters))
    assert {team.team_id for team in found.owner.asked} <= set(voters)


@pytest.mark.parametrize("error", [ModelUnavailable("down"), InvalidReply("nonsense"), PromptTooLong("too long")])
async def test_where_the_model_fails_the_evidence_stands_and_says_so(error: Exception) -> None:
    def fails(*_: object) -> str:
        raise error

    store = FakePredictionStore()
    found = await triaged(ScriptedModel(fails), incident(), store)
    assert found.owner is not None
    assert found.owner.owner is not None
    assert found.owner.owner.team_id == "sales"
    assert found.owner.note == WITHOUT_MODEL
    assert [prediction.engine for prediction in store.predictions.values()] == [ENGINE]


async def test_each_manager_reads_what_its_own_services_show() -> None:
    model = TriageScript(lambda *_: "identity").model()
    await triaged(model, incident())
    told = [
        each.messages[-1].text for each in model.requests if each.schema and each.schema["title"] == "MonitoringSummary"
    ]
    by_team = {
        team.name: next(prompt for prompt in told if f"manager of team {team.name}." in prompt) for team in TEAMS
    }
    assert "token rejected" in by_team["Identity"]
    assert "token rejected" not in by_team["Sales"]
    assert all("Identity (identity): Identity saw a spark." in prompt for prompt in _ballots(model))


async def test_what_monitoring_shows_changes_the_owner_where_the_text_alone_misleads() -> None:
    """The managers believe the text until one of them has seen the fault in its own logs."""
    model = ScriptedModel()
    script = TriageScript(lambda *_: "sales")
    model.script = lambda request: _believing(script, request.messages[-1].text)(request)
    found = await triaged(model, incident())
    assert found.owner is not None
    assert found.owner.owner is not None
    assert found.owner.owner.team_id == "identity"


async def test_a_team_that_turned_it_away_is_not_asked() -> None:
    turned_away = replace(incident(), hops=(Hop("sales", "", "Ada", "", START),))
    store = FakePredictionStore()
    found = await triaged(TriageScript(lambda *_: "identity").model(), turned_away, store)
    assert found.owner is not None
    assert {vote.voter for vote in found.owner.votes} == {"identity", "stock"}
    assert found.owner.prediction_id.endswith(":1")


async def test_an_owner_that_a_person_named_stays() -> None:
    first = await triaged(TriageScript(lambda *_: "identity").model(), incident())
    given = replace(first, hops=(Hop("sales", "identity", "Ada", "", START),), explanation=Explanation((), (), (), ()))
    again = await triaged(TriageScript(lambda *_: "stock").model(), given)
    assert again.owner == first.owner


def _believing(script: TriageScript, prompt: str) -> Callable[..., str]:
    cast: Cast = lambda *_: "identity" if "saw a spark" in prompt and "Identity (identity)" in prompt else "sales"  # noqa: E731
    return TriageScript(cast, script.ranking, voted=script.voted)


def _ballots(model: ScriptedModel) -> list[str]:
    return [each.messages[-1].text for each in model.requests if each.schema and each.schema["title"] == "Ballot"]
