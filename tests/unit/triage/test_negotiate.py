from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.confidence.calibrator import UNPROVEN, badge_for
from core.model.alert import Severity
from core.model.badge import Strength
from core.model.findings import PastIncident
from core.model.incident import Incident
from core.model.team import NOBODY, Team
from core.triage.candidates import DocumentMatch
from core.triage.managers import Enrichment, Owned, TriageEvidence, gather
from core.triage.negotiate import MIN_SHARE, evaluate_owner, judge
from core.triage.owner_model import IncidentHistory
from tests.fakes.incidents import bare_incident
from tests.fakes.triage import propose_owner

AT = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
BOARDING = Team("boarding", "Boarding", "## We own\n\nGates, kiosks, check-in.\n", frozenset({"check-in"}))
IDENTITY = Team("identity", "Identity", "## We own\n\nTokens, signing keys, JWKS.\n", frozenset({"identity"}))
FLEET = Team("fleet", "Fleet", "## We own\n\nVessels and positions.\n", frozenset({"tracker"}))
TEAMS = [BOARDING, IDENTITY, FLEET]
NOTHING = Enrichment()


def incident(title: str, service: str = "") -> Incident:
    return bare_incident(title, service=service)


def past(id_: str, title: str, owner: str, reassignments: Sequence[str] = ()) -> PastIncident:
    return PastIncident(id_, title, "", "", Severity.WARNING, AT, owner, reassignments=tuple(reassignments))


TOKENS = IncidentHistory(
    [
        past("INC-1", "tokens rejected with unknown kid", "identity", ["boarding"]),
        past("INC-2", "unknown kid in all tokens", "identity"),
        past("INC-3", "kiosk frozen on documents", "boarding"),
    ]
)
EMPTY = IncidentHistory([])


def test_the_owner_of_the_service_is_proposed_without_any_history() -> None:
    verdict = propose_owner(incident("something is wrong", "check-in"), TEAMS, EMPTY, NOTHING)
    assert verdict.owner is not None
    assert verdict.owner.team_id == "boarding"
    assert "owns service check-in" in verdict.owner.reasons


def test_similar_incidents_speak_for_their_owner_and_are_named() -> None:
    verdict = propose_owner(incident("unknown kid, tokens rejected"), TEAMS, TOKENS, NOTHING)
    assert verdict.owner is not None
    assert verdict.owner.team_id == "identity"
    assert "owned 2 of the 2 most similar incidents: INC-1, INC-2" in verdict.owner.reasons


def test_only_those_incidents_are_named_that_are_counted_among_the_most_similar() -> None:
    near = [past(f"INC-{number}", "unknown kid, tokens rejected", "identity") for number in range(3)]
    own = [past("INC-8", "unknown kid, tokens", "boarding"), past("INC-9", "unknown kid, tokens", "boarding")]
    far = [past("INC-10", "unknown kid on a far longer list of other troubles", "boarding")]
    verdict = propose_owner(
        incident("unknown kid, tokens rejected"), TEAMS, IncidentHistory([*far, *own, *near]), NOTHING
    )
    reasons = {candidate.team_id: candidate.reasons for candidate in verdict.candidates}
    assert "owned 3 of the 5 most similar incidents: INC-0, INC-1, INC-2" in reasons["identity"]
    assert "owned 2 of the 5 most similar incidents: INC-8, INC-9" in reasons["boarding"]


def test_a_team_that_passed_such_incidents_on_is_no_candidate_from_history() -> None:
    verdict = propose_owner(incident("unknown kid"), TEAMS, TOKENS, NOTHING)
    assert "boarding" not in {candidate.team_id for candidate in verdict.candidates}


def test_a_document_alone_can_name_the_owner() -> None:
    verdict = propose_owner(incident("positions of all vessels are old"), TEAMS, EMPTY, NOTHING)
    assert verdict.owner is not None
    assert verdict.owner.team_id == "fleet"


