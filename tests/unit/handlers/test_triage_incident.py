from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from core.incidents.incident_details import format_votes
from core.model.alert import Severity
from core.model.badge import Badge, Estimator, PredictionKind, Strength
from core.model.findings import AskedTeam, Explanation, Hypothesis, PastIncident, TeamScore
from core.model.incident import Hop, Incident, Stage
from core.model.team import Team
from core.rca.observations import Observations
from core.triage.negotiate import VERSION, version_with
from core.triage.owner_model import IncidentHistory, OwnerModel
from handlers.incidents.triage_incident import ENGINE, ENRICHED_ENGINE, embed_past_incidents, triage_incident
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.on_call_servers import FakeOnCall, Shift
from tests.fakes.outage import START, errors, incident, observations, traffic
from tests.fakes.past_incidents import TEAMS
from tests.fakes.ports import some_ports
from tests.fakes.predictions import FakePredictionStore
from tests.fakes.puzzles import SENSES, STRANGE_WORDS, puzzles
from tests.samples import owner

SHOP = Team("sales", "Sales", "## We own\n\nBaskets, tills.\n", frozenset({"shop"}), on_call=("Ines", "Tomas"))
LOGIN = Team("identity", "Identity", "## We own\n\nTokens, keys.\n", frozenset({"login"}), on_call=("Mira",))
HISTORY = IncidentHistory(
    [PastIncident("INC-1", "ShopLatencyHigh", "baskets are slow", "shop", Severity.WARNING, START, "sales")]
)
KEY = Hypothesis("the key was rotated", "login", 0.9, (), "", "")

Triage = Callable[[Incident], Awaitable[Incident]]


@pytest.fixture
def store() -> FakePredictionStore:
    return FakePredictionStore()


@pytest.fixture
def triage(store: FakePredictionStore) -> Triage:
    return partial(
        triage_incident, ports=some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock()), history=HISTORY
    )


def explained(*hypotheses: Hypothesis) -> Incident:
    return incident().with_findings(explanation=Explanation(hypotheses, (), (), (), badge=Badge(Strength.STRONG)))


async def test_the_owner_is_proposed_with_its_on_call_and_the_work_goes_on(triage: Triage) -> None:
    found = await triage(incident())
    assert found.findings.owner is not None
    assert found.findings.owner.owner is not None
    assert found.findings.owner.owner.team_id == "sales"
    assert found.findings.owner.owner == found.findings.owner.candidates[0]
    assert found.findings.owner.on_call == ("Ines", "Tomas")
    assert found.stage is Stage.EXPLAINING


async def test_the_claim_is_stored_with_the_measures_behind_its_badge(
    triage: Triage, store: FakePredictionStore
) -> None:
    found = await triage(incident())
    (prediction,) = store.predictions.values()
    assert found.findings.owner is not None
    assert found.findings.owner.prediction_id == prediction.id
    assert (prediction.kind, prediction.subject, prediction.value) == (PredictionKind.OWNER, "I-1", "sales")
    assert 0 < prediction.evaluation.coe <= 1
    assert 0 < prediction.evaluation.rce <= 1
    assert found.findings.owner.badge.probability is None
    assert found.findings.owner.badge.outcomes == 7


async def test_a_calibrated_engine_shows_its_probability(triage: Triage, store: FakePredictionStore) -> None:
    store.calibrators[Estimator(PredictionKind.OWNER, ENGINE, VERSION)] = calibrator(0.86, 0.86)
    found = await triage(incident())
    assert found.findings.owner is not None
    assert found.findings.owner.badge.probability == 0.86


async def test_running_twice_makes_one_prediction(triage: Triage, store: FakePredictionStore) -> None:
    assert await triage(incident()) == await triage(incident())
    assert len(store.predictions) == 1


