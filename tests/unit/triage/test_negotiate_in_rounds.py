from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from core.model.errors import ToolUnavailable
from core.model.incident import Incident
from core.model.team import Team
from core.triage.managers import Enrichment, TeamFinding, TriageEvidence, gather
from core.triage.negotiate import MAX_ROUNDS, Look, Settlement, negotiate_in_rounds
from core.triage.owner_model import IncidentHistory
from tests.fakes.outage import incident as outage

EMPTY = IncidentHistory([])


def team(name: str, words: str, *services: str) -> Team:
    return Team(name, name.title(), f"## We own\n\n{words}\n", frozenset(services))


# Two that claim the words of the incident alike, and others that claim one each.
TEAMS = (
    team("alpha", "apples pears"),
    team("bravo", "apples pears"),
    team("charlie", "plums"),
    team("delta", "plums"),
    team("echo", "plums"),
    team("foxtrot", "plums", "press"),
    team("golf", "plums"),
)
SPLIT = outage(service="", title="apples pears plums")


def negotiating(
    look: Look, incident: Incident = SPLIT, teams: tuple[Team, ...] = TEAMS, enrichment: Enrichment | None = None
) -> asyncio.Task[Settlement]:
    async def gathered(known: Enrichment) -> TriageEvidence:
        return gather(incident, teams, EMPTY, known)

    return asyncio.ensure_future(negotiate_in_rounds(gathered, enrichment or Enrichment(), look))


def seeing(findings: Mapping[str, TeamFinding | Exception], asked: list[str] | None = None) -> Look:
    async def look(team: Team) -> TeamFinding:
        if asked is not None:
            asked.append(team.id)
        found = findings.get(team.id, TeamFinding())
        if isinstance(found, Exception):
            raise found
        return found

    return look


async def test_a_clear_majority_ends_the_negotiation_in_the_first_round() -> None:
    settled = await negotiating(seeing({}), outage(service="press", title="it leaks"))
    assert settled.verdict.owner is not None
    assert settled.verdict.owner.team_id == "foxtrot"
    assert {vote.round for vote in settled.verdict.votes} == {1}


async def test_without_a_majority_teams_that_nobody_votes_for_make_room_for_others_whose_monitoring_decides() -> None:
    asked: list[str] = []
    settled = await negotiating(seeing({"foxtrot": TeamFinding({"press": 0.9}, "press jammed")}, asked))
    assert asked[:5] == ["alpha", "bravo", "charlie", "delta", "echo"]
    assert sorted(asked[5:]) == ["foxtrot", "golf"]
    assert settled.verdict.owner is not None
    assert settled.verdict.owner.team_id == "foxtrot"
    assert "its own monitoring shows trouble that begins in press" in settled.verdict.owner.reasons
    assert {vote.round for vote in settled.verdict.votes} == {1, 2}
    assert {vote.voter_name for vote in settled.verdict.votes} == {each.name for each in TEAMS}
    assert settled.enrichment == Enrichment(text="press jammed", observed={"press": 0.9})


async def test_what_one_manager_found_is_read_by_all_in_the_same_round() -> None:
    settled = await negotiating(seeing({"charlie": TeamFinding({}, "pears pears apples")}), teams=TEAMS[1:4])
    assert "pears pears apples" in settled.enrichment.text
    assert settled.evidence.fits["bravo"].score > settled.evidence.fits["charlie"].score


async def test_nobody_is_asked_twice_and_a_round_that_would_repeat_is_not_held() -> None:
    asked: list[str] = []
    settled = await negotiating(seeing({}, asked), teams=TEAMS[:2])
    assert settled.verdict.owner is None
    assert asked == ["alpha", "bravo"]
    assert {vote.round for vote in settled.verdict.votes} == {1}


async def test_a_manager_that_fails_abstains_says_why_and_is_asked_again_five_times_at_most() -> None:
    asked: list[str] = []
    down = ToolUnavailable("Loki does not answer")
    settled = await negotiating(seeing({"bravo": down}, asked), teams=TEAMS[:2])
    assert settled.verdict.owner is None
    assert asked.count("bravo") == MAX_ROUNDS
    assert asked.count("alpha") == 1
    abstained = [vote for vote in settled.verdict.votes if vote.voter == "bravo"]
    assert [(vote.round, vote.choice) for vote in abstained] == [(number, None) for number in range(1, 6)]
    assert abstained[0].reason == "did not answer: Loki does not answer"


async def test_an_abstention_counts_as_a_member_of_the_group() -> None:
    alone = await negotiating(seeing({}), outage(service="press", title="plums"), teams=(TEAMS[0], TEAMS[5]))
    assert alone.verdict.owner is not None
    down = seeing({"foxtrot": ToolUnavailable("down")})
    settled = await negotiating(down, outage(service="press", title="apples plums"), teams=(TEAMS[0], TEAMS[5]))
    assert settled.verdict.owner is None


async def test_where_no_monitoring_can_be_read_all_vote_by_what_is_known_without_it() -> None:
    everybody = {each.id: ToolUnavailable("down") for each in TEAMS}
    settled = await negotiating(seeing(everybody), outage(service="press", title="it leaks"))
    assert settled.verdict.owner is not None
    assert settled.verdict.owner.team_id == "foxtrot"


async def test_managers_look_at_the_same_time() -> None:
    together = asyncio.Barrier(2)

    async def look(_: Team) -> TeamFinding:
        await together.wait()
        return TeamFinding()

    async with asyncio.timeout(5):
        await negotiating(look, teams=TEAMS[:2])


async def test_without_teams_nobody_is_named() -> None:
    settled = await negotiating(seeing({}), teams=())
    assert settled.verdict.owner is None
    assert settled.verdict.votes == ()


async def test_the_cause_that_was_measured_outweighs_what_a_team_sees_of_itself() -> None:
    teams = (team("shop", "baskets", "shop"), team("login", "tokens", "login"))
    loud = seeing({"shop": TeamFinding({"shop": 1.0}, "401 everywhere")})
    located = Enrichment({"login": 0.9}, "the key was rotated")
    settled = await negotiating(loud, outage(service="shop", title="baskets fail"), teams, located)
    assert settled.verdict.owner is not None
    assert settled.verdict.owner.team_id == "login"


async def test_what_is_not_foreseen_is_no_abstention() -> None:
    with pytest.raises(ZeroDivisionError):
        await negotiating(seeing({"alpha": ZeroDivisionError()}))