def test_the_measured_cause_outweighs_the_loud_symptom() -> None:
    symptom = incident("check-in kiosks and gates answer 401", "check-in")
    before = propose_owner(symptom, TEAMS, TOKENS, NOTHING)
    after = propose_owner(symptom, TEAMS, TOKENS, Enrichment({"identity": 0.9}, "unknown kid in JWKS"))
    assert before.owner is not None
    assert after.owner is not None
    assert (before.owner.team_id, after.owner.team_id) == ("boarding", "identity")
    assert "monitoring points at identity, which it owns" in after.owner.reasons


def test_a_weakly_located_cause_does_not_outweigh_everything_else() -> None:
    symptom = incident("check-in kiosks and gates answer slowly", "check-in")
    verdict = propose_owner(symptom, TEAMS, EMPTY, Enrichment({"identity": 0.1}))
    assert verdict.candidates[0].team_id == "boarding"


@pytest.mark.parametrize("title", ["marmalade", "vessels JWKS"])
def test_nobody_is_named_where_the_evidence_is_thin_or_divided(title: str) -> None:
    assert propose_owner(incident(title), TEAMS, EMPTY, NOTHING).owner is None


def test_the_nearest_candidates_are_given_where_nobody_is_named() -> None:
    verdict = propose_owner(incident("vessels JWKS"), TEAMS, EMPTY, NOTHING)
    assert {candidate.team_id for candidate in verdict.candidates} == {"fleet", "identity"}


def test_without_teams_nobody_is_named() -> None:
    assert propose_owner(incident("anything", "check-in"), [], TOKENS, NOTHING).candidates == ()


def test_the_owner_of_a_past_incident_that_is_no_team_any_more_has_no_vote() -> None:
    history = IncidentHistory([past("INC-1", "unknown kid", "dissolved"), past("INC-2", "unknown kid", "identity")])
    verdict = propose_owner(incident("unknown kid"), TEAMS, history, NOTHING)
    assert {candidate.team_id for candidate in verdict.candidates} == {"identity"}


def test_shares_are_ordered_and_sum_to_at_most_one() -> None:
    teams = [Team(f"t{n}", f"T{n}", f"## We own\n\nword{n} common\n", frozenset({f"s{n}"})) for n in range(12)]
    history = IncidentHistory([past(f"I{n}", f"word{n} again", f"t{n % 12}") for n in range(60)])
    text = " ".join(f"word{n}" for n in range(12))
    verdict = propose_owner(incident(text, "s3"), teams, history, Enrichment({"s4": 0.8, "s5": 0.7}, "word6"))
    scores = [candidate.score for candidate in verdict.candidates]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == 5
    assert 0 < sum(scores) <= 1


def test_a_well_supported_owner_has_more_evidence_than_a_thin_one() -> None:
    strong = evaluate_owner(propose_owner(incident("tokens rejected, unknown kid", "identity"), TEAMS, TOKENS, NOTHING))
    thin = evaluate_owner(propose_owner(incident("vessels JWKS"), TEAMS, EMPTY, NOTHING))
    assert strong.coe > thin.coe
    assert strong.rce > thin.rce


def test_an_owner_of_a_service_that_is_strange_to_all_is_unsure_by_texts_alone() -> None:
    found = judged_strength("unknown kid, tokens rejected", "parking", TOKENS)
    assert found is Strength.WEAK
    assert judged_strength("unknown kid, tokens rejected", "", TOKENS) is Strength.MODERATE
    assert judged_strength("unknown kid, tokens rejected", "identity", TOKENS) is Strength.MODERATE


def test_texts_count_as_usual_for_a_service_of_a_past_incident_or_a_document() -> None:
    parked = replace(past("INC-9", "unknown kid, tokens rejected", "identity"), service="parking")
    assert judged_strength("unknown kid", "parking", IncidentHistory([parked])) is Strength.MODERATE
    assert judged_strength("unknown kid in JWKS", "JWKS", TOKENS) is Strength.MODERATE


