"""Drafts of updates and issues: what they say at each severity and stage, and how they are cut and named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.incidents.handover import draft_update
from core.incidents.postmortem import CUT, cut_draft, draft_report, file_stem, offered_actions, without_links
from core.model.alert import Severity
from core.model.conversation import Channel, Platform
from core.model.findings import Origin
from core.model.incident import FilingKind, FilingTarget, Incident, IncidentState
from core.model.messages import ButtonAction
from tests.cases import every_case
from tests.samples import START, alert, explanation, hypothesis, incident, resolved_incident

NOW = datetime(2026, 3, 14, 10, tzinfo=UTC)
CHANNELS = (Channel("incidents", {Platform.SLACK: "C0INC"}), Channel("till", {Platform.SLACK: "C0TILL"}))
JOINER = "\u2060"


def caused(origin: Origin) -> Incident:
    return incident(explanation=explanation(hypotheses=(replace(hypothesis(), origin=origin),)))


# --- an update for others ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("severity", "effect", "next_word"),
    [
        (Severity.CRITICAL, "does not work, or not reliably", "14 March, 10:30 UTC"),
        (Severity.WARNING, "may be slower or less reliable than usual", "14 March, 11:00 UTC"),
        (Severity.INFO, "works, with a minor problem", "14 March, 14:00 UTC"),
    ],
)
def test_an_update_says_what_is_affected_what_is_done_and_when_the_next_one_comes(
    severity: Severity, effect: str, next_word: str
) -> None:
    title, text = draft_update(incident(severity=severity), NOW)
    assert title == "Payment gateway: we are working on a problem"
    assert text == (
        f"What is affected: payment gateway {effect}, since 14 March, 09:30 UTC.\n\n"
        "What is being done: We are bringing in the experts for it. We are looking for the reason.\n\n"
        f"Next update: by {next_word}, or earlier if something changes."
    )


@pytest.mark.parametrize(
    ("origin", "reason"),
    [
        (Origin.CHANGE, "A recent change of ours may be the reason, and is being checked."),
        (Origin.EXTERNAL, "The reason may lie with a supplier, which is being checked."),
        (Origin.LOAD, "The reason may be unusually high demand, which is being checked."),
        (Origin.DATA, "We have a probable reason, and are checking it."),
    ],
)
def test_an_update_says_of_a_cause_only_where_it_lies(origin: Origin, reason: str) -> None:
    assert reason in draft_update(caused(origin), NOW)[1]


def test_an_update_says_that_somebody_works_on_it_and_when_it_is_over() -> None:
    assert "Our experts are working on it." in draft_update(incident(taken_by="Ada"), NOW)[1]
    over = incident(state=IncidentState.RESOLVED, resolved_at=START + timedelta(minutes=90))
    title, text = draft_update(over, NOW)
    assert title == "Payment gateway: works again"
    assert text.startswith(
        "What was affected: payment gateway, from 14 March, 09:30 UTC to 14 March, 11:00 UTC (1 h 30 min)."
    )


@every_case(
    ("services", "words"),
    [
        ((), "one of our systems"),
        (("pay_gate",), "pay gate"),
        (("a", "b"), "a and b"),
        (("a", "b", "c", "d"), "a, b and c"),
        (("a", "a", "b"), "a and b"),
    ],
)
def test_up_to_three_services_are_named_in_words(services: tuple[str, ...], words: str) -> None:
    alerts = tuple(replace(alert(number), service=service) for number, service in enumerate(services))
    assert f"affected: {words} does" in draft_update(incident(service="", alerts=alerts), NOW)[1]


# --- issues and postmortems -------------------------------------------------------------------------------------------


def target(kind: FilingKind = FilingKind.ISSUE, channel: str = "incidents") -> FilingTarget:
    return FilingTarget(name=f"{kind} {channel}", kind=kind, channels=frozenset({channel}))


def offered(of: Incident, *targets: FilingTarget) -> tuple[ButtonAction, ...]:
    return offered_actions(of, targets, CHANNELS)


def test_a_button_is_offered_for_each_kind_that_has_a_target_here() -> None:
    over = resolved_incident()
    assert offered(over) == ()
    assert offered(over, target()) == (ButtonAction.CREATE_ISSUE,)
    assert offered(over, target(FilingKind.POSTMORTEM)) == (ButtonAction.PUBLISH_POSTMORTEM,)
    assert offered(over, target(), target(FilingKind.POSTMORTEM)) == (
        ButtonAction.CREATE_ISSUE,
        ButtonAction.PUBLISH_POSTMORTEM,
    )
    assert offered(over, target(channel="elsewhere")) == ()
    assert offered(incident(), target(), target(FilingKind.POSTMORTEM)) == (ButtonAction.CREATE_ISSUE,), "it goes on"


def test_an_issue_has_the_title_of_the_incident_and_fewer_sections_than_a_postmortem() -> None:
    over = resolved_incident()
    title, issue = draft_report(over, FilingKind.ISSUE, str)
    whole_title, postmortem = draft_report(over, FilingKind.POSTMORTEM, str)
    assert title == over.title
    assert whole_title != title
    assert "Timeline" in postmortem
    assert "Timeline" not in issue
    assert len(draft_report(replace(over, title="x" * 300), FilingKind.ISSUE, str)[0]) == 200


def test_a_draft_is_redacted_before_anything_else() -> None:
    def redact(text: str) -> str:
        return text.replace("gateway", "[name]")

    for kind in FilingKind:
        title, text = draft_report(resolved_incident(), kind, redact)
        assert "gateway" not in title
        assert "gateway" not in text


@every_case(
    ("title", "shown"),
    [
        ("Ask @ada", f"Ask @{JOINER}ada"),
        ("Fixes https://x.example/1", f"Fix{JOINER}es https:{JOINER}//x.example/1"),
        ("OPS-12 is slow", f"OPS-{JOINER}12 is slow"),
        ("a #12", f"a #{JOINER}12"),
        ("plain text", "plain text"),
    ],
)
def test_a_title_notifies_nobody_and_closes_nothing(title: str, shown: str) -> None:
    assert without_links(title) == shown


def test_a_draft_is_cut_at_a_paragraph_and_says_so() -> None:
    text = "\n\n".join(["word " * 20] * 10)
    assert cut_draft(text, len(text)) == text
    short = cut_draft(text, len(text) - 1)
    assert short.endswith(f"\n\n{CUT}")
    assert len(short) < len(text)
    assert text.startswith(short.removesuffix(f"\n\n{CUT}"))
    assert cut_draft("x" * 500, 300) == "x" * (300 - len(CUT)) + CUT


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("Till is down!", "2026-03-14-till-is-down-incident-1"),
        ("???", "2026-03-14-incident-1"),
        (f"{'x' * 59} y", f"2026-03-14-{'x' * 59}-incident-1"),
    ],
)
def test_a_file_is_named_after_its_day_its_title_and_its_incident(title: str, stem: str) -> None:
    assert file_stem(incident(title=title), str) == stem
