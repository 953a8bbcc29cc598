"""The parts of an incident that each audience may read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.readable import note_readers, readable, visible
from core.incidents.thread_notes import DENIED
from core.model.conversation import PUBLIC, Audience, Channel, Place, Placement, Platform
from core.model.findings import Evidence, EvidenceKind, Origin, Relation, RelationKind, Runbook, ThreadNote, Vote
from core.model.incident import Filed, Filing, FilingKind, Hop, Incident, Resolution
from tests.cases import every_case
from tests.samples import (
    CALIBRATED,
    START,
    alert,
    citation,
    explanation,
    hypothesis,
    incident,
    owner,
)
from tests.samples.parts import STRONG, TRAJECTORY, model_s

CHANNELS = [
    Channel("incidents", {Platform.SLACK: "C0INC"}),
    Channel("team", {Platform.SLACK: "C0TEAM"}, private=True),
    Channel("heads", {Platform.SLACK: "C0HEADS"}, private=True),
]
TEAM = Audience(frozenset({PUBLIC, "channel:team"}), frozenset({"channel:team"}))
HEADS = Audience(frozenset({PUBLIC, "channel:heads"}), frozenset({"channel:heads"}))
OUTSIDERS = Audience(
    frozenset({"channel:team"}), frozenset({"channel:team"})
)  # of a channel with people of another company
OF_TEAM = ("channel:team",)


def in_places(*channels: str, **fields: object) -> Incident:
    first, *others = (Place(Platform.SLACK, channel) for channel in channels)
    return incident(placement=Placement(first, tuple(others)), **fields)


# --- who may see it ---------------------------------------------------------------------------------------------------


def test_incident_of_private_channel_is_seen_by_its_members_alone() -> None:
    public, private = in_places("C0INC"), replace(in_places("C0TEAM"), id="incident-2")
    both = [public, private]
    assert [each.id for each in visible(both, TEAM, CHANNELS)] == [public.id, private.id]
    assert [each.id for each in visible(both, HEADS, CHANNELS)] == [public.id]


# --- the words of people ----------------------------------------------------------------------------------------------


def noted(readers: tuple[str, ...]) -> Incident:
    """An incident with a remark, a rejection, a draft and evidence that were said to these readers."""
    note = ThreadNote("asha", "It is the pool.", START, readers)
    said = Evidence(EvidenceKind.NOTE, "asha", note.text, readers=readers)
    cause = replace(hypothesis(), evidence=(*hypothesis().evidence, said), contradicting=(said,))
    draft = Filing("tracker", FilingKind.ISSUE, "Pool", note.text, "asha", "press-1", START, START, readers=readers)
    ruled_out = ("Deployment 11.2: it calls nothing.", f"Deployment 11.3: {DENIED}.")
    return in_places(
        "C0INC",
        "C0TEAM",
        notes=(note,),
        hops=(Hop("payments", "bookings", "asha", "Ours is fine.", START, readers),),
        filings=(draft, replace(draft, target="wiki", filed=Filed("WIKI-1", "https://wiki.example/1"))),
        explanation=explanation(hypotheses=(cause,), ruled_out=ruled_out, rechecked_after=note),
    )


def test_words_said_in_private_are_hidden_from_those_outside() -> None:
    seen = readable(noted(OF_TEAM), HEADS, CHANNELS)
    assert seen.findings.explanation is not None
    [cause] = seen.findings.explanation.hypotheses
    assert (seen.notes, seen.findings.explanation.rechecked_after, cause.contradicting) == ((), None, ())
    assert cause.evidence == hypothesis().evidence
    assert seen.findings.explanation.ruled_out == ("Deployment 11.2: it calls nothing.",)
    assert [(hop.turned_away, hop.given_to, hop.reason) for hop in seen.hops] == [("payments", "bookings", "")]
    assert [each.target for each in seen.filings] == ["wiki"]


@pytest.mark.parametrize("readers", [OF_TEAM, (PUBLIC,)])
def test_words_said_in_private_are_read_by_those_who_heard_them(readers: tuple[str, ...]) -> None:
    whole = noted(readers)
    seen = readable(whole, TEAM, CHANNELS)
    assert (seen.notes, seen.hops, seen.filings) == (whole.notes, whole.hops, whole.filings)
    assert seen.findings.explanation is not None
    assert whole.findings.explanation is not None
    assert seen.findings.explanation.ruled_out == whole.findings.explanation.ruled_out
    assert seen.findings.explanation.rechecked_after == whole.notes[0]
    assert seen.findings.explanation.hypotheses == whole.findings.explanation.hypotheses


RESOLUTION = Resolution("The pool.", "Raised it.", "payments", {"root_cause": OF_TEAM, "fix": (PUBLIC,)})


def test_note_on_end_is_hidden_field_by_field_from_those_outside() -> None:
    ended = in_places("C0INC", resolution=RESOLUTION)
    assert readable(ended, HEADS, CHANNELS).resolution == replace(RESOLUTION, root_cause="")
    assert readable(ended, TEAM, CHANNELS).resolution == RESOLUTION


def test_note_on_end_of_unknown_readers_is_for_those_of_every_place() -> None:
    ended = in_places("C0INC", "C0TEAM", resolution=RESOLUTION)
    assert readable(ended, HEADS, CHANNELS).resolution == replace(RESOLUTION, root_cause="", owner="")
    assert readable(ended, TEAM, CHANNELS).resolution == RESOLUTION


def test_note_on_end_of_which_nothing_may_be_read_is_no_note() -> None:
    ended = in_places("C0INC", resolution=Resolution("The pool.", readers={"root_cause": OF_TEAM}))
    assert readable(ended, HEADS, CHANNELS).resolution is None
    assert readable(in_places("C0INC"), HEADS, CHANNELS).resolution is None


def test_note_that_came_with_alert_is_for_all_who_see_incident() -> None:
    told = in_places(
        "C0INC",
        "C0TEAM",
        alerts=(replace(alert(), note="root cause: The pool."), alert(2)),
        resolution=Resolution("The pool.", "Raised it."),
    )
    assert set(note_readers(told, CHANNELS)) == {"fix"}
    assert readable(told, HEADS, CHANNELS).resolution == Resolution("The pool.")


# --- quotations -------------------------------------------------------------------------------------------------------

PAST = Evidence(EvidenceKind.PAST_INCIDENT, "INC-0042", "The pool was sized for staging.")
PART = Relation(RelationKind.MAY_BE_PART_OF, "incident-0", "The gateway is slow")


def investigated(**fields: object) -> Incident:
    """An incident whose investigation could quote what the team and everybody may read."""
    cause = replace(hypothesis(), origin=Origin.CHANGE, evidence=(*hypothesis().evidence, PAST), contradicting=(PAST,))
    usual = {
        "basis": (PUBLIC, "channel:team"),
        "explanation": explanation(hypotheses=(cause,), trajectory=TRAJECTORY),
        "owner": owner(votes=(Vote(1, "payments", "payments", "Ours."),), precedents=explanation().similar),
        "runbook": Runbook("https://handbook.example/pool", citation(), "Raise it.", "pool raise"),
        "relations": (PART,),
    }
    return in_places("C0INC", **(usual | fields))


def test_quotations_are_hidden_from_those_who_may_not_read_every_source() -> None:
    seen = readable(investigated(), HEADS, CHANNELS)
    found = seen.findings
    assert found.explanation is not None
    assert found.owner is not None
    assert found.explanation.hypotheses == (replace(hypothesis(), origin=Origin.CHANGE),)
    assert (found.explanation.similar, found.explanation.trajectory, found.owner.precedents) == ((), None, ())
    assert found.runbook == Runbook("https://handbook.example/pool")
    assert seen.relations == ()


def test_all_is_quoted_to_those_who_may_read_every_source() -> None:
    assert readable(investigated(), TEAM, CHANNELS) == investigated()


def test_reasons_for_owner_are_hidden_from_guests() -> None:
    seen = readable(investigated(basis=()), OUTSIDERS, CHANNELS)
    proposal = seen.findings.owner
    assert proposal is not None
    assert proposal.owner is not None
    assert (proposal.owner.team_id, proposal.owner.score, proposal.owner.reasons) == ("payments", 0.8, ())
    assert [(each.team_id, each.reasons) for each in proposal.candidates] == [("payments", ()), ("bookings", ())]
    assert proposal.votes == ()
    assert seen.relations == ()
    assert readable(in_places("C0INC"), OUTSIDERS, CHANNELS).findings.owner is None


def test_runbook_without_address_is_hidden_with_its_quotation() -> None:
    seen = readable(investigated(runbook=Runbook("", citation(), "Raise it.")), HEADS, CHANNELS)
    assert seen.findings.runbook is None


def test_basis_that_was_not_recorded_is_that_of_places() -> None:
    here = replace(investigated(basis=None), placement=in_places("C0TEAM").placement)
    assert readable(here, HEADS, CHANNELS).findings.runbook == Runbook("https://handbook.example/pool")
    everything = Audience(frozenset({PUBLIC, "channel:team", "channel:slack:C0TEAM"}), frozenset({"channel:team"}))
    assert readable(here, everything, CHANNELS) == here


OWN = replace(
    hypothesis(),
    origin=Origin.CHANGE,
    evidence=(),
    solution="Do as in INC-0042.",
    badge=STRONG,
    prediction_id="cause-2",
)


def test_cause_of_model_that_could_read_everything_is_a_quotation() -> None:
    both = explanation(hypotheses=(model_s(), OWN), badge=CALIBRATED, trajectory=TRAJECTORY)
    seen = readable(investigated(explanation=both), HEADS, CHANNELS).findings.explanation
    assert seen is not None
    assert seen.hypotheses == (replace(OWN, solution=""),)
    assert (seen.badge, seen.prediction_id) == (STRONG, "cause-2")


def test_own_first_cause_keeps_its_badge_without_that_of_model() -> None:
    both = explanation(hypotheses=(OWN, model_s()), badge=CALIBRATED, trajectory=TRAJECTORY)
    seen = readable(investigated(explanation=both), HEADS, CHANNELS).findings.explanation
    assert seen is not None
    assert seen.hypotheses == (replace(OWN, solution=""),)
    assert (seen.badge, seen.prediction_id) == (CALIBRATED, "cause-1")


@every_case("origin", sorted(set(Origin) - {Origin.OTHER}))
def test_cause_of_every_kind_that_rules_find_is_kept(origin: Origin) -> None:
    both = explanation(hypotheses=(replace(OWN, origin=origin), model_s()), trajectory=TRAJECTORY)
    seen = readable(investigated(explanation=both), HEADS, CHANNELS).findings.explanation
    assert seen is not None
    assert [each.origin for each in seen.hypotheses] == [origin]


def test_nothing_is_left_of_causes_of_model_alone() -> None:
    alone = explanation(hypotheses=(model_s(),), badge=CALIBRATED, trajectory=TRAJECTORY)
    seen = readable(investigated(explanation=alone), HEADS, CHANNELS).findings.explanation
    assert seen is not None
    assert (seen.hypotheses, seen.badge, seen.prediction_id) == ((), None, None)