def test_a_measured_cause_counts_as_usual_for_a_service_that_is_strange_to_all() -> None:
    located = Enrichment({"identity": 1.0})
    assert judged_strength("unknown kid", "parking", TOKENS, located) is Strength.MODERATE


def test_a_strange_service_without_evidence_for_any_team_is_unsure() -> None:
    assert judged_strength("xyzzy", "parking", EMPTY) is Strength.WEAK


def judged_strength(title: str, service: str, history: IncidentHistory, enrichment: Enrichment = NOTHING) -> Strength:
    evaluation = evaluate_owner(propose_owner(incident(title, service), TEAMS, history, enrichment))
    return badge_for(evaluation, None, scale=UNPROVEN).strength


def test_every_manager_votes_once_and_says_why() -> None:
    verdict = propose_owner(incident("tokens rejected, unknown kid in positions"), TEAMS, TOKENS, NOTHING)
    assert {vote.voter for vote in verdict.votes} == {candidate.team_id for candidate in verdict.candidates}
    assert all(vote.choice == "identity" and vote.reason.startswith("Identity: ") for vote in verdict.votes)


def test_a_manager_with_nearly_as_good_a_claim_votes_for_its_own_team() -> None:
    verdict = propose_owner(incident("vessels JWKS"), TEAMS, EMPTY, NOTHING)
    assert {(vote.voter, vote.choice) for vote in verdict.votes} == {("fleet", "fleet"), ("identity", "identity")}


def test_a_team_that_turned_it_away_is_not_asked_again() -> None:
    verdict = propose_owner(incident("unknown kid in tokens"), TEAMS, TOKENS, NOTHING, removed=frozenset({"identity"}))
    assert "identity" not in {candidate.team_id for candidate in verdict.candidates}


def test_past_incidents_of_a_renamed_or_merged_team_count_for_its_successor() -> None:
    history = IncidentHistory([past("INC-1", "unknown kid", "login"), past("INC-2", "kid rejected", "keys")])
    successor = Team("identity", "Identity", aliases=("login", "keys"))
    verdict = propose_owner(incident("unknown kid rejected"), [BOARDING, successor], history, NOTHING)
    assert verdict.candidates[0].team_id == "identity"
    assert "owned 2 of the 2 most similar incidents" in verdict.candidates[0].reasons[0]


def test_a_team_that_was_split_off_does_not_take_the_past_of_the_one_that_still_has_its_name() -> None:
    history = IncidentHistory([past("INC-1", "unknown kid", "identity"), past("INC-2", "kid rejected", "identity")])
    split_off = Team("keys", "Keys", aliases=("identity",))
    verdict = propose_owner(incident("unknown kid rejected"), [IDENTITY, split_off], history, NOTHING)
    assert [candidate.team_id for candidate in verdict.candidates] == ["identity"]


def test_what_a_team_passed_on_counts_against_it_also_where_it_was_called_otherwise_then() -> None:
    renamed = Team("harbour", "Harbour", aliases=("boarding",))

    def share(passed_on_by: list[str]) -> float:
        first = past("INC-1", "unknown kid in all tokens", "identity", passed_on_by)
        history = IncidentHistory([first, past("INC-2", "unknown kid in a token", "harbour")])
        return (
            gather(incident("unknown kid in all tokens"), [renamed, IDENTITY], history, NOTHING).votes["harbour"].share
        )

    assert share(["boarding"]) == share(["harbour"]) < share([])


def test_an_incident_like_those_that_were_nobodys_is_nobodys() -> None:
    history = IncidentHistory([past(f"INC-{n}", "unknown kid", NOBODY) for n in range(3)])
    verdict = propose_owner(incident("unknown kid", "identity"), TEAMS, history, NOTHING)
    assert verdict.owner is None
    assert verdict.candidates[0].team_id == "identity"


def test_a_few_that_were_nobodys_do_not_outvote_their_owners_others() -> None:
    history = IncidentHistory([*TOKENS.incidents, past("INC-9", "unknown kid", NOBODY)])
    verdict = propose_owner(incident("unknown kid, tokens rejected", "identity"), TEAMS, history, NOTHING)
    assert verdict.owner is not None
    assert verdict.owner.team_id == "identity"


