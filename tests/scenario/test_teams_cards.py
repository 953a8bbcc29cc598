"""What Teams shows: every message at its smallest, as it usually is, and at its largest."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.teams.elements import Card
from adapters.teams.render import render
from core.answering.answer_view import NEAREST
from core.model.findings import Gap, GapReason
from core.model.messages import AnswerMessage, IncidentDetails, IncidentMessage, Message, Notice
from tests.cases import every_case
from tests.fakes.adaptive_card import of_type, problems, texts
from tests.fakes.text_everywhere import everywhere
from tests.samples import (
    abstention,
    answer,
    citation,
    explained_incident,
    explanation,
    hypothesis,
    incident,
    resolved_incident,
)

MARK = "zqx"  # stands in no word of ours

INJECTIONS = {
    "a mention": f"<at>everyone</at> {MARK}",
    "a mention in another case": f"< AT id='1'>{MARK}</AT><aT>all</at >",
    "a Markdown link": f"[{MARK}](https://attacker.example/)",
    "a link to a script": f"[{MARK}](javascript:alert(1))",
    "a bare script address": f"javascript:alert('{MARK}')",
    "an image": f"![{MARK}](https://attacker.example/pixel.png)",
    "HTML": f"<b onclick='x'>{MARK}</b><a href='https://attacker.example'>here</a><script>1</script>",
    "a heading and a list": f"# {MARK}\n- one\n- two\n1. three",
    "a code fence": f"```\n{MARK}\n\n{MARK}\n```",
    "a line that begins as Unicode has it": f"\x85{MARK}",
    "a table": f"| {MARK} | <at>b</at> |\n|---|---|\n| [{MARK}](https://attacker.example/) |",
    "a table without cells": "|\n|",
    "a badge": f"●●● 99 % {MARK}",
    "a template": "${" + MARK + "} {{" + MARK + "}} {{DATE(2026-01-01, SHORT)}}",
    "text turned around": f"\u202e{MARK}\u2066\u200b\ufeff",
    "control characters": f"\x00\x1b[31m{MARK}\x07\r\n",
    "half a character": f"\ud83d{MARK}",
    "an address with a password": f"https://user:secret@attacker.example/{MARK}",
}


def shown(message: Message) -> str:
    return "\n".join(texts(render(message).content))


def assert_taken_by_teams(card: Card) -> None:
    assert problems(card.content, card.summary) == []


@settings(max_examples=settings().max_examples // 4)  # each renders every message
@given(text=st.text(max_size=3_000), count=st.integers(1, 60))
def test_whatever_is_written_is_taken_by_teams(text: str, count: int) -> None:
    for message in everywhere(text, count).values():
        assert_taken_by_teams(render(message))


@every_case("name", INJECTIONS)
def test_untrusted_text_stays_text(name: str) -> None:
    for message in everywhere(INJECTIONS[name]).values():
        card = render(message)
        assert_taken_by_teams(card)
        # A TextBlock is parsed as Markdown and for mentions: it holds words of ours alone.
        assert not any(MARK in block["text"] for block in of_type(card.content, "TextBlock"))
        assert "<at" not in json.dumps(card.content).lower()
        assert card.content["msteams"] == {"width": "Full"}  # no entities, so nobody is mentioned
        assert not any(MARK in action["url"] for action in of_type(card.content, "Action.OpenUrl"))
        assert all("attacker" not in action["url"] for action in of_type(card.content, "Action.OpenUrl"))
        assert all(text.isprintable() for text in texts(card.content))


def test_only_citations_and_sources_are_links() -> None:
    said = "See https://attacker.example/ and [this](https://attacker.example/)."
    card = render(AnswerMessage(answer(sentences=(answer().sentences[0].__class__(said, (1,)),))))
    links = {action["url"] for action in of_type(card.content, "Action.OpenUrl")}
    assert links == {citation.url for citation in answer().citations}


def test_a_cut_list_says_how_much_is_missing() -> None:
    many = tuple(f"Deployment {number} of web-store: it calls nothing that is slow." for number in range(60))
    text = shown(IncidentDetails(explained_incident(explanation=explanation(ruled_out=many))))
    assert "and 20 more of them" in text


def test_a_cut_text_ends_with_an_ellipsis() -> None:
    assert any(line.endswith("…") for line in texts(render(Notice("word " * 2_000)).content))


# --- answers ---------------------------------------------------------------------------------------------------------


def test_an_answer_is_cited_sentence_by_sentence() -> None:
    card = render(AnswerMessage(answer()))
    lines = texts(card.content)
    assert lines[0] == "Run slipway rollback SERVICE; it returns the canary to 0 % within 90 seconds. [1]"
    assert lines[1] == "During the freeze the release captain must agree first. [1] [2]"
    assert lines[2:] == [
        "Sources",
        "[1] Rolling back › During a canary · updated 2026-02-11",
        "[2] Change freeze › Exceptions · updated 2026-02-11",
        "●●● 86 %",
    ]
    assert [(action["title"], action.get("mode")) for action in card.content["actions"]] == [
        ("Ask a person", None),
        ("Helpful", "secondary"),  # because Teams shows thumbs of its own
        ("Wrong", "secondary"),
        ("Why?", "secondary"),
    ]
    assert {action["data"]["subject"] for action in card.content["actions"]} == {"answer-1"}


def test_a_command_in_an_answer_is_shown_as_code() -> None:
    runs = list(of_type(render(AnswerMessage(answer())).content, "TextRun"))
    assert [run["text"] for run in runs if run.get("fontType") == "Monospace"] == ["slipway rollback SERVICE"]


def test_a_citation_leads_to_the_heading() -> None:
    cited = citation(url="https://handbook.example/page")
    card = render(AnswerMessage(answer(citations=(cited,))))
    urls = {action["url"] for action in of_type(card.content, "Action.OpenUrl")}
    assert urls == {"https://handbook.example/page#during-a-canary"}


def test_an_abstention_shows_the_nearest_and_asks_for_no_judgement() -> None:
    card = render(AnswerMessage(abstention()))
    assert texts(card.content)[0] == NEAREST
    assert "• Rolling back › During a canary · updated 2026-02-11" in texts(card.content)
    assert [action["title"] for action in card.content["actions"]] == ["Ask a person"]


# --- incidents -------------------------------------------------------------------------------------------------------


def test_the_state_is_said_in_words_and_not_by_colour_alone() -> None:
    for message, style, word in [
        (IncidentMessage(incident()), "attention", "Critical"),
        (IncidentMessage(resolved_incident()), "good", "Resolved"),
    ]:
        header = render(message).content["body"][0]
        assert header["style"] == style
        assert word in texts(header)[1]


def test_details_hold_the_evidence_and_what_would_disprove_it() -> None:
    text = shown(IncidentDetails(explained_incident(explanation=explanation(gaps=(Gap("loki", GapReason.TIMED_OUT),)))))
    for part in (
        "Why this owner",
        "It runs payment-gateway.",
        "1. A configuration change lowered",
        "hikari.maximumPoolSize: 40 -> 4",
        "03-14 09:19:00 · config-4711 · change",
        "Latency stays high although the pool has free connections.",
        "Ruled out",
        "Deployment of web-store 11.2",
        "INC-0042 payment-gateway runs out of connections",
        "Timeline (UTC)",
        "09:19:00 · config-4711 applied to payment-gateway",
        "Not read",
        "loki: timed out",
    ):
        assert part in text


def test_rivals_of_a_cause_bear_no_badge() -> None:
    text = shown(IncidentDetails(explained_incident(explanation=explanation(hypotheses=(hypothesis(), hypothesis(2))))))
    assert text.count("strong") == 1
