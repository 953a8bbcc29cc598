"""Each line of a postmortem with its evidence, and what is said where nothing is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from core.incidents.postmortem import as_markdown, draft_postmortem, escaped, postmortem_address, worth_a_postmortem
from core.model.badge import Badge, Strength
from core.model.findings import Evidence, EvidenceKind, Responsibility, Runbook, ThreadNote, TimelineEntry
from core.model.incident import Incident, IncidentState, Resolution
from tests.samples import START, alert, explanation, hypothesis, incident, owner, with_fields
from tests.samples.parts import citation

MINUTE = timedelta(minutes=1)
BARE = incident(state=IncidentState.RESOLVED, resolved_at=START + 12 * MINUTE)


def lines(of: Incident, title: str) -> list[str]:
    return [line.text for section in draft_postmortem(of).sections if section.title == title for line in section.lines]


def evidence_of(of: Incident, title: str) -> list[list[str]]:
    """The labels of what each line of a section rests on."""
    draft = draft_postmortem(of)
    [section] = [section for section in draft.sections if section.title == title]
    return [[draft.sources[number - 1].label for number in line.sources] for line in section.lines]


def test_of_a_bare_incident_only_what_its_alerts_tell_is_said() -> None:
    assert lines(BARE, "Summary") == [
        "Critical incident of payment-gateway: payment-gateway p99 latency above 2 s.",
        "Owner: not known.",
    ]
    assert lines(BARE, "Timeline") == [
        "2026-03-14 09:30:00 UTC Alert: payment-gateway p99 latency above 2 s",
        "2026-03-14 09:30:05 UTC The alert arrived.",
        "2026-03-14 09:42:00 UTC The last alert was resolved.",
    ]
    assert lines(BARE, "Cause") == ["Cause: not known."]
    assert lines(BARE, "Detection") == [
        "alertmanager alerted at 2026-03-14 09:30:00 UTC.",
        "How long it went unnoticed: not known.",
    ]
    assert lines(BARE, "What went well") == [
        "It was resolved 12 min after it began.",
        "What the team thinks went well: not known.",
    ]
    assert lines(BARE, "Actions") == ["Actions: not known."]
    assert lines(BARE, "Appendix: ruled out") == []
    assert lines(replace(BARE, service=""), "Summary")[0].startswith("Critical incident: ")


def test_impact_counts_the_alerts_by_service_and_how_long_they_fired() -> None:
    alerts = (replace(alert(1), service="a"), replace(alert(2), service="b"), replace(alert(3), service="a"))
    shown = replace(BARE, alerts=alerts, alert_count=7)
    assert lines(shown, "Impact")[0] == "Alerts: 7 in a, b. They fired for: 12 min."
    going_on = replace(shown, resolved_at=None, state=IncidentState.OPEN, alerts=())
    assert lines(going_on, "Impact")[0] == "Alerts: 7. They fired for: not known."
    many = replace(BARE, alerts=tuple(replace(alert(number), name=f"A{number}") for number in range(7)))
    assert [label.split(",")[0] for label in evidence_of(many, "Impact")[0]] == [
        f"Alert A{number}" for number in range(5)
    ]


def test_a_cause_is_told_with_its_probability_its_evidence_and_where_to_fix_it() -> None:
    against = Evidence(EvidenceKind.METRIC, "till", "flat", START)
    cause = replace(hypothesis(), contradicting=(against,), responsibility=Responsibility.OWN_CODE)
    found = explanation(hypotheses=(cause,), badge=Badge(Strength.STRONG, 0.86, 40))
    shown = BARE.with_findings(explanation=found)
    assert lines(shown, "Cause") == [
        f"Most probable (86%): {cause.cause}",
        "Evidence against it: 1 observed lines.",
        f"Where to fix it: {Responsibility.OWN_CODE}.",
    ]
    first, contradicting, place = evidence_of(shown, "Cause")
    assert (
        first
        == place
        == ["Change: config-4711, 2026-03-14 09:19:00 UTC", "Log: payment-gateway, 2026-03-14 09:28:00 UTC"]
    )
    assert contradicting == ["Metric: till, 2026-03-14 09:30:00 UTC"]
    unsure = BARE.with_findings(explanation=replace(found, badge=None, hypotheses=(replace(cause, evidence=()),)))
    assert lines(unsure, "Cause")[0] == f"Most probable: {cause.cause}"
    assert evidence_of(unsure, "Cause")[0] == ["The record of incident incident-1"]


def test_what_a_person_noted_is_told_first_as_cause_owner_and_fix() -> None:
    noted = replace(
        BARE.with_findings(owner=owner()),
        resolution=Resolution("the pool", "a bigger pool", "Payments"),
        taken_by="Ada",
    )
    assert lines(noted, "Cause") == ["As noted by a person: the pool"]
    assert lines(noted, "Summary")[1] == "Owner, as noted by a person: Payments."
    assert lines(noted, "What went well")[::2] == ["Ada took it.", "What helped, as noted by a person: a bigger pool"]
    assert lines(replace(noted, resolution=None), "Summary")[1] == "Proposed owner: Payments."
    only_fix = replace(noted, resolution=Resolution("", "a bigger pool"))
    assert lines(only_fix, "Cause") == ["Cause: not known."]
    assert lines(only_fix, "Summary")[1] == "Proposed owner: Payments."


def test_the_first_sign_before_the_alert_says_how_long_it_went_unnoticed() -> None:
    early = explanation(
        timeline=(TimelineEntry(START, "late"), TimelineEntry(START - 11 * MINUTE, "config-4711 applied"))
    )
    shown = BARE.with_findings(explanation=early)
    assert lines(shown, "Detection")[1] == "The first entry of the timeline is 11 min before the alert."
    at_once = BARE.with_findings(explanation=explanation(timeline=(TimelineEntry(START, "late"),)))
    assert lines(at_once, "Detection")[1] == "How long it went unnoticed: not known."


def test_the_timeline_has_what_people_said_in_the_thread_in_its_order() -> None:
    notes = (ThreadNote("Ada", "it is the pool", START + 5 * MINUTE), ThreadNote("", "yes", START + 6 * MINUTE))
    assert lines(replace(BARE, notes=notes), "Timeline")[2:4] == [
        "2026-03-14 09:35:00 UTC Ada in the thread: it is the pool",
        "2026-03-14 09:36:00 UTC Somebody in the thread: yes",
    ]


def test_an_entry_rests_on_the_evidence_of_its_time_and_words_or_the_alert_or_what_was_read() -> None:
    timeline = (
        TimelineEntry(START - 11 * MINUTE, "hikari.maximumPoolSize was lowered"),
        TimelineEntry(START - 11 * MINUTE, "nothing of this"),
        TimelineEntry(START, BARE.title),
    )
    shown = BARE.with_findings(explanation=explanation(timeline=timeline))
    assert evidence_of(shown, "Timeline")[:3] == [
        ["Change: config-4711, 2026-03-14 09:19:00 UTC"],
        ["What was read during the investigation"],
        [f"Alert {alert().name}, {alert().starts_at:%Y-%m-%d %H:%M:%S} UTC"],
    ]


def test_actions_are_those_of_the_cause_and_the_runbook() -> None:
    runbook = Runbook("https://x.example", citation(title="Pool", heading="Fix"), "Raise it.", "pool --raise")
    shown = BARE.with_findings(explanation=explanation(), runbook=runbook)
    assert lines(shown, "Actions") == [
        f"{hypothesis().next_check} Who: not known.",
        "From the runbook: Raise it. Command: pool --raise Who: not known.",
    ]
    assert lines(shown.with_findings(runbook=replace(runbook, command="")), "Actions")[1] == (
        "From the runbook: Raise it. Who: not known."
    )
    assert evidence_of(shown, "Actions")[1] == ["Pool, Fix"]


def test_what_was_ruled_out_and_not_checked_is_in_the_appendix() -> None:
    found = explanation(ruled_out=("Not the disk.",), unchecked=("Logs of api.",))
    assert lines(BARE.with_findings(explanation=found), "Appendix: ruled out") == ["Not the disk.", "Logs of api."]


def test_a_postmortem_is_worth_it_once_more_is_known_than_the_alerts() -> None:
    cases: list[tuple[dict[str, object], bool]] = [
        ({}, False),
        ({"owner": owner()}, True),
        ({"owner": owner(owner=None)}, False),
        ({"explanation": explanation()}, True),
        ({"explanation": explanation(hypotheses=())}, False),
        ({"resolution": Resolution("the pool")}, True),
        ({"owner": owner(), "state": IncidentState.OPEN}, False),
    ]
    for fields, worth in cases:
        assert worth_a_postmortem(with_fields(BARE, **fields)) is worth, (fields, worth)


def test_the_markdown_links_each_line_to_its_evidence_and_for_another_system_numbers_it() -> None:
    draft = draft_postmortem(BARE, ("Summary",))
    own, filed = as_markdown(draft), as_markdown(draft, filed=True)
    assert own.startswith(f"# Postmortem: {BARE.title}\n\nDraft from the record")
    assert "- Critical incident of payment-gateway: payment-gateway p99 latency above 2 s. [1](#evidence-1)\n" in own
    assert own.endswith("## Evidence\n\n### Evidence 1\n\nThe record of incident incident-1\n")
    assert filed.startswith("## Summary\n\n- Critical incident")
    assert "2 s. (evidence 1)\n- Owner: not known.\n" in filed


def test_quoted_text_is_shown_as_it_is() -> None:
    cases: list[tuple[str, str]] = [
        ("plain text", "plain text"),
        ("two\n lines", "two lines"),
        ("a\x00b", "ab"),
        ("*bold* _it_ `code` <b> [x](y)", r"\*bold\* \_it\_ \`code\` \<b> \[x\](y)"),
        ("snake_case", "snake_case"),
        ("/close", r"\/close"),
        ("1. first", r"\1. first"),
        ("x" * 600, "x" * 600),
        ("x" * 601, "x" * 599 + "…"),
    ]
    for text, shown in cases:
        assert escaped(text) == shown, (text, shown)


def test_its_address_is_on_the_local_page() -> None:
    assert (
        postmortem_address(incident(id="a/b"), "https://bot.example/")
        == "https://bot.example/incidents/a%2Fb/postmortem"
    )
    assert postmortem_address(incident(id="a"), "") == "/incidents/a/postmortem"