async def test_a_cause_found_elsewhere_revises_the_owner_as_a_claim_of_its_own(
    triage: Triage, store: FakePredictionStore
) -> None:
    await triage(incident())
    found = await triage(explained(KEY))
    assert found.findings.owner is not None
    assert found.findings.owner.owner is not None
    assert found.findings.owner.owner.team_id == "identity"
    assert found.findings.owner.on_call == ("Mira",)
    assert found.stage is Stage.DONE
    assert {prediction.engine: prediction.value for prediction in store.predictions.values()} == {
        ENGINE: "sales",
        ENRICHED_ENGINE: "identity",
    }


async def test_an_explanation_without_a_culprit_changes_nothing_about_the_owner(
    triage: Triage, store: FakePredictionStore
) -> None:
    first = await triage(incident())
    again = await triage(explained())
    assert again.findings.owner == first.findings.owner
    assert again.stage is Stage.DONE
    assert len(store.predictions) == 1


async def test_where_nobody_can_be_named_nobody_is_called(triage: Triage) -> None:
    found = await triage(incident(service="", title="marmalade"))
    assert found.findings.owner is not None
    assert found.findings.owner.owner is None
    assert (found.findings.owner.on_call, found.findings.owner.asked) == ((), ())


BETWEEN = incident(title="tills jam, tokens are lost", service="")  # as much Sales' as Identity's


async def test_where_two_teams_are_about_as_near_both_are_asked_and_who_of_them_is_on_call(triage: Triage) -> None:
    found = await triage(BETWEEN)
    assert found.findings.owner is not None
    assert found.findings.owner.owner is None
    assert set(found.findings.owner.asked) == {
        AskedTeam("sales", "Sales", ("Ines", "Tomas")),
        AskedTeam("identity", "Identity", ("Mira",)),
    }
    assert [team.team_id for team in found.findings.owner.asked] == [
        team.team_id for team in found.findings.owner.candidates
    ]


async def test_at_most_two_are_asked(store: FakePredictionStore) -> None:
    async def asked(*others: Team) -> int:
        teams = [SHOP, LOGIN, *others]
        found = await triage_incident(BETWEEN, some_ports(teams=teams, store=store, clock=FakeClock()), history=HISTORY)
        assert found.findings.owner is not None
        assert found.findings.owner.owner is None
        assert [team.team_id for team in found.findings.owner.asked] == [
            each.team_id for each in found.findings.owner.candidates[:2]
        ]
        return len(found.findings.owner.asked)

    both = "## We own\n\nTills, tokens.\n"
    assert await asked() == await asked(Team("desk", "Desk", both), Team("bench", "Bench", both)) == 2


async def test_the_team_that_is_named_is_not_asked(triage: Triage) -> None:
    found = await triage(incident())
    assert found.findings.owner is not None
    assert found.findings.owner.asked == ()


async def test_the_schedules_of_both_are_read_at_once_and_one_that_fails_is_named(store: FakePredictionStore) -> None:
    both_asked = asyncio.Barrier(2)

    class Meeting(FakeOnCall):
        """Answers once the other one is asked as well."""

        async def people(self, team_id: str, at: datetime) -> tuple[str, ...]:
            await both_asked.wait()
            return await super().people(team_id, at)

    schedules = [Meeting({"sales": [Shift("Tomas")]}), Meeting({"identity": []}, "PagerDuty", "it is down")]
    found = await triage_incident(
        BETWEEN,
        some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock(), schedules=schedules),
        history=HISTORY,
    )
    assert found.findings.owner is not None
    assert set(found.findings.owner.asked) == {
        AskedTeam("sales", "Sales", ("Tomas",)),
        AskedTeam("identity", "Identity", (), "PagerDuty"),
    }


async def test_a_team_that_turned_it_away_is_not_asked_again(triage: Triage) -> None:
    found = await triage(replace(BETWEEN, hops=(Hop("sales", "", "Ada", "", START),)))
    assert found.findings.owner is not None
    assert "sales" not in {team.team_id for team in found.findings.owner.asked}


