from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from markdown_it import MarkdownIt

from core.incidents.postmortem import (
    NOT_KNOWN,
    as_markdown,
    draft_postmortem,
    escaped,
    offers_postmortem,
    worth_a_postmortem,
)
from core.model.answer import Citation
from core.model.findings import Runbook, ThreadNote, TimelineEntry
from core.model.incident import Incident, Resolution
from tests.cases import every_case
from tests.samples import START, explained_incident, explanation, hypothesis, incident, resolved_incident

RESOLVED = resolved_incident()
TITLES = ["Summary", "Timeline", "Impact", "Cause", "Detection", "What went well", "Actions"]
APPENDIX = "Appendix: ruled out"
EVIL = "<script>x</script> [a](https://evil.example) `b` **c** @channel | https://evil.example # h"


def lines(subject: Incident, title: str) -> list[str]:
    (section,) = [each for each in draft_postmortem(subject).sections if each.title == title]
    return [line.text for line in section.lines]


@pytest.mark.parametrize(
    "subject", [RESOLVED, RESOLVED.with_findings(explanation=None), RESOLVED.with_findings(owner=None)]
)
def test_every_line_has_its_evidence_or_says_that_nothing_is_known(subject: Incident) -> None:
    draft = draft_postmortem(subject)
    appendix = [APPENDIX] if subject.findings.explanation is not None else []
    assert [section.title for section in draft.sections] == TITLES + appendix
    for section in draft.sections:
        assert section.lines
        for line in section.lines:
            assert line.sources or NOT_KNOWN in line.text
            assert all(1 <= number <= len(draft.sources) for number in line.sources)


def test_every_text_of_it_stands_in_the_record() -> None:
    draft = draft_postmortem(RESOLVED)
    record = repr(RESOLVED)
    assert all(source.quote in record for source in draft.sources)


def test_the_cause_is_told_with_what_shows_it() -> None:
    draft = draft_postmortem(RESOLVED)
    (section,) = [each for each in draft.sections if each.title == "Cause"]
    shown = [draft.sources[number - 1].quote for number in section.lines[0].sources]
    assert shown == [evidence.quote for evidence in hypothesis().evidence]
    assert section.lines[0].text.startswith("Most probable: ")


def test_what_a_person_noted_comes_before_what_was_concluded() -> None:
    noted = replace(RESOLVED, resolution=Resolution("A typo in the pool size", "Reverted", "Payments"))
    assert lines(noted, "Cause")[0] == "As noted by a person: A typo in the pool size"
    assert "What helped, as noted by a person: Reverted" in lines(noted, "What went well")
    assert "Owner, as noted by a person: Payments." in lines(noted, "Summary")


def test_without_a_culprit_none_is_invented() -> None:
    ended = RESOLVED.with_findings(explanation=explanation(hypotheses=(), badge=None, prediction_id=None))
    assert lines(ended, "Cause") == [f"Cause: {NOT_KNOWN}."]
    assert lines(ended, APPENDIX) == ["Deployment of web-store 11.2: it calls nothing that is slow."]


def test_actions_come_from_its_own_cause_and_runbook_alone() -> None:
    cited = Citation(1, "d1", "p1", "Pool", "Exhaustion", "", "", "Revert the commit.")
    runbook = Runbook("https://handbook.example/pool", cited, "Revert the commit.", "git revert HEAD")
    actions = lines(RESOLVED.with_findings(runbook=runbook), "Actions")
    assert hypothesis().next_check in actions[0]
    assert "Revert the commit. Command: git revert HEAD" in actions[1]
    assert len(actions) == 2, "what mended other incidents is no action of this one"


def test_the_timeline_is_in_order_and_says_when_it_ended() -> None:
    told = lines(RESOLVED, "Timeline")
    assert told == sorted(told)
    assert told[-1] == "2026-03-14 10:02:00 UTC The last alert was resolved."


def test_an_entry_of_the_timeline_leads_to_the_evidence_that_it_tells_of() -> None:
    found = hypothesis().evidence[0]
    assert found.at is not None
    entry = TimelineEntry(found.at, "config-4711: hikari.maximumPoolSize from 40 to 4")
    draft = draft_postmortem(RESOLVED.with_findings(explanation=explanation(timeline=(entry,))))
    (section,) = [each for each in draft.sections if each.title == "Timeline"]
    assert draft.sources[section.lines[0].sources[0] - 1].quote == found.quote


