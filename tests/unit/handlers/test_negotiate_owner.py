"""Triage by agents of a language model, from an incident to its recorded proposal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.incidents.incident_details import format_votes
from core.model.badge import Estimator, PredictionKind
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.findings import Explanation, OwnerProposal
from core.model.incident import Hop, Incident
from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from core.model.team import Team
from core.model_calls.choice import Trust, Use
from core.model_calls.metered_model import Limits
from core.model_calls.prompts.incidents import NOBODY
from core.rca.observations import Observations
from core.triage.agents import AGENTS_VERSION
from core.triage.owner_model import IncidentHistory
from handlers.common.examine_model import ExaminedModel
from handlers.incidents.triage_incident import ENGINE, WITHOUT_MODEL, triage_incident
from tests.cases import every_case
from tests.fakes.calibrators import calibrator
from tests.fakes.language_model import ScriptedModel, passed
from tests.fakes.outage import START, errors, incident, observations
from tests.fakes.ports import some_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.triage_script import Cast, TriageScript

SHOP = Team("sales", "Sales", "## We own\n\nBaskets, tills.\n", frozenset({"shop"}), on_call=("Ines",))
LOGIN = Team("identity", "Identity", "## We own\n\nTokens, keys.\n", frozenset({"login"}), on_call=("Mira",))
STOCK = Team("stock", "Stock", "## We own\n\nShelves.\n", frozenset({"stock"}))
TEAMS = (SHOP, LOGIN, STOCK)
OPEN = incident(service="", title="shelves and keys are odd")  # about which the evidence names nobody


async def triaged(
    model: ScriptedModel | None,
    of: Incident = OPEN,
    store: FakePredictionStore | None = None,
    trust: Trust = Trust.MEASURED,
    *,
    seen: bool = True,
    limits: Limits = Limits(),
) -> OwnerProposal:
    async def observe(around: Incident) -> Observations:
        return observations([errors("login", "token rejected", -4, level="WARN")], of=around)

    examined = await passed(model, writes=True) if model else None
    if model and trust is not Trust.MEASURED:
        examined = ExaminedModel(model, trust={Use.OWNERS: trust})
    found = await triage_incident(
        of,
        some_ports(teams=TEAMS, store=store or FakePredictionStore(), examined=examined, limits=limits),
        history=IncidentHistory(()),
        observe=observe if seen else None,
    )
    assert found.findings.owner is not None
    return found.findings.owner


async def test_what_the_managers_agree_on_is_proposed_with_their_reasons_as_a_claim_of_the_model() -> None:
    assert (await triaged(None)).owner is None
    store = FakePredictionStore()
    found = await triaged(TriageScript(lambda *_: "identity").model(), store=store)
    assert found.owner is not None
    assert found.owner == found.candidates[0]
    assert (found.owner.team_id, found.owner.score, found.on_call) == ("identity", 1.0, ("Mira",))
    assert "Sales says identity" in found.owner.reasons
    assert found.note == ""
    assert any("Stock votes for Identity" in line for line in format_votes(OPEN.with_findings(owner=found)))
    (prediction,) = store.predictions.values()
    assert (prediction.engine, prediction.estimator_version, prediction.group) == (
        "scripted",
        AGENTS_VERSION,
        "identity",
    )


async def test_each_manager_reads_its_own_document_and_what_its_own_services_show() -> None:
    model = TriageScript(lambda *_: "identity").model()
    await triaged(model)
    told = [
        each.messages[-1].text for each in model.requests if each.schema and each.schema["title"] == "MonitoringSummary"
    ]
    by_team = {
        team.name: next(prompt for prompt in told if f"manager of team {team.name}." in prompt) for team in TEAMS
    }
    assert "token rejected" in by_team["Identity"]
    assert "Tokens, keys." in by_team["Identity"]
    assert "token rejected" not in by_team["Sales"]
    assert all("Identity (identity): Identity saw a spark." in prompt for prompt in _ballots(model))


async def test_what_monitoring_shows_changes_the_owner_where_the_text_alone_misleads() -> None:
    """The managers believe the text until one of them has seen the fault in its own logs."""
    model = ScriptedModel()
    script = TriageScript(lambda *_: "sales")
    model.script = lambda request: _believing(script, request.messages[-1].text)(request)
    found = await triaged(model)
    assert found.owner is not None
    assert found.owner.team_id == "identity"


@pytest.mark.parametrize("error", [ModelUnavailable("down"), InvalidReply("nonsense"), PromptTooLong("long"), None])
async def test_where_the_model_fails_or_hangs_the_evidence_stands_and_says_so(
    error: Exception | None,
) -> None:
    class Failing(ScriptedModel):
        async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
            await asyncio.sleep(0 if error else 60)
            raise error or AssertionError

    store = FakePredictionStore()
    found, without = await triaged(Failing(), store=store, limits=Limits(seconds=0.5)), await triaged(None)
    assert found == replace(without, note=f"{without.note} {WITHOUT_MODEL}".strip())
    assert [prediction.engine for prediction in store.predictions.values()] == [ENGINE]


@every_case("reply", ["{", "I think it is identity.", '{"reason": "ours", "team": "payroll"}', "", "[]" * 999])
async def test_where_the_model_replies_with_nonsense_the_evidence_stands(reply: str) -> None:
    found, without = await triaged(ScriptedModel(lambda _: reply)), await triaged(None)
    assert replace(found, note="") == replace(without, note="")
    assert found.note.endswith(WITHOUT_MODEL)


async def test_managers_that_each_insist_on_their_own_team_leave_the_choice_to_people() -> None:
    own = {"Sales": "sales", "Identity": "identity", "Stock": "stock"}
    found, without = await triaged(TriageScript(lambda team, _: own[team]).model()), await triaged(None)
    assert found.owner is None
    assert found.asked == without.asked
    assert found.note == without.note


async def test_where_the_managers_abstain_a_shared_word_names_nobody_and_owning_the_service_does() -> None:
    for of, named, owner in (
        (incident(service="", title="two shelves"), "stock", None),
        (incident(service="login", title="keys are slow"), "identity", "identity"),
    ):
        without = await triaged(None, of, seen=False)
        found = await triaged(TriageScript(lambda *_: NOBODY).model(), of, trust=Trust.ALWAYS, seen=False)
        assert without.owner is not None
        assert (without.owner.team_id, found.candidates[0].team_id) == (named, named)
        assert (found.owner and found.owner.team_id) == owner


async def test_a_model_that_does_not_write_decides_alone() -> None:
    model = TriageScript(lambda *_: "identity").model()
    model.odds = lambda _, __: {"identity": 1.0}
    ports = some_ports(teams=TEAMS, store=FakePredictionStore(), examined=await passed(model))
    await triage_incident(OPEN, ports, history=IncidentHistory(()))
    assert [request.schema for request in model.requests] == [None]


async def test_agents_that_people_found_wrong_more_often_than_not_are_not_followed() -> None:
    store = FakePredictionStore()
    store.calibrators[Estimator(PredictionKind.OWNER, "scripted", AGENTS_VERSION)] = calibrator(0.3, 0.3)
    assert (await triaged(TriageScript(lambda *_: "identity").model(), store=store)).owner is None


@pytest.mark.parametrize(("trust", "owner"), [(Trust.ALWAYS, "sales"), (Trust.NEVER, "identity")])
async def test_the_operator_says_whether_the_agents_are_asked_about_owners(trust: Trust, owner: str) -> None:
    """The evidence alone is certain of this incident."""
    model = TriageScript(lambda *_: "sales").model()
    found = await triaged(model, incident(service="login", title="keys are slow"), trust=trust)
    assert found.owner is not None
    assert found.owner.team_id == owner


async def test_a_team_that_turned_it_away_is_not_asked() -> None:
    turned_away = replace(OPEN, hops=(Hop("sales", "", "Ada", "", START),))
    store = FakePredictionStore()
    found = await triaged(TriageScript(lambda *_: "identity").model(), turned_away, store)
    assert {vote.voter for vote in found.votes} == {"identity", "stock"}
    assert found.prediction_id.endswith(":1")


async def test_an_owner_that_a_person_named_stays() -> None:
    first = await triaged(TriageScript(lambda *_: "identity").model())
    given = replace(
        OPEN.with_findings(owner=first, explanation=Explanation((), (), (), ())),
        hops=(Hop("sales", "identity", "Ada", "", START),),
    )
    assert await triaged(TriageScript(lambda *_: "stock").model(), given) == first


def _believing(script: TriageScript, prompt: str) -> Callable[..., str]:
    cast: Cast = lambda *_: "identity" if "saw a spark" in prompt and "Identity (identity)" in prompt else "sales"  # noqa: E731
    return TriageScript(cast, script.ranking, voted=script.voted)


def _ballots(model: ScriptedModel) -> list[str]:
    return [each.messages[-1].text for each in model.requests if each.schema and each.schema["title"] == "Ballot"]