async def test_every_vote_of_the_negotiation_is_kept_with_its_reason(triage: Triage) -> None:
    found = await triage(incident())
    assert found.findings.owner is not None
    assert {vote.voter for vote in found.findings.owner.votes} == {
        candidate.team_id for candidate in found.findings.owner.candidates
    }
    assert all(vote.choice == "sales" and vote.reason for vote in found.findings.owner.votes)


async def test_an_incident_whose_investigation_is_over_stays_so(triage: Triage) -> None:
    assert (await triage(replace(incident(), stage=Stage.DONE))).stage is Stage.DONE


async def test_a_schedule_that_cannot_be_read_keeps_nobody_waiting_and_is_named(store: FakePredictionStore) -> None:
    schedules = [FakeOnCall({"sales": []}, "PagerDuty", "it refuses the token")]
    found = await triage_incident(
        incident(),
        some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock(), schedules=schedules),
        history=HISTORY,
    )
    assert found.findings.owner is not None
    assert found.findings.owner.owner is not None
    assert (found.findings.owner.on_call, found.findings.owner.on_call_unknown) == ((), "PagerDuty")


async def test_who_is_on_call_now_is_shown_and_not_who_is_on_the_list(store: FakePredictionStore) -> None:
    schedules = [FakeOnCall({"sales": [Shift("Tomas")]})]
    found = await triage_incident(
        incident(),
        some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock(), schedules=schedules),
        history=HISTORY,
    )
    assert found.findings.owner is not None
    assert found.findings.owner.on_call == ("Tomas",)


async def test_what_a_teams_own_monitoring_shows_changes_the_owner_where_the_text_alone_misleads(
    store: FakePredictionStore,
) -> None:
    """Without a language model, and before anybody looked for the cause."""

    async def observe(of: Incident) -> Observations:
        both = [traffic("login"), traffic("shop"), errors("login", "token rejected", -8), errors("shop", "401", -3)]
        return observations(both, of=of)

    loud = incident(title="baskets fail, carts are rejected", service="")
    asked = partial(
        triage_incident,
        loud,
        ports=some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock()),
        history=IncidentHistory([]),
    )
    by_text, looked = await asked(), await asked(observe=observe)
    assert by_text.findings.owner is not None
    assert looked.findings.owner is not None
    assert by_text.findings.owner.candidates[0].team_id == "sales"
    assert looked.findings.owner.candidates[0].team_id == "identity"
    assert store.predictions[looked.findings.owner.prediction_id].engine == ENRICHED_ENGINE


async def test_a_team_that_turned_it_away_under_its_former_name_is_not_asked_again(store: FakePredictionStore) -> None:
    renamed = replace(SHOP, id="checkout", aliases=("sales",))
    away = replace(incident(), hops=(Hop("sales", "", "Ada", "", START),))
    found = await triage_incident(
        away, some_ports(teams=[renamed, LOGIN], store=store, clock=FakeClock()), history=HISTORY
    )
    assert found.findings.owner is not None
    assert "checkout" not in {candidate.team_id for candidate in found.findings.owner.candidates}


async def test_what_the_teams_said_before_it_was_sent_on_is_kept_and_told_after_what_they_say_now(
    store: FakePredictionStore,
) -> None:
    async def triaged(asked: Incident) -> Incident:
        return await triage_incident(
            asked, some_ports(teams=[SHOP, LOGIN], store=store, clock=FakeClock()), history=HISTORY
        )

    first = await triaged(await triaged(incident(title="baskets are slow, tokens are lost")))
    assert first.findings.owner is not None
    before = first.findings.owner.votes
    away = replace(first, hops=(Hop("sales", "", "Ada", "", START),))
    again = await triaged(await triaged(away))
    assert again.findings.owner is not None
    assert again.findings.owner.votes[: len(before)] == before
    now = again.findings.owner.votes[len(before) :]
    assert before
    assert {vote.hop for vote in before} == {0}
    assert {vote.hop for vote in now} == {1}
    assert "sales" not in {vote.voter for vote in now}
    told = format_votes(again)
    assert [each.startswith("Hop 1, round 1: ") for each in told] == [True] * len(now) + [False] * len(before)
    assert any(": Sales votes for " in each for each in told), "the team is no candidate any more, and keeps its name"