@pytest.mark.parametrize(
    ("after", "text", "is_alert"),
    [
        (timedelta(), "payment-gateway p99 latency above 2 s fires", True),
        (timedelta(), "A canary began", False),
        (timedelta(minutes=1), "payment-gateway p99 latency above 2 s fires", False),
    ],
)
def test_entry_of_timeline_leads_to_alert_only_if_it_tells_of_it(after: timedelta, text: str, is_alert: bool) -> None:
    entry = TimelineEntry(RESOLVED.started_at + after, text)
    alerts = (*RESOLVED.alerts, replace(RESOLVED.alerts[0], name="Another"))
    told = replace(RESOLVED, alerts=alerts)
    draft = draft_postmortem(told.with_findings(explanation=explanation(hypotheses=(), timeline=(entry,))))
    (section,) = [each for each in draft.sections if each.title == "Timeline"]
    source = draft.sources[next(each for each in section.lines if text in each.text).sources[0] - 1]
    assert source.label.startswith(f"Alert {alerts[0].name}, ") is is_alert


def test_in_markdown_every_link_leads_to_a_piece_of_evidence() -> None:
    text = as_markdown(draft_postmortem(RESOLVED))
    links = set(re.findall(r"\]\(#evidence-(\d+)\)", text))
    headings = re.findall(r"^### Evidence (\d+)$", text, re.MULTILINE)
    assert links == set(headings)
    assert "<https://git.marigold-ferries.example/config/4711>" in text


def test_the_words_of_others_are_text_and_nothing_else() -> None:
    cases: list[str] = [EVIL, f"- {EVIL}", f"1. {EVIL}", "===", "---", "\u202eabc", "a\n# b", "~~~ x", ""]
    for text in cases:
        tokens = MarkdownIt("commonmark", {"html": True}).parse(f"- {escaped(text)} end")
        kinds = {child.type for token in tokens for child in (token, *(token.children or ()))}
        assert kinds <= {
            *("bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close"),
            *("paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak"),
        }, text


def test_a_text_at_the_beginning_of_a_line_is_no_command_to_gitlab() -> None:
    assert escaped("/close") == "\\/close"


def test_hostile_texts_anywhere_make_no_link_but_ours() -> None:
    hostile = replace(RESOLVED.with_findings(explanation=explanation(ruled_out=(EVIL,))), title=EVIL, taken_by=EVIL)
    html = MarkdownIt("commonmark", {"html": True}).render(as_markdown(draft_postmortem(hostile)))
    assert "<script" not in html
    assert set(re.findall(r'href="([^"#][^"]*)"', html)) == {"https://git.marigold-ferries.example/config/4711"}


def test_it_is_written_when_it_is_over_and_something_was_found() -> None:
    cases: list[tuple[Incident, bool]] = [
        (RESOLVED, True),
        (explained_incident(), False),
        (RESOLVED.with_findings(owner=None), True),
        (RESOLVED.with_findings(explanation=None), True),
        (RESOLVED.with_findings(explanation=None, owner=None), False),
        (replace(RESOLVED.with_findings(explanation=None, owner=None), resolution=Resolution("A typo")), True),
        (incident(), False),
    ]
    for subject, worth in cases:
        assert worth_a_postmortem(subject) is worth, (subject, worth)


@every_case(
    ("minutes", "touched", "offered"),
    [
        (4, {}, False),
        (5, {}, True),
        (4, {"taken_by": "Ada"}, True),
        (4, {"notes": (ThreadNote("Ada", "the pool", START),)}, True),
        (4, {"resolution": Resolution("A typo")}, True),
    ],
)
def test_a_draft_is_offered_unless_the_incident_was_short_and_nobody_touched_it(
    minutes: float, touched: dict[str, Any], offered: bool
) -> None:
    usual = {"taken_by": "", "hops": (), "notes": (), "resolution": None, "filings": (), "alerts": ()}
    over = replace(RESOLVED, resolved_at=RESOLVED.started_at + timedelta(minutes=minutes), **(usual | touched))
    assert offers_postmortem(over) is offered


def test_it_began_when_the_alert_says() -> None:
    assert f"alertmanager alerted at {START:%Y-%m-%d %H:%M:%S} UTC." in lines(RESOLVED, "Detection")
