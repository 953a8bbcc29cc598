"""Each line of an incident's message, in each state that it tells apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.incident_layout import CAUSE, NEXT, OWNER
from core.incidents.incident_view import (
    claimed_owner,
    format_duration,
    format_owner,
    incident_view,
    page_claim,
    parts_counted,
)
from core.model.alert import Acknowledgement, AlertStatus, Severity
from core.model.badge import Badge, Strength
from core.model.findings import PageJudgement, Relation, RelationKind, Runbook
from core.model.incident import Incident, IncidentState, Silenced, Stage
from core.model.message_view import Line, Link, MessageView, Mood
from core.model.messages import IncidentMessage, RelatedIncident
from tests.cases import every_case
from tests.samples import START, alert, explained_incident, explanation, hypothesis, incident, owner, with_fields
from tests.samples.parts import citation, found_by_model

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def seen(of: Incident, **parts: object) -> MessageView:
    return incident_view(replace(IncidentMessage(of), **parts))


def texts(of: Incident, **parts: object) -> list[str]:
    return [line.plain for line in seen(of, **parts).lines]


# --- the state --------------------------------------------------------------------------------------------------------


def test_the_state_tells_the_severity_the_beginning_or_the_end_and_the_alerts() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "Critical since 09:30 UTC · payment-gateway"),
        ({"severity": Severity.INFO, "service": ""}, "Info since 09:30 UTC"),
        ({"reopened_count": 1}, "Critical again, first 09:30 UTC · payment-gateway"),
        ({"started_at": START - DAY}, "Critical since 13 Mar 09:30 UTC · payment-gateway"),
        ({"started_at": START - 365 * DAY}, "Critical since 14 Mar 2025 09:30 UTC · payment-gateway"),
        ({"alert_count": 2}, "Critical since 09:30 UTC · payment-gateway · 2 alerts"),
        ({"alert_count": 1_200}, "Critical since 09:30 UTC · payment-gateway · 1 200 alerts"),
        (
            {"alert_count": 2, "alerts": (alert(), alert(2, AlertStatus.RESOLVED))},
            "Critical since 09:30 UTC · payment-gateway · 1 of 2 alerts firing",
        ),
        (
            {"state": IncidentState.RESOLVED, "resolved_at": START + 90 * MINUTE},
            "Resolved 11:00 UTC after 1 h 30 min · payment-gateway",
        ),
    ]
    for fields, state in cases:
        assert seen(incident(**fields)).state == state, (fields, state)


def test_the_mood_is_the_severity_until_it_is_over() -> None:
    assert [seen(incident(severity=severity)).mood for severity in Severity] == [Mood(each) for each in Severity]
    assert seen(incident(state=IncidentState.RESOLVED)).mood is Mood.RESOLVED


def test_a_length_is_told_in_its_two_largest_units() -> None:
    cases: list[tuple[timedelta, str]] = [
        (timedelta(seconds=59), "less than a minute"),
        (MINUTE, "1 min"),
        (59 * MINUTE + timedelta(seconds=59), "59 min"),
        (HOUR, "1 h 0 min"),
        (23 * HOUR + 59 * MINUTE, "23 h 59 min"),
        (DAY, "1 d 0 h"),
        (2 * DAY + 5 * HOUR + 59 * MINUTE, "2 d 5 h"),
    ]
    for length, text in cases:
        assert format_duration(length) == text, (length, text)


# --- whether it needs a person ----------------------------------------------------------------------------------------


@every_case(
    ("needed", "severity", "claim", "shown"),
    [
        (0.0, Severity.WARNING, "Can probably wait", 1.0),
        (0.09, Severity.INFO, "Can probably wait", 0.91),
        (0.11, Severity.WARNING, "May need a person", 0.11),
        (0.69, Severity.WARNING, "May need a person", 0.69),
        (0.7, Severity.WARNING, "Probably needs a person", 0.7),
        (0.0, Severity.CRITICAL, "May need a person", 0.0),
        (0.1, Severity.CRITICAL, "May need a person", 0.1),
        (0.95, Severity.CRITICAL, "Probably needs a person", 0.95),
    ],
)
def test_waiting_is_claimed_from_nine_in_ten_on_the_need_of_a_person_from_seven_and_nothing_critical_can_wait(
    needed: float, severity: Severity, claim: str, shown: float
) -> None:
    words, badge = page_claim(Badge(Strength.WEAK, needed, 40), severity)
    assert (words, badge.probability) == (claim, pytest.approx(shown))
    assert page_claim(Badge(Strength.WEAK), Severity.WARNING)[0] == "Can probably wait", "nothing speaks for a person"


QUIET = PageJudgement(Badge(Strength.WEAK, 0.05, 40), "p-1", ("one", "two", "three", "four", "five"), Severity.WARNING)


def page_line(of: Incident) -> str:
    return next(
        (
            text
            for text in texts(of)
            if text.startswith(("Can probably wait", "Probably needs a person", "May need a person"))
        ),
        "",
    )


def test_the_judgement_is_told_with_its_first_reasons_until_somebody_responds() -> None:
    judged = incident(page=QUIET, severity=Severity.WARNING, owner=owner(), explanation=explanation())
    assert page_line(judged).startswith("Can probably wait: one, two, three · ")
    acknowledged = replace(alert(), acknowledged=Acknowledgement("Ada", START))
    for fields in (
        {"taken_by": "Ada"},
        {"state": IncidentState.RESOLVED},
        {"alerts": (acknowledged,)},
        {"relations": (Relation(RelationKind.PART_OF, "other", at=START),)},
        {"page": None},
        {"page": replace(QUIET, badge=Badge(Strength.WEAK))},
    ):
        assert page_line(with_fields(judged, **fields)) == "", fields


@pytest.mark.parametrize(("needed", "is_told"), [(0.29, False), (0.3, True), (0.05, True)])
def test_a_judgement_without_any_history_is_told_unless_it_is_undecided_and_without_a_percentage(
    needed: float, is_told: bool
) -> None:
    page = replace(QUIET, badge=Badge(Strength.WEAK, needed, 40), from_prior=True)
    told = page_line(incident(page=page, severity=Severity.WARNING, owner=owner()))
    assert bool(told) is is_told
    assert "%" not in told


# --- parts ------------------------------------------------------------------------------------------------------------


def part(number: int, severity: Severity = Severity.WARNING, **fields: object) -> RelatedIncident:
    usual = RelatedIncident(f"p{number}", f"Part {number}", 2, is_open=True, service=f"s{number}", severity=severity)
    return replace(usual, **fields)


def test_parts_are_counted_with_their_alerts_and_those_that_are_open() -> None:
    assert parts_counted([]) == ""
    assert parts_counted([part(1)]) == "1 more incident with 2 alerts, 1 still open"
    assert parts_counted([part(1), part(2, is_open=False)]) == "2 more incidents with 4 alerts, 1 still open"


def test_up_to_three_parts_are_named_the_open_and_the_worst_first() -> None:
    parts = (part(1, is_open=False), part(2), part(3, Severity.CRITICAL))
    [line] = [line for line in seen(incident(), parts=parts).lines if line.label == "With it"]
    assert [link.incident_id for link in line.links if isinstance(link, Link)] == ["p3", "p2", "p1"]
    [line] = [line for line in seen(explained_incident(), parts=parts).lines if line.label == "Explains"]
    assert len(line.links) == 3


def test_of_many_parts_the_services_are_named_by_severity() -> None:
    parts = (part(1), part(2, service="s1"), part(3, Severity.CRITICAL), part(4, Severity.INFO, service=""))
    [line] = [line for line in seen(incident(), parts=parts).lines if line.label == "With it"]
    assert line.text == ("4 more incidents with 8 alerts, 4 still open. Critical: s3; warning: s1 (2); info: Part 4")
    assert line.links == ()


def test_a_part_names_the_whole_and_who_or_what_merged_it() -> None:
    def merged(person: str) -> list[str]:
        relation = Relation(RelationKind.PART_OF, "whole", "The whole", ("the same alert",), at=START, person=person)
        return texts(incident(relations=(relation,)), leader=part(7))

    assert merged("Ada")[:2] == ["Part of Part 7", "merged by Ada"]
    assert merged("")[:2] == ["Part of Part 7", "the same alert"]


def test_what_it_may_be_part_of_is_told_unless_it_has_parts_or_is_a_part() -> None:
    relation = Relation(RelationKind.MAY_BE_PART_OF, "whole", "The whole", ("api depends on db",))
    may = incident(relations=(relation,))
    assert texts(may)[0] == "May be part of api depends on db · The whole"
    assert not any("May be" in text for text in texts(may, parts=(part(1),)))
    absorbed = may.with_relation(Relation(RelationKind.PART_OF, "other", at=START))
    assert not any("May be" in text for text in texts(absorbed, leader=part(1)))


def test_what_is_unusual_is_said() -> None:
    until = datetime(2026, 3, 14, 12, tzinfo=UTC)
    assert "Flapping: it has fired again 4 times. I won’t ping anyone again." in texts(
        incident(flapping=True, reopened_count=4)
    )
    silenced = incident(silenced=Silenced("Ada", "maintenance", until))
    assert texts(silenced)[0] == "Silenced by Ada until 2026-03-14 12:00 UTC: maintenance"
    assert texts(incident(silenced=Silenced("Ada", "", until)))[0].endswith("12:00 UTC")
    assert "I ran out of time." in texts(incident(cut_short="I ran out of time."))


# --- owner, cause, next -----------------------------------------------------------------------------------------------


def labelled(of: Incident, label: str, **parts: object) -> str:
    return next((line.plain for line in seen(of, **parts).lines if line.label == label), "")


def test_the_owner_is_looked_for_checked_named_or_unclear() -> None:
    cases: list[tuple[dict[str, object], str, str]] = [
        ({}, "Owner looking …", "no owner yet"),
        ({"stage": Stage.EXPLAINING}, "Owner nobody was found", "owner unknown"),
        ({"taken_by": "Ada"}, "Owner taken by Ada", "no owner yet"),
        (
            {"owner": owner(owner=None, candidates=())},
            "Owner not clear. A person should decide.",
            "nobody named",
        ),
        ({"owner": owner(), "taken_by": "Ada"}, "Owner checking: Payments? · taken by Ada", "checking: Payments?"),
        (
            {"owner": owner(), "taken_by": "Ada", "stage": Stage.DONE},
            "Owner Payments · taken by Ada · ●●● 86 %",
            "Payments",
        ),
        (
            {"owner": owner(on_call=("A", "B", "C", "D")), "stage": Stage.DONE},
            "Owner Payments · on call: A, B, C and 1 more · ●●● 86 %",
            "Payments",
        ),
        ({"owner": owner(on_call=()), "stage": Stage.DONE}, "Owner Payments · ●●● 86 %", "Payments"),
    ]
    for fields, text, short in cases:
        shown = incident(**fields)
        assert labelled(shown, OWNER) == text, (fields, text, short)
        assert format_owner(shown) == short, (fields, text, short)
        assert (claimed_owner(shown) is not None) is (short == "Payments"), (fields, text, short)


def test_a_channel_whose_policy_asks_is_asked() -> None:
    done = explained_incident(stage=Stage.DONE)
    assert labelled(done, OWNER, asks_owner=True).startswith("Owner Is this yours, Payments?")
    assert labelled(done, CAUSE, asks_cause=True).startswith("Cause Could it be")
    assert not labelled(done, CAUSE).startswith("Cause Could it be")


def test_without_an_explanation_the_cause_is_only_said_to_be_missing_at_the_end() -> None:
    assert labelled(incident(), CAUSE) == ""
    assert labelled(incident(stage=Stage.DONE), CAUSE) == "Cause not investigated"
    none = explanation(hypotheses=(), first_failing="pg-main")
    assert labelled(incident(explanation=none), CAUSE) == "Cause none found"
    assert labelled(incident(explanation=none), NEXT) == "Next Look at pg-main first: the symptoms began there."


def test_an_incident_that_is_put_off_has_neither_owner_nor_cause() -> None:
    relation = Relation(RelationKind.PART_OF, "whole", "The whole", ("the same alert",), at=START)
    assert labelled(incident(relations=(relation,)), OWNER, leader=part(1)) == ""
    assert labelled(incident(relations=(relation,), owner=owner()), OWNER, leader=part(1)) != ""
    assert labelled(incident(silenced=Silenced("Ada", "", START)), OWNER) == ""


def test_the_alert_s_description_stands_in_until_there_is_an_explanation() -> None:
    described = incident(alerts=(replace(alert(), description="The pool is empty."),))
    assert "The pool is empty." in texts(described)
    assert "The pool is empty." not in texts(described.with_findings(explanation=explanation()))
    assert described.title not in texts(incident(alerts=(replace(alert(), description=described.title),)))


def test_who_acknowledged_it_in_which_system_is_told() -> None:
    given = replace(alert(), acknowledged=Acknowledgement("Ada", START + MINUTE))
    shown = incident(alerts=(given,), source="opsgenie")
    assert "Acknowledged by Ada in opsgenie 09:31 UTC" in texts(shown)
    unnamed = replace(alert(), acknowledged=Acknowledgement("", START + MINUTE))
    assert "Acknowledged in opsgenie 09:31 UTC" in texts(incident(alerts=(unnamed,), source="opsgenie"))


# --- progress and severity --------------------------------------------------------------------------------------------


def test_the_progress_is_told_while_it_is_worked_on() -> None:
    assert seen(incident(progress="reading logs")).progress == f"{str(Stage.TRIAGING).capitalize()}: reading logs …"
    assert seen(incident()).progress == f"{str(Stage.TRIAGING).capitalize()} …"
    assert seen(incident(stage=Stage.DONE, progress="reading logs")).progress == ""
    assert seen(incident(silenced=Silenced("Ada", "", START))).progress == ""


# --- the runbook ------------------------------------------------------------------------------------------------------

PAGE = "https://wiki.example/pool"
CITED = citation(title="Pool", heading="Fix", url=PAGE)


def next_line(of: Incident) -> Line:
    return next(line for line in seen(of).lines if line.label == NEXT)


def test_the_next_action_links_to_its_section_or_else_to_the_page() -> None:
    runbook = Runbook("https://alert.example/runbook", CITED, "Raise it.", "pool --raise")
    shown = next_line(incident(runbook=runbook, explanation=explanation()))
    assert (shown.text, shown.code) == ("Raise it.", "pool --raise")
    assert [(link.text, link.url) for link in shown.links if isinstance(link, Link)] == [("runbook", CITED.deep_link)]
    unpublished = replace(runbook, citation=replace(CITED, url=""))
    assert next_line(incident(runbook=unpublished)).links[0].url == "https://alert.example/runbook"
    assert next_line(incident(runbook=replace(runbook, command=""))).text == "Raise it."
    assert next_line(incident(runbook=replace(runbook, next_action=""))).code == "pool --raise"
    no_action = replace(runbook, next_action="", command="")
    assert next_line(incident(runbook=no_action, explanation=explanation())).text == hypothesis().next_check


def test_an_incident_without_a_runbook_or_a_cause_has_no_next_action() -> None:
    assert labelled(incident(owner=owner()), NEXT) == ""


def test_notice_beside_owner_cause_and_next_step_is_subtle() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"alerts": (replace(alert(), acknowledged=Acknowledgement("Ada", START)),)}, "Acknowledged by Ada"),
        ({"relations": (Relation(RelationKind.PART_OF, "other", "Other", person="Ada"),)}, "merged by Ada"),
        ({"flapping": True}, "Flapping: "),
        ({"owner": owner(note="Nobody voted.")}, "Nobody voted."),
        ({"explanation": found_by_model()}, "Found by the language model"),
        (
            {"explanation": replace(found_by_model(), hypotheses=(replace(hypothesis(), solution="Raise it."),))},
            "The language model qwen3-32b agrees.",
        ),
        ({"page": QUIET, "severity": Severity.WARNING}, "Can probably wait"),
    ]
    for fields, notice in cases:
        shown = incident(**({"owner": owner(), "explanation": explanation()} | fields))
        leader = RelatedIncident("other", "Other", 1, is_open=True)
        lines = seen(shown, leader=leader).lines
        assert [line.is_subtle for line in lines if line.text.startswith(notice)] == [True], (fields, notice)
        assert not any(line.is_subtle for line in lines if line.label), (fields, notice)