@pytest.mark.parametrize(("today", "stays"), [("berths", True), ("bookings", False)])
async def test_who_a_person_gave_it_to_stays_its_owner_as_long_as_there_is_such_a_team(
    store: FakePredictionStore, today: str, stays: bool
) -> None:
    said = owner(owner=TeamScore("berths", "Berths", 1.0))
    given = replace(incident().with_findings(owner=said), hops=(Hop("", "berths", "Ada", "", START),))
    teams = [SHOP, LOGIN, Team(today, "Today")]
    found = await triage_incident(given, some_ports(teams=teams, store=store, clock=FakeClock()), history=HISTORY)
    assert (found.findings.owner == said) is stays


async def test_where_a_new_team_owns_the_service_it_is_said_why_a_person_should_decide(
    store: FakePredictionStore,
) -> None:
    new = Team("baskets", "Baskets", services=frozenset({"shop"}))
    others = [replace(SHOP, services=frozenset()), LOGIN, new]
    found = await triage_incident(incident(), some_ports(teams=others, store=store, clock=FakeClock()), history=HISTORY)
    assert found.findings.owner is not None
    if found.findings.owner.owner is None:
        assert found.findings.owner.note.startswith("The service belongs to Baskets")
    else:
        assert found.findings.owner.owner.team_id == "baskets"


async def learned(embedder: FakeEmbedder) -> OwnerModel | None:
    embeddings = await embed_past_incidents(puzzles(), embedder)
    embedder.asked.clear()
    return await asyncio.to_thread(OwnerModel.fitted, puzzles(), embeddings)


async def test_an_incident_told_in_new_words_goes_to_the_team_that_they_mean(store: FakePredictionStore) -> None:
    embedder = FakeEmbedder(SENSES)
    rare = next(word for word in STRANGE_WORDS if SENSES[word] == 2)
    owners = await learned(embedder)

    async def asked(embedder: FakeEmbedder | None = None) -> Incident:
        found, history = incident(title=rare, service=""), IncidentHistory(puzzles())
        return await triage_incident(
            found, some_ports(teams=TEAMS, store=store, owners=owners, embedder=embedder), history=history
        )

    meant, said = await asked(embedder), await asked()
    assert meant.findings.owner is not None
    assert said.findings.owner is not None
    assert meant.findings.owner.candidates[0].team_id == TEAMS[2].id != said.findings.owner.candidates[0].team_id
    embedder.failing = True
    assert (await asked(embedder)).findings.owner == said.findings.owner


async def test_what_vectors_say_is_claimed_by_an_estimator_of_its_own(store: FakePredictionStore) -> None:
    embedder = FakeEmbedder(SENSES)
    triaged = await triage_incident(
        incident(),
        some_ports(teams=TEAMS, store=store, clock=FakeClock(), owners=await learned(embedder), embedder=embedder),
        history=IncidentHistory(puzzles()),
    )
    assert triaged.findings.owner is not None
    assert store.predictions[triaged.findings.owner.prediction_id].estimator_version == version_with(embedder.name)


async def test_an_incident_is_embedded_once_however_often_its_teams_look(store: FakePredictionStore) -> None:
    embedder = FakeEmbedder(SENSES)

    async def observe(of: Incident) -> Observations:
        return observations([traffic("login"), errors("login", "token rejected", -8)], of=of)

    await triage_incident(
        incident(),
        some_ports(
            teams=[*TEAMS, SHOP, LOGIN],
            store=store,
            clock=FakeClock(),
            owners=await learned(embedder),
            embedder=embedder,
        ),
        history=HISTORY,
        observe=observe,
    )
    assert len(embedder.asked) == 1
