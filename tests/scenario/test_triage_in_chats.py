"""On-call as each chat shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from adapters.slack.render import render as in_slack
from adapters.teams.render import render as in_teams
from adapters.terminal import TerminalMessenger
from core.model.messages import IncidentMessage, OwnerPing, OwnerQuestion
from core.model.team import TAG
from core.views import I_AM_UNSURE
from tests.fakes import adaptive_card, block_kit
from tests.samples import (
    CALIBRATED,
    SAMPLES,
    explained_incident,
    unclear_owner,
)


def slack(message: IncidentMessage | OwnerPing | OwnerQuestion) -> str:
    return "\n".join(block_kit.texts(in_slack(message).blocks))


def teams(message: IncidentMessage | OwnerPing | OwnerQuestion) -> str:
    return "\n".join(adaptive_card.texts(in_teams(message).content))


@pytest.mark.parametrize("shown", [slack, teams])
def test_a_ping_names_who_is_on_call(shown) -> None:
    assert "On call: Asha Brandt" in shown(OwnerPing("Payments", "", CALIBRATED, on_call=("Asha Brandt",)))


QUESTION = "Is this yours, Payments (on call: Asha Brandt, Mateo Silvestri) or Bookings (on call: unknown, PagerDuty did not answer)?"


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
    assert question == f"{QUESTION} {I_AM_UNSURE}"
    by_name = in_teams(OwnerQuestion(((payments, ""), (bookings, "")))).content
    assert "<at>" not in str(by_name)
    assert adaptive_card.texts(by_name) == [f"{QUESTION} {I_AM_UNSURE}"]


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


async def test_the_terminal_asks_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    messenger = TerminalMessenger(Console(width=400))
    await messenger.post(explained_incident().placement.place, SAMPLES["incident whose owner is unclear"], "y")
    await messenger.post(explained_incident().placement.place, SAMPLES["question to two teams"], "z")
    assert capsys.readouterr().out.count(QUESTION) == 2
