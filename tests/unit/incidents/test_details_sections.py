"""The sections of an incident's details: what each lists, and what is left out where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.incidents.incident_details import (
    details_view,
    format_votes,
    gaps_by_tool,
    incident_details,
    owner_story,
)
from core.model.findings import Evidence, EvidenceKind, Gap, GapReason, Responsibility, TimelineEntry, Vote
from core.model.incident import Hop, Incident
from core.model.language_model import Action, Ending, Step
from tests.samples import START, alert, explained_incident, explanation, hypothesis, incident, owner
from tests.samples.parts import TRAJECTORY


def texts(of: Incident, title: str) -> list[str]:
    return [entry.text for section in incident_details(of) if section.title == title for entry in section.entries]


def titles(of: Incident) -> list[str]:
    return [section.title for section in incident_details(of)]


def test_only_sections_that_say_something_are_there_in_this_order() -> None:
    assert titles(incident()) == ["What the alert says"]
    cause = hypothesis().cause.rstrip(".")
    assert titles(explained_incident()) == [
        "What the alert says",
        "Why this owner",
        f"1. {cause}",
        f"2. {cause}",
        "Ruled out",
        "Similar incidents",
        "Timeline (UTC)",
    ]


def test_reply_in_thread_has_sections_or_says_that_nothing_is_known() -> None:
    known = explained_incident()
    assert details_view(known).parts == incident_details(known)
    assert [line.text for line in details_view(incident(alerts=())).lines] == ["Nothing is known yet."]


def test_details_are_marked_as_those_of_model_only_if_model_found_cause() -> None:
    assert not details_view(explained_incident()).by_model
    assert not details_view(incident()).by_model
    assert details_view(explained_incident(explanation=explanation(engine="claude"))).by_model
    assert details_view(explained_incident(explanation=explanation(engine="qwen3-32b"))).by_model


def test_unreadable_tools_are_counted_by_incident_the_most_frequent_first() -> None:
    late, refused = GapReason.TIMED_OUT, GapReason.REFUSED
    gaps = [
        (Gap("loki", late), Gap("loki", late, "again"), Gap("ci", GapReason.NO_FAILURE)),
        (Gap("loki", late), Gap("k8s", refused)),
        (Gap("loki", refused),),
    ]
    counted = gaps_by_tool([incident(), *(incident(explanation=explanation(gaps=each)) for each in gaps)])
    assert [(each.tool, each.incidents, each.text) for each in counted] == [
        ("loki", 3, "timed out 2, access refused 1"),
        ("k8s", 1, "access refused 1"),
    ]


def test_the_first_three_alerts_are_told_with_what_their_texts_add_to_the_title() -> None:
    alerts = [
        replace(alert(number), name=f"Alert{number}", summary="Sum", description=text)
        for number, text in enumerate(("More", "Sum", "", "Fourth"), 1)
    ]
    shown = incident(alerts=tuple(alerts), title="Sum")
    section = incident_details(shown)[0]
    assert [entry.text for entry in section.entries] == ["More", "", ""]
    assert [entry.source.text for entry in section.entries if entry.source] == ["Alert1", "Alert2", "Alert3"]
    assert texts(replace(shown, title="other"), "What the alert says") == ["Sum More", "Sum", "Sum"]


def test_the_owner_is_told_with_its_reasons_and_what_people_did_since() -> None:
    hops = (
        Hop("payments", "bookings", "Ada", "a booking fails", START),
        Hop("", "payments", "Bo", "", START),
        Hop("stock", "", "Cy", "", START),
    )
    shown = incident(owner=owner(), hops=hops)
    assert owner_story(shown) == (
        "It runs payment-gateway.",
        "It fixed 11 of 12 similar incidents.",
        "Not Payments's, says Ada, given to Bookings: a booking fails",
        "Sent on, says Bo, given to Payments",
        "Not stock's, says Cy",
    )
    assert owner_story(incident()) == ()


def vote(voter: str, choice: str, reason: str = "", *, hop: int = 0, round_: int = 1) -> Vote:
    return Vote(voter=voter, choice=choice, reason=reason, round=round_, hop=hop)


def test_votes_are_listed_the_last_round_first_and_each_reason_once() -> None:
    votes = (
        vote("payments", "payments", "It runs payment-gateway. Payments: the pool is ours"),
        vote("bookings", "payments", "the pool is ours; For Bookings: no booking fails", round_=2),
        vote("stock", "", ""),
    )
    lines = format_votes(incident(owner=owner(votes=votes)))
    assert lines == (
        "Round 2: Bookings votes for Payments (the pool is ours; for Bookings: no booking fails)",
        "Round 1: Payments votes for Payments",
        "Round 1: stock votes for nobody",
    )
    one_round = owner(votes=(vote("payments", "payments", "For Payments: a new reason"),))
    assert format_votes(incident(owner=one_round)) == ("Payments votes for Payments (a new reason)",)
    hops = owner(votes=(vote("payments", "payments", hop=2), vote("bookings", "bookings", hop=1, round_=3)))
    assert format_votes(incident(owner=hops)) == (
        "Hop 2, round 1: Payments votes for Payments",
        "Hop 1, round 3: Bookings votes for Bookings",
    )


def test_a_cause_lists_who_found_it_what_to_do_and_its_evidence() -> None:
    against = Evidence(EvidenceKind.METRIC, "till", "the rate is flat", START)
    cause = replace(
        hypothesis(),
        found_by="model",
        solution="Raise it.",
        contradicting=(against,),
        responsibility=Responsibility.OWN_CODE,
    )
    title = f"1. {cause.cause.rstrip('.')}"
    section = next(
        each for each in incident_details(incident(explanation=explanation(hypotheses=(cause,)))) if each.title == title
    )
    entries = [entry.text for entry in section.entries]
    assert entries[:2] == ["Found by the language model: model", "Solution proposed by the language model: Raise it."]
    assert [entry.quote for entry in section.entries[2:5]] == [
        *(each.quote for each in cause.evidence),
        against.quote,
    ]
    assert entries[4].startswith("Evidence against it: ")
    assert entries[5:] == [
        f"Would disprove it: {cause.disproof}",
        f"Next check: {cause.next_check}",
        f"Where to fix it: {Responsibility.OWN_CODE}",
    ]
    assert section.noun == "lines of evidence"
    assert section.badge == explanation().badge


def test_three_causes_are_told_whole_and_the_others_counted() -> None:
    many = explanation(hypotheses=tuple(hypothesis(number) for number in range(1, 6)))
    assert texts(incident(explanation=many), "Other causes") == ["and 2 more hypotheses"]
    three = explanation(hypotheses=many.hypotheses[:3])
    assert texts(incident(explanation=three), "Other causes") == []
    none = explanation(hypotheses=())
    assert texts(incident(explanation=none), "No cause found") == ["Nothing that I read explains this incident."]


def test_the_steps_of_a_model_are_listed_without_its_refused_replies_which_are_counted() -> None:
    good = Step("", Action("It looks small.", "read_logs", {}), "", "obs_1")
    bad = replace(good, fault="no such tool")

    def steps(**fields: object) -> list[str]:
        found = explanation(trajectory=replace(TRAJECTORY, **fields))
        return texts(incident(explanation=found), "Steps of the language model")

    assert steps(steps=(good,)) == [good.summary]
    assert steps(steps=(good, bad)) == [good.summary, "Replies that could not be used: 1"]
    assert steps(steps=(bad, bad)) == ["Replies that could not be used: 2"]
    assert steps(steps=(), finding=None)[0] == f"It came to no finding: {Ending.FINALISED}."


def test_what_was_not_read_is_told_apart_from_builds_that_passed_and_each_once() -> None:
    gaps = (
        Gap("ci", GapReason.NO_FAILURE, "run 2 passed", frozenset({"builds"})),
        Gap("loki", GapReason.TIMED_OUT, "", frozenset({"logs"})),
        Gap("loki", GapReason.TIMED_OUT, "", frozenset({"logs"})),
    )
    shown = incident(explanation=explanation(gaps=gaps))
    assert texts(shown, "No failed build") == ["run 2 passed"]
    assert texts(shown, "Not read") == [gaps[1].text]


def test_the_timeline_has_its_times() -> None:
    timeline = (TimelineEntry(START, "it fires"), TimelineEntry(START + timedelta(minutes=1), "it ends"))
    section = next(
        each
        for each in incident_details(incident(explanation=explanation(timeline=timeline)))
        if each.title.startswith("Timeline")
    )
    assert [(entry.at, entry.text) for entry in section.entries] == [(each.at, each.text) for each in timeline]
