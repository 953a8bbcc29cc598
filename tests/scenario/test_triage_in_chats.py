"""On-call, severity and duplicates as each chat shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from adapters.console.render import verdict_subjects
from adapters.slack.render import render as in_slack
from adapters.teams.render import render as in_teams
from adapters.terminal import TerminalMessenger
from core.messages import VERDICT_LABELS, IncidentMessage, OwnerPing, OwnerQuestion, Verdict
from core.samples import (
    CALIBRATED,
    SAMPLES,
    explained_incident,
    owner,
    resolved_incident,
    suggested_duplicate,
    suggested_severity,
    unclear_owner,
)
from core.team import TAG
from tests.fakes import adaptive_card, block_kit

SUGGESTED = explained_incident(suggested_severity=suggested_severity(), suggested_duplicate=suggested_duplicate())


def slack(message: IncidentMessage | OwnerPing | OwnerQuestion) -> str:
    return "\n".join(block_kit.texts(in_slack(message).blocks))


def teams(message: IncidentMessage | OwnerPing | OwnerQuestion) -> str:
    return "\n".join(adaptive_card.texts(in_teams(message).content))


@pytest.mark.parametrize("shown", [slack, teams])
def test_what_is_suggested_stands_with_its_evidence_and_a_badge(shown) -> None:
    text = shown(IncidentMessage(SUGGESTED))
    assert "looks critical" in text
    assert "8 of the 10 most similar incidents were critical: INC-7" in text
    assert "probably of payment-gateway answers slowly (incident-0)" in text
    assert "the same service, payment-gateway" in text
    assert "not calibrated yet" in text


@pytest.mark.parametrize("shown", [slack, teams])
def test_what_a_person_said_is_no_suggestion_any_more(shown) -> None:
    text = shown(IncidentMessage(replace(SUGGESTED, severity_by="Ada", duplicate_of="incident-0")))
    assert "critical, says Ada" in text
    assert "probably of" not in text
    assert "of payment-gateway answers slowly (incident-0)" in text


def test_the_buttons_say_of_which_claim_they_speak() -> None:
    found = block_kit.buttons(in_slack(IncidentMessage(SUGGESTED)).blocks)
    claims = {label: found[label]["value"] for label in ("Right severity", "Wrong severity", "It is a duplicate")}
    assert claims == {
        "Right severity": "severity-1",
        "Wrong severity": "severity-1",
        "It is a duplicate": "duplicate-1",
    }
    actions = {each["title"]: each["data"] for each in in_teams(IncidentMessage(SUGGESTED)).content["actions"][:-1]}
    assert actions["No duplicate"]["verdict"] == Verdict.DUPLICATE_WRONG
    assert actions["No duplicate"]["subject"] == "duplicate-1"


@pytest.mark.parametrize("shown", [slack, teams])
def test_nothing_is_shown_where_nothing_is_suggested(shown) -> None:
    text = shown(IncidentMessage(explained_incident()))
    assert "Duplicate" not in text
    assert "looks" not in text


@pytest.mark.parametrize("shown", [slack, teams])
def test_who_is_on_call_is_unknown_where_the_schedule_did_not_say(shown) -> None:
    unknown = explained_incident(owner=owner(on_call=(), on_call_unknown="PagerDuty"))
    assert "On call: unknown, PagerDuty did not say" in shown(IncidentMessage(unknown))


@pytest.mark.parametrize("shown", [slack, teams])
def test_a_ping_names_who_is_on_call(shown) -> None:
    assert "On call: Asha Brandt" in shown(OwnerPing("Payments", "", CALIBRATED, on_call=("Asha Brandt",)))


QUESTION = "Is this yours, Payments (on call: Asha Brandt, Mateo Silvestri) or Bookings (on call: unknown, PagerDuty did not say)?"


@pytest.mark.parametrize("shown", [slack, teams])
def test_where_nobody_can_be_named_two_teams_are_asked_and_the_others_stand_below(shown) -> None:
    text = shown(IncidentMessage(explained_incident(owner=unclear_owner()))).replace("*", "")
    assert QUESTION in text
    assert "not clear · ●●● 86 %" in text
    assert "Less likely: Fleet" in text
    only_two = unclear_owner(candidates=owner().candidates)
    assert "Less likely" not in shown(IncidentMessage(explained_incident(owner=only_two)))


@pytest.mark.parametrize("shown", [slack, teams])
def test_an_incident_from_before_two_teams_were_asked_shows_whom_it_is_near(shown) -> None:
    text = shown(IncidentMessage(explained_incident(owner=unclear_owner(asked=()))))
    assert "not clear, a person should decide" in text
    assert "Nearest: Payments, Bookings, Fleet" in text


def test_what_somebody_has_can_be_taken_over_and_what_is_over_cannot() -> None:
    for incident, offered in (
        (explained_incident(), "Take it"),
        (explained_incident(taken_by="Ada"), "Take over"),
        (replace(resolved_incident(), taken_by="Ada"), ""),
    ):
        in_slack_now = set(block_kit.buttons(in_slack(IncidentMessage(incident)).blocks))
        in_teams_now = {each["title"] for each in in_teams(IncidentMessage(incident)).content["actions"]}
        on_the_page = {VERDICT_LABELS[verdict] for verdict in verdict_subjects(incident)}
        for titles in (in_slack_now, in_teams_now, on_the_page):
            assert "".join(titles & {"Take it", "Take over"}) == offered


@pytest.mark.parametrize("shown", [slack, teams])
def test_many_people_on_call_are_counted(shown) -> None:
    (team, _) = unclear_owner().asked
    crowded = replace(team, on_call=tuple(f"Person {number}" for number in range(9)))
    text = shown(IncidentMessage(explained_incident(owner=unclear_owner(asked=(crowded,))))).replace("*", "")
    assert "Is this yours, Payments (on call: Person 0, Person 1, Person 2 and 6 more)?" in text


def test_a_question_to_two_teams_mentions_each_that_has_a_mention() -> None:
    payments, bookings = unclear_owner().asked
    said = slack(OwnerQuestion(((payments, "S0PAY"), (bookings, ""))))
    assert said.startswith("Is this yours, <!subteam^S0PAY> (on call: Asha Brandt, Mateo Silvestri) or *Bookings* (on")
    card = in_teams(OwnerQuestion(((payments, "asha@marigold.example"), (bookings, f"{TAG}MjQz"))))
    assert [entity["mentioned"]["id"] for entity in card.content["msteams"]["entities"]] == [
        "asha@marigold.example",
        "MjQz",
    ]
    mentions, question, *_ = adaptive_card.texts(card.content)
    assert mentions == "<at>Payments</at> <at>Bookings</at>"
    assert question == QUESTION
    by_name = in_teams(OwnerQuestion(((payments, ""), (bookings, "")))).content
    assert "<at>" not in str(by_name)
    assert QUESTION in adaptive_card.texts(by_name)


@pytest.mark.parametrize("mention", ["!channel", "here", "S0|@everyone", "S0><!channel>"])
def test_a_question_to_two_teams_never_mentions_a_whole_channel(mention: str) -> None:
    assert "<!" not in slack(OwnerQuestion(tuple((team, mention) for team in unclear_owner().asked)))


def test_a_tag_in_teams_is_mentioned_as_a_tag_and_a_person_as_a_person() -> None:
    ((tag,), (person,)) = (
        in_teams(OwnerPing("Payments", mention, CALIBRATED)).content["msteams"]["entities"]
        for mention in (f"{TAG}MjQzMmI1N2I=", "asha@marigold.example")
    )
    assert tag["mentioned"] == {"id": "MjQzMmI1N2I=", "name": "Payments", "type": "tag"}
    assert person["mentioned"] == {"id": "asha@marigold.example", "name": "Payments"}


def test_a_tag_is_no_user_group_of_slack() -> None:
    assert "<!subteam" not in slack(OwnerPing("Payments", f"{TAG}MjQzMmI1N2I=", CALIBRATED))


async def test_the_terminal_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert "incident with suggestions" in SAMPLES
    messenger = TerminalMessenger(Console(width=400))
    await messenger.post(SUGGESTED.place, IncidentMessage(SUGGESTED), "x")
    said = capsys.readouterr().out
    assert "Severity: looks critical" in said
    assert "Duplicate: probably of payment-gateway answers slowly (incident-0)" in said
    await messenger.post(SUGGESTED.place, SAMPLES["incident whose owner is unclear"], "y")
    await messenger.post(SUGGESTED.place, SAMPLES["question to two teams"], "z")
    assert capsys.readouterr().out.count(QUESTION) == 2
