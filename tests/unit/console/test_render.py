"""Rendering of the templates, and the helpers that they use."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bs4 import BeautifulSoup

from adapters.console.console import Renderer, web_url
from adapters.console.messages import ConsoleMessage, Content, PersonMessage, encode
from adapters.console.screens import Record
from core.model.badge import Estimator, PredictionKind
from core.model.messages import AnswerMessage, ButtonAction, IncidentMessage, Message
from core.views import message_view
from tests import samples as messages
from tests.cases import every_case
from tests.fakes.messages import telling

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
HOSTILE = '"><script>alert(1)</script><a href="javascript:x" onclick=\'x\'>{{ 7 * 7 }}'

RENDERER = Renderer(lambda: NOW, "Marigold Ferries")  # compiles its templates once


def shown(content: Content, labels: dict[str, bool] | None = None) -> BeautifulSoup:
    kind, payload = encode(content)
    message = ConsoleMessage(12, "incidents", None, kind, payload, NOW, 12)
    html = RENDERER.fragment("_message.html", "article", message, content, labels or {})
    return BeautifulSoup(html, "html.parser")


def test_only_addresses_of_the_web_are_links() -> None:
    cases: list[tuple[str, bool]] = [
        ("https://git.example/x", True),
        ("http://localhost:3000/d/1", True),
        ("javascript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("data:text/html,x", False),
        ("//evil.example", False),
        ("https:", False),
        ("http://[", False),
        ("", False),
    ]
    for url, kept in cases:
        assert web_url(url) == (url if kept else ""), (url, kept)


def test_the_sentence_that_answers_is_marked_in_a_longer_answer() -> None:
    marks = [mark.get_text() for mark in shown(AnswerMessage(messages.excerpt_answer())).select(".answer-text mark")]
    assert "".join(marks) == "Run slipway rollback SERVICE."


@every_case("message", telling(HOSTILE, count=2).values())
def test_hostile_text_stays_text(message: Message) -> None:
    html = shown(message)
    assert html.find("script") is None
    assert not any(name.startswith("on") for tag in html.find_all(True) for name in tag.attrs)
    assert all(str(link["href"]).startswith(("/", "http")) for link in html.find_all("a"))
    assert "{{ 7 * 7 }}" in html.get_text()


def test_what_a_person_writes_stays_as_it_was_written() -> None:
    said = shown(PersonMessage("You", "line one\n  <b>two</b> **three**")).select_one(".said")
    assert said is not None
    assert said.get_text() == "line one\n  <b>two</b> **three**"


def test_every_sentence_links_to_its_source_at_the_heading_with_the_quote() -> None:
    html = shown(AnswerMessage(messages.answer()))
    cited = [[chip.get_text() for chip in sentence.select("a.cite")] for sentence in html.select(".sentence")]
    assert cited == [["1"], ["1", "2"]]
    href = str(html.select("a.cite")[0]["href"])
    assert href.startswith("/documents/handbook/deployment/rolling-back.md?channel=incidents&quote=Run+%60slipway")
    assert href.endswith("#during-a-canary")


def test_a_badge_says_what_it_rests_on_to_whoever_points_at_it() -> None:
    html = shown(messages.SAMPLES["answer"])
    badge = html.select_one(".badge")
    assert badge is not None
    assert badge.get_text() == "●●● 86 %"
    assert "120 claims" in str(badge["title"])
    assert "120 claims" not in html.get_text()


def test_an_abstention_names_the_nearest_documents_and_can_only_be_handed_to_a_person() -> None:
    html = shown(messages.SAMPLES["abstention"])
    assert "I don’t know" in html.get_text()
    assert [link.get_text(" ", strip=True) for link in html.select(".answer-sources li > a")] == [
        "Rolling back › During a canary",
    ]
    assert [button["value"] for button in html.select("button")] == ["ask-a-person"]


def test_a_judged_prediction_shows_which_button_was_pressed() -> None:
    html = shown(messages.SAMPLES["answer"], {"answer-1": False})
    assert [button["value"] for button in html.select('button[aria-pressed="true"]')] == ["wrong"]


def test_a_raw_alert_is_shown_until_there_is_something_better() -> None:
    assert "booking-api reports timeouts" in shown(messages.SAMPLES["incident just arrived"]).get_text()
    assert "booking-api reports timeouts" not in shown(messages.SAMPLES["incident explained"]).get_text()


@pytest.mark.parametrize("sample", ["incident whose owner is unclear", "question to two teams"])
def test_where_nobody_can_be_named_two_teams_are_asked(sample: str) -> None:
    asked = "Is this yours, Payments (on call: Asha Brandt, Mateo Silvestri) or Bookings (on call: unknown, PagerDuty"
    assert f"{asked} did not answer)?" in shown(messages.SAMPLES[sample]).get_text()


def test_a_team_whose_name_is_markup_is_asked_by_it() -> None:
    team = replace(messages.unclear_owner().asked[0], team_name="<b>Pay</b> & {team}", on_call=("<i>Asha</i>",))
    asked = messages.explained_incident(owner=messages.unclear_owner(asked=(team,)))
    text = shown(IncidentMessage(asked)).get_text()
    assert "Is this yours, <b>Pay</b> & {team} (on call: <i>Asha</i>)?" in text


def test_only_what_can_be_judged_is_asked_for() -> None:
    arrived = messages.incident()
    offered = (ButtonAction.TAKE_IT, ButtonAction.BELONGS, ButtonAction.WRITE_UPDATE)
    assert message_view(IncidentMessage(arrived)).subjects == dict.fromkeys(offered, "incident-1")
    assert message_view(IncidentMessage(messages.explained_incident())).subjects[ButtonAction.CAUSE_RIGHT] == "cause-1"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (NOW - timedelta(hours=2), "07:30"),
        (NOW - timedelta(days=3), "11 Mar 09:30"),
        (NOW - timedelta(days=400), "7 Feb 2025 09:30"),
    ],
)
def test_a_time_says_as_much_as_a_reader_of_today_needs(at: datetime, text: str) -> None:
    kind, payload = encode(PersonMessage("You", "x"))
    message = ConsoleMessage(1, "help", None, kind, payload, at, 1)
    html = RENDERER.fragment("_message.html", "article", message, PersonMessage("You", "x"), {})
    time = BeautifulSoup(html, "html.parser").find("time")
    assert time is not None
    assert time.get_text() == text
    assert time["datetime"] == at.isoformat()


@every_case("kind", PredictionKind)
def test_the_predictions_page_shows_the_record_of_every_kind_of_claim(kind: PredictionKind) -> None:
    record = Record(Estimator(kind, "evidence", "1"), 3, 1, None, None, None)
    html = RENDERER.page("predictions.html", records=[record], claims=[], titles={}, kind="", outcome="")
    assert "3 right" in html