def test_a_new_team_that_owns_the_service_is_not_outvoted_by_a_past_that_it_had_no_part_in() -> None:
    new = Team("doors", "Doors", services=frozenset({"gates"}))
    history = IncidentHistory([past(f"INC-{n}", "gates are stuck", "boarding") for n in range(9)])
    verdict = propose_owner(incident("gates are stuck", "gates"), [*TEAMS, new], history, NOTHING)
    assert verdict.owner is None
    assert {candidate.team_id for candidate in verdict.candidates[:2]} == {"boarding", "doors"}
    located = propose_owner(
        incident("gates are stuck", "gates"), [*TEAMS, new], history, Enrichment({"check-in": 1.0}, "")
    )
    assert located.owner is not None
    assert located.owner.team_id == "boarding"


def test_once_a_new_team_had_an_incident_its_past_counts_like_any_others() -> None:
    new = Team("doors", "Doors", services=frozenset({"gates"}))
    history = IncidentHistory([past("INC-1", "gates are stuck", "doors"), past("INC-2", "kiosk frozen", "boarding")])
    verdict = propose_owner(incident("gates are stuck", "gates"), [*TEAMS, new], history, NOTHING)
    assert verdict.owner is not None
    assert verdict.owner.team_id == "doors"


# --- unanimous votes ---------------------------------------------------------------------------------------------------


def thin_evidence(title: str = "positions are old", service: str = "tracker") -> TriageEvidence:
    """Every argument is for one team, and none is strong."""
    found = gather(incident(title, service), TEAMS, EMPTY, NOTHING)
    return replace(
        found, owners={"fleet": Owned("tracker", 0.2)}, learned={"fleet": 0.3, "boarding": 0.1, "elsewhere": 0.6}
    )


def test_a_unanimous_vote_of_those_who_know_who_owns_the_service_decides() -> None:
    verdict = judge(thin_evidence(), ("fleet", "boarding", "identity"))
    assert verdict.candidates[0].score < MIN_SHARE
    assert {vote.choice for vote in verdict.votes} == {"fleet"}
    assert verdict.owner == verdict.candidates[0]


def test_a_unanimous_vote_on_texts_alone_decides_only_in_a_later_round() -> None:
    texts = replace(thin_evidence(), owners={}, fits={"fleet": DocumentMatch(0.1, ("vessels",))})
    group = ("fleet", "boarding", "identity")
    first, later = judge(texts, group), judge(texts, group, round_number=2)
    assert first.candidates[0].score < MIN_SHARE
    assert {vote.choice for vote in (*first.votes, *later.votes)} == {"fleet"}
    assert (first.owner, later.owner) == (None, later.candidates[0])


def test_one_dissenting_vote_leaves_the_owner_open_if_the_evidence_is_thin() -> None:
    fits = {"fleet": DocumentMatch(0.1, ("vessels",)), "boarding": DocumentMatch(0.1, ("gates",))}
    learned = {"fleet": 0.3, "boarding": 0.28, "elsewhere": 0.42}
    torn = replace(thin_evidence(), owners={}, fits=fits, learned=learned)
    verdict = judge(torn, ("fleet", "boarding", "identity"), round_number=2)
    assert {vote.choice for vote in verdict.votes} == {"fleet", "boarding"}
    assert verdict.owner is None


def test_an_abstention_is_no_vote_for_the_others() -> None:
    verdict = judge(thin_evidence(), ("fleet", "boarding", "identity"), silent={"boarding": "it timed out"})
    assert verdict.owner is None


def test_one_manager_alone_is_not_unanimous() -> None:
    assert judge(thin_evidence(), ("fleet",)).owner is None


def test_where_similar_incidents_belonged_to_nobody_no_vote_decides() -> None:
    assert judge(replace(thin_evidence(), nobody=0.9), ("fleet", "boarding", "identity")).owner is None
