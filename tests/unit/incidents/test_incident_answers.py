"""What each question in an incident's thread is recognised as, and answered from what is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from core.incidents.incident_questions import Subject, answer_links, answer_text, needs_reading, subject_of
from core.model.findings import Evidence, EvidenceKind, Runbook
from core.model.incident import Incident, IncidentState
from core.rca.observations import Observations
from tests.fakes.outage import change, errors, minutes, observations
from tests.samples import START, explanation, hypothesis, incident, owner
from tests.samples.parts import asked_teams, unclear_owner

BARE = incident()
MAX_QUESTION = 200
EXPLAINED = incident(explanation=explanation(), owner=owner())


def told(subject: Subject, of: Incident = EXPLAINED, seen: Observations | None = None) -> list[str]:
    return answer_text(subject, of, seen).splitlines()


def test_a_question_is_about_one_part_of_the_incident_or_about_something_else() -> None:
    cases: list[tuple[str, Subject | None]] = [
        ("is there a postmortem?", Subject.POSTMORTEM),
        ("where is the runbook?", Subject.RUNBOOK),
        ("who is on call?", Subject.ON_CALL),
        ("who owns payment-gateway?", Subject.ON_CALL),
        ("has this happened before?", Subject.PRECEDENTS),
        ("what changed?", Subject.CHANGES),
        ("show me the logs", Subject.LOGS),
        ("what should we do?", Subject.FIX),
        ("why?", Subject.CAUSE),
        ("what is the runbook to fix the cause?", Subject.RUNBOOK),  # the first of several
        ("why does the warehouse freeze?", None),  # about something else
        ("hello", None),
    ]
    for question, subject in cases:
        assert subject_of(question, BARE) is subject, (question, subject)


def test_a_long_question_asks_for_more_than_a_fact() -> None:
    assert subject_of("why " * (MAX_QUESTION // 4), BARE) is Subject.CAUSE
    assert subject_of("why " * (MAX_QUESTION // 4) + "?", BARE) is None


def test_only_changes_and_logs_are_read_anew() -> None:
    assert {subject for subject in Subject if needs_reading(subject)} == {Subject.CHANGES, Subject.LOGS}


# --- who --------------------------------------------------------------------------------------------------------------


def test_who_is_on_call_is_told_with_the_team_and_with_what_is_not_known() -> None:
    assert told(Subject.ON_CALL, BARE) == ["Still looking for the owner."]
    assert told(Subject.ON_CALL) == ["Payments. On call: Asha Brandt, Mateo Silvestri."]
    assert told(Subject.ON_CALL, incident(owner=owner(on_call=()))) == ["Payments. On call: nobody is named."]
    taken = replace(EXPLAINED, taken_by="Ines")
    assert told(Subject.ON_CALL, taken)[0] == "Ines has taken it."
    assert told(Subject.ON_CALL, taken.with_findings(owner=None)) == ["Ines has taken it."]


def test_where_no_owner_is_clear_the_teams_that_were_asked_are_told() -> None:
    nobody = incident(owner=owner(owner=None))
    assert told(Subject.ON_CALL, nobody) == ["The owner is not clear. A person should decide."]
    [line] = told(Subject.ON_CALL, incident(owner=unclear_owner()))
    assert line.startswith("The owner is not clear. Asked: ")
    assert all(team.team_name in line for team in asked_teams())


# --- cause and fix ----------------------------------------------------------------------------------------------------


def test_a_cause_is_told_with_its_first_evidence_and_what_would_disprove_it() -> None:
    assert told(Subject.CAUSE, BARE) == ["Still looking for the cause."]
    lines = told(Subject.CAUSE)
    assert lines[0].startswith("A configuration change lowered")
    assert lines[1] == "config-4711: hikari.maximumPoolSize: 40 -> 4"
    assert lines[-1] == f"Would disprove it: {hypothesis().disproof}"


def test_quoted_lines_of_cause_are_three_and_short() -> None:
    evidence = tuple(Evidence(EvidenceKind.LOG, f"api-{number}", "x" * 400) for number in range(4))
    shown = incident(explanation=explanation(hypotheses=(replace(hypothesis(), evidence=evidence),)))
    assert told(Subject.CAUSE, shown)[1:-1] == [f"api-{number}: {'x' * 300}" for number in range(3)]
    assert told(Subject.LOGS, shown) == [f"api-{number}: {'x' * 300}" for number in range(4)]


def test_without_a_cause_what_was_ruled_out_and_not_checked_is_told() -> None:
    ruled_out = tuple(f"Change {number}: too late." for number in range(8))
    none = explanation(hypotheses=(), ruled_out=ruled_out, unchecked=("Logs of api.",))
    assert told(Subject.CAUSE, incident(explanation=none)) == [
        "No cause found. Ruled out:",
        *ruled_out[:6],
        "Not checked:",
        "Logs of api.",
    ]
    bare = replace(none, ruled_out=(), unchecked=())
    assert told(Subject.CAUSE, incident(explanation=bare)) == ["No cause found. Ruled out:", "nothing"]


def test_a_fix_is_that_of_a_similar_incident_and_the_check_before_it() -> None:
    past = replace(explanation().similar[0], same_cause=True)
    lines = told(Subject.FIX, incident(explanation=explanation(similar=(past,))))
    assert lines == [
        "INC-0042 had a similar cause and was fixed by: Pool size back to 40.",
        f"To confirm the cause first: {hypothesis().next_check}",
    ]
    assert told(Subject.FIX, BARE) == ["Still looking for the cause.", *told(Subject.RUNBOOK, BARE)]


def test_a_past_incident_is_told_with_its_cause_and_its_fix_as_far_as_they_are_known() -> None:
    assert told(Subject.PRECEDENTS, BARE) == ["No past incident that this channel can see resembles this one."]
    [line] = told(Subject.PRECEDENTS)
    assert line.endswith("Cause: The pool was sized for staging. Fix: Pool size back to 40.")
    unknown = replace(explanation().similar[0], root_cause="", fix="", same_cause=True)
    [line] = told(Subject.PRECEDENTS, incident(explanation=explanation(similar=(unknown,))))
    assert line.endswith("Cause: not known Fix: not known It had a similar cause.")


# --- what is read anew ------------------------------------------------------------------------------------------------


def test_the_changes_nearest_to_the_beginning_are_listed_the_latest_first() -> None:
    near = [change(f"C-{number}", "shop", before=-10 * number) for number in range(1, 9)]
    seen = observations(changes=[*near, change("X-1", "till", before=-1)])
    lines = told(Subject.CHANGES, seen.incident, seen)
    assert [f"C-{number}" in lines[number - 1] for number in range(1, 7)] == [True] * 6
    assert lines[6:] == ["3 more changes to other services or earlier."]


def test_change_is_told_with_its_author_if_known() -> None:
    by_ada = replace(change("C-1", "shop", before=-10), author="Ada")
    for each, words in ((by_ada, " of shop by Ada: "), (replace(by_ada, author=""), " of shop: ")):
        seen = observations(changes=[each])
        assert words in told(Subject.CHANGES, seen.incident, seen)[0]


def test_where_nothing_near_changed_the_latest_changes_elsewhere_are_told() -> None:
    seen = observations(changes=[change(f"X-{number}", "till", before=-number) for number in range(1, 6)])
    first, *others = told(Subject.CHANGES, seen.incident, seen)
    assert first == "No change to shop or what it depends on is recorded in the last 24 hours."
    assert [f"Elsewhere: {minutes(-number):%H:%M} UTC" in others[number - 1] for number in (1, 2, 3)] == [True] * 3
    assert len(others) == 3
    assert told(Subject.CHANGES, BARE) == ["I could not read any system that records changes."]


def test_log_lines_of_trouble_are_shown_and_counted_and_of_a_calm_log_the_latest() -> None:
    calm = errors("shop", "served", since=-1, level="INFO")
    loud = errors("shop", "cannot reach the till", since=-0.5)
    seen = observations([calm, loud])
    lines = told(Subject.LOGS, seen.incident, seen)
    assert lines[0] == "No line explains it. The latest warnings and errors:"
    assert lines[1:-1] == [f"{line.at:%H:%M} UTC shop: {line.text}" for line in loud]
    assert lines[-1] == f"I read {len(calm) + len(loud)} lines of shop; {len(loud)} are warnings or errors."
    seen = observations([calm])
    lines = told(Subject.LOGS, seen.incident, seen)
    assert (lines[0], len(lines)) == ("The latest lines:", 1 + 8 + 1)
    assert lines[-1] == f"I read {len(calm)} lines of shop; 0 are warnings or errors."
    one = observations([loud[:1]])
    assert told(Subject.LOGS, one.incident, one)[-1] == "I read 1 line of shop; 1 is a warning or an error."
    none = observations()
    assert told(Subject.LOGS, none.incident, none) == [
        f"No log line of shop was found around {none.incident.started_at:%H:%M} UTC."
    ]
    assert told(Subject.LOGS, BARE) == ["I could not read any logs."]


def test_lines_that_explain_the_cause_come_instead_of_the_latest() -> None:
    quote = hypothesis().evidence[1]
    line = f"{START - timedelta(minutes=2):%H:%M} UTC payment-gateway: {quote.quote}"
    assert told(Subject.LOGS) == [line]
    seen = observations([errors("payment-gateway", "x", since=-1)], of=EXPLAINED)
    assert told(Subject.LOGS, EXPLAINED, seen)[0] == line
    assert len(told(Subject.LOGS, EXPLAINED, seen)) == 2


def test_a_postmortem_is_a_draft_until_the_incident_is_over_and_says_where_the_whole_is() -> None:
    lines = told(Subject.POSTMORTEM)
    assert lines[1] == "The incident is not over yet. This is the draft so far."
    assert lines[-1] == "To print all of it, run: plumbline postmortem incident-1"
    over = replace(EXPLAINED, state=IncidentState.RESOLVED)
    text = answer_text(Subject.POSTMORTEM, over, page="https://bot.example/postmortem")
    assert "not over yet" not in text
    assert text.endswith("The whole draft, with its evidence: https://bot.example/postmortem")


# --- links ------------------------------------------------------------------------------------------------------------

PAGE = "https://wiki.example/runbooks/pool"


def test_addresses_of_runbook_and_postmortem_are_linked_in_their_lines() -> None:
    unread = EXPLAINED.with_findings(runbook=Runbook(PAGE))
    assert answer_links(answer_text(Subject.RUNBOOK, unread), unread) == (PAGE,)
    draft = "https://bot.example/incidents/1/postmortem"
    *others, last = answer_links(answer_text(Subject.POSTMORTEM, EXPLAINED, page=draft), EXPLAINED, draft)
    assert last == draft
    assert not any(others)


@pytest.mark.parametrize("address", ["https://evil.example/sign-in", "javascript:alert(1)", "/incidents/1/postmortem"])
def test_other_addresses_in_an_answer_are_not_linked(address: str) -> None:
    text = f"The latest lines:\n14:03 api: see {address}"
    assert not any(answer_links(text, EXPLAINED.with_findings(runbook=Runbook(PAGE)), "/incidents/1/postmortem"))
    assert not any(answer_links(text, EXPLAINED.with_findings(runbook=Runbook("javascript:alert(1)"))))
