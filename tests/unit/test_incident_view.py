"""What an incident's message says and offers, whatever chat draws it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from core.incidents.incident_details import format_votes, gaps_by_tool, incident_details
from core.incidents.incident_layout import (
    CAUSE,
    HELPED,
    NEXT,
    OR_CAUSE,
    OWNER,
    PHONE_LINES,
    phone_lines,
)
from core.incidents.incident_view import format_owner, incident_view, next_step
from core.model.badge import Badge, Strength
from core.model.findings import (
    BlamedChange,
    Explanation,
    Gap,
    GapReason,
    Relation,
    RelationKind,
    Runbook,
    SimilarIncident,
    ThreadNote,
    Vote,
)
from core.model.incident import Incident, IncidentState, Stage
from core.model.message_view import Link, MessageView, Mood
from core.model.messages import ButtonAction, IncidentMessage
from core.rca.observations import QUESTION
from tests import samples
from tests.cases import every_case
from tests.fakes.text_everywhere import everywhere
from tests.samples import alert, explained_incident, explanation, incident, owner, with_fields
from tests.samples.engine import investigated
from tests.samples.parts import TRAJECTORY, disagreed, found_by_model, hypothesis

MAX_CONTROLS = 4  # visible at once, without the menu of the others
MESSAGES = {name: message for name, message in samples.SAMPLES.items() if isinstance(message, IncidentMessage)}
LARGEST = {
    f"{name} of {length} characters": message
    for length in (10, 60, 4_000)
    for name, message in everywhere("word " * (length // 5), 40).items()
    if isinstance(message, IncidentMessage)
}


def seen(shown: Incident, **fields: object) -> MessageView:
    return incident_view(IncidentMessage(with_fields(shown, **fields)))


def controls_in_sight(view: MessageView) -> int:
    return len(view.buttons) + bool(view.judging)


def line(view: MessageView, label: str) -> str:
    return next((each.plain for each in view.lines if each.label == label), "")


@every_case("message", MESSAGES.values())
def test_a_message_is_read_at_once_on_a_phone(message: IncidentMessage) -> None:
    view = incident_view(message)
    assert phone_lines(view) <= PHONE_LINES
    assert controls_in_sight(view) <= MAX_CONTROLS


@every_case("message", LARGEST.values())
def test_however_long_its_texts_are_it_has_few_controls_and_little_more_than_a_phone_shows(
    message: IncidentMessage,
) -> None:
    view = incident_view(message)
    assert phone_lines(view) <= 2 * PHONE_LINES
    assert controls_in_sight(view) <= MAX_CONTROLS


def test_owner_cause_and_next_action_stand_in_this_order_each_claim_with_one_badge() -> None:
    view = seen(explained_incident())
    assert [each.label for each in view.lines] == [OWNER, CAUSE, NEXT]
    assert line(view, OWNER) == "Owner Payments · on call: Asha Brandt, Mateo Silvestri · ●●● 86 %"
    assert line(view, CAUSE).endswith("from 40 to 4 · strong")
    assert [bool(each.badge) for each in view.lines] == [True, True, False]


def test_few_controls_are_in_sight_and_the_others_in_menus() -> None:
    view = seen(explained_incident())
    assert [each.verdict for each in view.buttons] == [
        ButtonAction.TAKE_IT,
        ButtonAction.HAND_OVER,
        ButtonAction.DETAILS,
    ]
    assert [[each.verdict for each in judged.controls] for judged in view.judging] == [
        [ButtonAction.OWNER_RIGHT, ButtonAction.OWNER_WRONG],
        [ButtonAction.CAUSE_RIGHT, ButtonAction.CAUSE_WRONG],
    ]
    assert [each.verdict for each in view.more] == [
        ButtonAction.WHY_OWNER,
        ButtonAction.WHY_CAUSE,
        ButtonAction.BELONGS,
        ButtonAction.WRITE_UPDATE,
    ]


def test_the_work_of_a_model_can_be_stopped_until_its_end_and_the_details_move_into_the_menu_meanwhile() -> None:
    working = explained_incident(stage=Stage.EXPLAINING, stop_id="incident-1:3")
    view = seen(working)
    assert [each.verdict for each in view.buttons] == [
        ButtonAction.TAKE_IT,
        ButtonAction.HAND_OVER,
        ButtonAction.STOP,
    ]
    assert view.subjects[ButtonAction.STOP] == "incident-1:3"
    assert ButtonAction.DETAILS in [each.verdict for each in view.more]
    assert [each.verdict for each in seen(working, source=QUESTION).buttons] == [ButtonAction.STOP]
    assert ButtonAction.STOP not in seen(working, stage=Stage.DONE).subjects, "nobody works any more"
    again = seen(working, stage=Stage.DONE, progress="asking the language model")
    assert (again.progress, again.buttons[-1].label) == ("Asking the language model …", "Stop")


def test_an_owner_is_only_being_checked_until_the_evidence_is_in() -> None:
    early = incident(stage=Stage.EXPLAINING, owner=owner())
    view = seen(early)
    assert line(view, OWNER) == "Owner checking: Payments?"
    assert not view.judging
    assert ButtonAction.WHY_OWNER not in view.subjects
    assert format_owner(early) == "checking: Payments?"
    assert format_owner(explained_incident()) == "Payments"


def test_where_nobody_can_be_named_two_teams_are_asked_or_the_nearest_are_named() -> None:
    asked = explained_incident(owner=samples.unclear_owner())
    question = (
        "Is this yours, Payments (on call: Asha Brandt, Mateo Silvestri) or Bookings (on call: unknown, PagerDuty"
    )
    assert line(seen(asked), OWNER) == f"Owner not clear. {question} did not answer)?"
    nearest = line(seen(explained_incident(owner=samples.unclear_owner(asked=()))), OWNER)
    assert nearest == "Owner not clear. A person should decide. Nearest: Payments, Bookings, Fleet"
    assert not any(each.claim.startswith("Owner") for each in seen(asked).judging), "nobody is claimed"


def test_a_check_reads_what_two_causes_differ_in_and_says_so_where_there_is_nothing() -> None:
    one = hypothesis()
    at = explained_incident().started_at - timedelta(minutes=9)
    blamed = BlamedChange("C-1", "deploy", "Update", "", at, ("till",))
    earlier = replace(blamed, id="C-0", at=at - timedelta(hours=1))
    before = f"before {at:%H:%M} UTC: the same trouble acquits deploy C-1."
    own, untold = one.next_check, "Nothing that I can name tells the two causes apart."
    for causes, check in (
        ((replace(one, change=blamed), one), before),
        ((one, replace(one, change=blamed)), before),
        ((replace(one, change=earlier), replace(one, change=blamed)), before),
        ((one, replace(one, service="till")), "Look at payment-gateway and till, each on its own"),
        ((one, one), f"{untold} {own}"),
        ((replace(one, change=blamed), replace(one, change=replace(blamed, id="C-2"))), untold),
        ((one,), own),
    ):
        unsure = explained_incident(explanation=explanation(hypotheses=causes, badge=Badge(Strength.WEAK)))
        assert check in next_step(unsure), causes
    sure = explained_incident(explanation=explanation(badge=Badge(Strength.STRONG)))
    assert next_step(sure) == own


def test_who_is_on_call_is_unknown_where_the_schedule_did_not_say() -> None:
    unknown = explained_incident(owner=owner(on_call=(), on_call_unknown="PagerDuty"))
    assert "on call: unknown, PagerDuty did not answer" in line(seen(unknown), OWNER)
    partly = explained_incident(owner=owner(on_call=("Ines",), on_call_unknown="Jira: nights"))
    assert "on call: Ines; unknown, Jira: nights did not answer" in line(seen(partly), OWNER)
    taken = seen(explained_incident(taken_by="Ada"))
    assert line(taken, OWNER).startswith("Owner Payments · taken by Ada")
    assert ButtonAction.TAKE_OVER in taken.subjects


def test_the_state_is_told_in_words() -> None:
    resolved = incident_view(MESSAGES["incident resolved"])
    assert (resolved.mood, resolved.state) == (Mood.RESOLVED, "Resolved 10:02 UTC after 32 min · payment-gateway")
    assert ButtonAction.TAKE_IT not in resolved.subjects
    assert seen(incident()).state == "Critical since 09:30 UTC · payment-gateway"
    days = incident(started_at=samples.START - timedelta(days=2), reopened_count=1)
    assert seen(days).state == "Critical again, first 12 Mar 09:30 UTC · payment-gateway"
    alerts = tuple(samples.alert(number) for number in range(5))
    assert "5 of 5 alerts firing" in seen(incident(alerts=alerts, alert_count=5)).state
    assert "10 000 alerts" in seen(incident(alerts=alerts, alert_count=10_000)).state


def test_the_next_action_is_the_runbook_s_with_its_command_and_the_fix_of_last_time() -> None:
    runbook = Runbook(
        "https://handbook.example/x", samples.citation(), "Set the pool back to 40.", "slipway rollback x"
    )
    past = SimilarIncident("INC-7", "Pool", "payments", "Pool of 4", "Pool size back to 40.", 0.9, same_cause=True)
    view = seen(explained_incident(owner=owner(precedents=(past,))), runbook=runbook)
    assert line(view, NEXT) == "Next Set the pool back to 40. · slipway rollback x · runbook"
    assert line(view, HELPED) == "Last time Pool size back to 40. · INC-7"


def test_a_command_that_no_label_fills_is_left_out_with_the_colon_before_it() -> None:
    runbook = Runbook(
        "https://handbook.example/x", samples.citation(), "Sign with the key before:", "sign --kid <previous>"
    )
    assert line(seen(explained_incident(), runbook=runbook), NEXT) == "Next Sign with the key before. · runbook"


def test_without_a_cause_and_a_runbook_the_service_that_failed_first_is_looked_at_next() -> None:
    unknown = explained_incident(explanation=samples.explanation(hypotheses=(), first_failing="pg-payments"))
    assert line(seen(unknown), NEXT) == "Next Look at pg-payments first: the symptoms began there."


def test_a_command_is_shown_whole_or_not_at_all() -> None:
    said = "First look at the dashboard, then decide. " * 5
    for command in ("kubectl " + "x" * 150, "kubectl " + "x" * 300):
        runbook = Runbook("https://handbook.example/x", samples.citation(), said, command)
        shown = [each.code for each in seen(explained_incident(), runbook=runbook).lines if each.code]
        assert shown in ([], [command])


def test_a_runbook_that_is_not_indexed_is_linked() -> None:
    view = seen(explained_incident(), runbook=Runbook("https://wiki.example/runbook"))
    assert [link.url for each in view.lines for link in each.links] == ["https://wiki.example/runbook"]


def test_an_incident_that_may_be_a_part_of_another_can_be_joined() -> None:
    suggestion = Relation(RelationKind.MAY_BE_PART_OF, "incident-9", "pg is down", ("pg fails too",))
    view = seen(explained_incident(), relations=(suggestion,))
    assert line(view, "May be part of") == "May be part of pg fails too · pg is down"
    assert view.subjects[ButtonAction.JOIN_SUGGESTED] == "incident-1"


def test_a_search_without_a_result_names_what_it_could_not_read() -> None:
    nothing = explanation(hypotheses=(), badge=None, prediction_id=None, gaps=(Gap("loki", GapReason.TIMED_OUT),))
    view = seen(explained_incident(explanation=nothing))
    assert line(view, CAUSE) == "Cause none found; could not read loki"
    sections = {each.title: each for each in incident_details(explained_incident(explanation=nothing))}
    assert [entry.text for entry in sections["Not read"].entries] == ["loki: timed out"]


def test_many_unreadable_parts_of_a_tool_are_counted_and_few_are_named() -> None:
    pods = [Gap(f"k8s: log of api-{number}/main", GapReason.FAILED) for number in range(3)]
    gaps = (*pods, Gap("changes: commits of acme/shop", GapReason.FAILED), Gap("loki", GapReason.TIMED_OUT))
    nothing = explained_incident(explanation=explanation(hypotheses=(), badge=None, prediction_id=None, gaps=gaps))
    told = line(seen(nothing), CAUSE)
    assert told == "Cause none found; could not read 3 parts of k8s, changes: commits of acme/shop, loki"
    assert sorted((each.tool, each.incidents) for each in gaps_by_tool([nothing])) == [
        ("changes", 1),
        ("k8s", 1),
        ("loki", 1),
    ]


def test_what_is_not_set_up_is_not_called_unreadable() -> None:
    gaps = (Gap("loki", GapReason.TIMED_OUT), Gap("metrics", GapReason.MISSING))
    nothing = explanation(hypotheses=(), badge=None, prediction_id=None, gaps=gaps)
    told = line(seen(explained_incident(explanation=nothing)), CAUSE)
    assert told == "Cause none found; could not read loki; not set up: metrics"


def test_what_has_no_data_from_that_time_is_not_called_unreadable() -> None:
    gaps = (Gap("loki", GapReason.TIMED_OUT), Gap("log files", GapReason.OUT_OF_WINDOW, "09:00 to 09:30 UTC"))
    nothing = explanation(hypotheses=(), badge=None, prediction_id=None, gaps=gaps)
    told = line(seen(explained_incident(explanation=nothing)), CAUSE)
    assert told == "Cause none found; could not read loki; no data from that time in log files"


def test_an_incident_of_seconds_did_not_last_no_time() -> None:
    assert "after less than a minute" in seen(incident(), **over_after(timedelta(seconds=20))).state
    assert "after 20 min" in seen(incident(), **over_after(timedelta(minutes=20))).state


def over_after(length: timedelta) -> dict[str, Any]:
    return {"state": IncidentState.RESOLVED, "resolved_at": incident().started_at + length}


def test_a_build_that_did_not_fail_is_said_and_not_called_unreadable() -> None:
    gaps = (Gap("ci", GapReason.NO_FAILURE, "run 2 of acme/api passed"), Gap("loki", GapReason.TIMED_OUT))
    nothing = explanation(hypotheses=(), badge=None, prediction_id=None, gaps=gaps)
    told = line(seen(explained_incident(explanation=nothing)), CAUSE)
    assert told == "Cause none found; no failed build: run 2 of acme/api passed; could not read loki"
    sections = {section.title: section for section in incident_details(explained_incident(explanation=nothing))}
    assert [entry.text for entry in sections["Not read"].entries] == ["loki: timed out"]
    assert [entry.text for entry in sections["No failed build"].entries] == ["run 2 of acme/api passed"]
    assert [each.tool for each in gaps_by_tool([explained_incident(explanation=nothing)])] == ["loki"]


def test_a_cause_that_was_looked_at_again_says_after_whose_note() -> None:
    again = explanation(rechecked_after=ThreadNote("Dana", "it is not the pool", samples.START))
    assert any(
        each.plain == "Re-checked after Dana’s note" and not each.is_subtle
        for each in seen(explained_incident(explanation=again)).lines
    )


def test_a_pasted_text_is_not_stored_so_that_nothing_can_be_taken_or_opened() -> None:
    view = seen(explained_incident(source="question"))
    assert not view.buttons
    assert view.subjects.keys() == {
        ButtonAction.OWNER_RIGHT,
        ButtonAction.OWNER_WRONG,
        ButtonAction.CAUSE_RIGHT,
        ButtonAction.CAUSE_WRONG,
        ButtonAction.WHY_OWNER,
        ButtonAction.WHY_CAUSE,
    }


def test_a_resolved_part_of_another_can_be_separated_and_not_taken() -> None:
    part = MESSAGES["incident that is a part of another"].incident
    assert {ButtonAction.TAKE_IT, ButtonAction.SEPARATE} == seen(part).subjects.keys()
    assert seen(part, state=IncidentState.RESOLVED).subjects.keys() == {ButtonAction.SEPARATE}


def test_the_teams_votes_tell_each_reason_once() -> None:
    reason = "Payments: It runs payment-gateway; it was named in the log. For Bookings: owns booking-api"
    votes = tuple(Vote(number, "bookings", "payments", reason) for number in (1, 2))
    votes += (Vote(1, "payments", "payments", "Payments: it was named in the log"),)
    told = format_votes(explained_incident(owner=owner(votes=votes)))
    assert told == (
        "Round 2: Bookings votes for Payments (it was named in the log; for Bookings: owns booking-api)",
        "Round 1: Bookings votes for Payments",
        "Round 1: Payments votes for Payments",
    )


AGREED = explanation(trajectory=TRAJECTORY, hypotheses=(replace(hypothesis(), solution="Raise the pool to 40."),))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (found_by_model(), ["Found by the language model qwen3-32b.", "Stop the batch job"]),
        (
            disagreed(),
            ["by qwen3-32b: A batch job holds all 4 connections of payment-gateway for minutes"],
        ),
        (
            replace(disagreed(), engine="qwen3-32b"),
            ["by the rules: A batch job holds all 4 connections of payment-gateway for minutes"],
        ),
        (AGREED, ["The language model qwen3-32b agrees.", "Raise the pool to 40."]),
    ],
)
def test_the_part_that_a_language_model_had_in_a_cause_is_told(found: Explanation, told: list[str]) -> None:
    view = incident_view(IncidentMessage(investigated(explanation=found, runbook=None)))
    text = "\n".join(line.text for line in view.lines)
    assert [each for each in told if each not in text] == []


def test_causes_on_which_the_engines_disagree_have_a_badge_each() -> None:
    view = incident_view(IncidentMessage(investigated(explanation=disagreed())))
    assert all(line.badge for line in view.lines if line.label in (CAUSE, OR_CAUSE))
    assert {CAUSE, OR_CAUSE} <= {line.label for line in view.lines}


def test_causes_on_which_the_engines_disagree_are_judged_and_explained_each() -> None:
    subjects = incident_view(IncidentMessage(investigated(explanation=disagreed()))).subjects
    assert {action: subject for action, subject in subjects.items() if "cause" in action} == {
        ButtonAction.CAUSE_RIGHT: "cause-1",
        ButtonAction.CAUSE_WRONG: "cause-1",
        ButtonAction.WHY_CAUSE: "cause-1",
        ButtonAction.OTHER_CAUSE_RIGHT: "cause-2",
        ButtonAction.OTHER_CAUSE_WRONG: "cause-2",
        ButtonAction.WHY_OTHER_CAUSE: "cause-2",
    }


def test_the_alert_in_its_source_is_linked_beside_the_next_step() -> None:
    page = "https://monitor.example/alerts/1"
    for each in (explained_incident(), explained_incident().with_findings(explanation=None, runbook=None)):
        for url, shown in ((page, [page]), ("", []), ("javascript:alert(1)", [])):
            view = incident_view(IncidentMessage(replace(each, alerts=(replace(alert(1), url=url),))))
            linked = [link.url for part in view.lines for link in part.links if link == Link("alert", url)]
            assert linked == shown
