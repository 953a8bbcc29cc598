"""What the chats show of confidence: a call that reaches the right people and nobody else, and the alarm's picture."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from adapters.slack.render import render as in_slack
from adapters.teams.render import render as in_teams
from core.model.conversation import Place, Platform
from core.model.messages import DriftAlarm, OwnerPing
from tests.fakes import adaptive_card, block_kit
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, FakeSlack
from tests.samples import CALIBRATED, SAMPLES, drift_alarm

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def alarm() -> DriftAlarm:
    return drift_alarm()


async def test_the_alarm_in_slack_has_its_diagram_in_its_thread(alarm: DriftAlarm) -> None:
    async with FakeSlack() as slack:
        messenger = SlackMessenger(slack_client(BOT_TOKEN, slack.url))
        reference = await messenger.post(Place(Platform.SLACK, CHANNEL), alarm, "drift")
        (picture,) = slack.files.values()
        assert PNG in picture
        (shared,) = slack.shared
        assert (shared["channel_id"], shared["thread_ts"]) == (CHANNEL, reference.message_id)


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_an_alarm_whose_picture_slack_refuses_stands_all_the_same(alarm: DriftAlarm, method: str) -> None:
    async with FakeSlack() as slack:
        slack.refuse(200, '{"ok": false, "error": "missing_scope"}', method=method)
        await SlackMessenger(slack_client(BOT_TOKEN, slack.url)).post(Place(Platform.SLACK, CHANNEL), alarm, "drift")
        (message,) = slack.messages
        assert "has drifted" in message["text"]


def test_the_alarm_in_teams_has_its_diagram_in_the_card(alarm: DriftAlarm) -> None:
    (picture,) = adaptive_card.of_type(in_teams(alarm).content, "Image")
    assert b64decode(picture["url"].partition(",")[2]).startswith(PNG)


def test_a_ping_mentions_the_teams_user_group_in_slack() -> None:
    (text,) = block_kit.texts(in_slack(SAMPLES["ping"]).blocks)
    assert text.startswith("<!subteam^S0PAYMENTS>: ")


@pytest.mark.parametrize("mention", ["!channel", "here", "S0|@everyone", "S0><!channel>", ""])
def test_a_ping_never_mentions_a_whole_channel(mention: str) -> None:
    rendered = in_slack(OwnerPing("Payments", mention, CALIBRATED))
    assert "<!" not in json.dumps([rendered.text, rendered.blocks])


def test_a_ping_in_teams_mentions_the_configured_person_and_nothing_else() -> None:
    content = in_teams(OwnerPing("Pay</at><at>all", "pay@lantern.example", CALIBRATED)).content
    (entity,) = content["msteams"]["entities"]
    assert entity["mentioned"]["id"] == "pay@lantern.example"
    assert entity["text"] == content["body"][0]["text"]
    assert entity["text"].count("<at>") == 1
