"""What the chats show of confidence: a call that reaches the right people and nobody else, and the alarm."""

from __future__ import annotations

import json

from adapters.slack.render import render as in_slack
from adapters.teams.render import render as in_teams
from core.model.messages import OwnerPing
from tests.cases import every_case
from tests.fakes import adaptive_card, block_kit
from tests.samples import CALIBRATED, SAMPLES, drift_alarm


def test_the_alarm_in_slack_tells_how_far_badges_are_off() -> None:
    assert "they are off by" in "\n".join(block_kit.texts(in_slack(drift_alarm()).blocks))


def test_the_alarm_in_teams_tells_how_far_badges_are_off() -> None:
    assert "they are off by" in "\n".join(adaptive_card.texts(in_teams(drift_alarm()).content))


def test_a_ping_mentions_the_teams_user_group_in_slack() -> None:
    (text,) = block_kit.texts(in_slack(SAMPLES["ping"]).blocks)
    assert text.startswith("<!subteam^S0PAYMENTS>: ")


@every_case("mention", ["!channel", "here", "S0|@everyone", "S0><!channel>", ""])
def test_a_ping_never_mentions_a_whole_channel(mention: str) -> None:
    rendered = in_slack(OwnerPing("Payments", mention, CALIBRATED))
    assert "<!" not in json.dumps([rendered.text, rendered.blocks])


def test_a_ping_in_teams_mentions_the_configured_person_and_nothing_else() -> None:
    content = in_teams(OwnerPing("Pay</at><at>all", "pay@lantern.example", CALIBRATED)).content
    (entity,) = content["msteams"]["entities"]
    assert entity["mentioned"]["id"] == "pay@lantern.example"
    assert entity["text"] == content["body"][0]["text"]
    assert entity["text"].count("<at>") == 1
