"""“Stakeholder update…”: a draft without jargon and names, which a person edits and sends to a channel that they choose."""

from __future__ import annotations

import time

import pytest

from tests.fakes import block_kit, slack_payloads
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done, of_kind
from tests.scenario.filled_forms import PAGES, filled, incident_in_slack, slack_sends
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")
JARGON = ("p99", "latency", "pool", "cfg-17", "Ada", "Payments", "alert", "incident")


async def test_in_slack_an_update_is_edited_in_a_form_and_sent_once_where_everybody_may_know(bot: RunningBot) -> None:
    _, posted = await incident_in_slack(bot, "belt stuck")
    press = slack_payloads.button_press(block_kit.buttons(posted["blocks"])["Stakeholder update…"], posted)
    await slack_sends(bot, press)
    view = bot.slack.views[-1]
    assert block_kit.view_problems(view) == []
    draft = str([each for each in view["blocks"] if each.get("block_id") != "team"])
    assert not [word for word in JARGON if word in draft]
    assert "What is affected: till does not work, or not reliably, since " in draft
    assert "What is being done: " in draft
    assert "Next update: by " in draft
    assert "#pages" in str(view["blocks"])
    assert "#keepers" not in str(view["blocks"]), "the name of a private channel is private"

    sent = filled(view, team="pages", title="The tills of the shops <!channel>")
    before = len(bot.slack.messages)
    for _ in range(2):  # Slack sends it twice
        await slack_sends(bot, sent)
    await bot.slack.until(
        lambda: any("sent an update to #pages" in str(each["blocks"]) for each in bot.slack.replies(posted["ts"]))
    )
    updates = [each for each in bot.slack.messages[before:] if "The tills of the shops" in str(each["blocks"])]
    assert [(each["channel"], each.get("thread_ts")) for each in updates] == [(PAGES, None)]
    assert "<!channel>" not in str(updates[0]["blocks"])
    assert "with Plumbline." in str(updates[0]["blocks"])


@pytest.mark.parametrize("channel", ["keepers", "partners", "elsewhere"])
async def test_an_update_goes_to_no_channel_that_was_not_offered(bot: RunningBot, channel: str) -> None:
    _, posted = await incident_in_slack(bot, f"belt torn {channel}")
    await slack_sends(
        bot, slack_payloads.button_press(block_kit.buttons(posted["blocks"])["Stakeholder update…"], posted)
    )
    forged = filled(bot.slack.views[-1])
    picked = {"text": {"type": "plain_text", "text": channel}, "value": channel}
    forged["view"]["state"]["values"]["team"]["team"]["selected_option"] = picked
    before = len(bot.slack.messages)
    await slack_sends(bot, forged | {"view": forged["view"] | {"id": f"V{time.monotonic_ns()}"}})
    await bot.slack.until(
        lambda: any("Nothing was sent" in str(each["blocks"]) for each in bot.slack.replies(posted["ts"]))
    )
    assert not [each for each in bot.slack.messages[before:] if each["channel"] != PAGES]


async def test_on_the_local_page_the_command_drafts_an_update_about_the_incident_of_a_service(bot: RunningBot) -> None:
    incident_id = await bot.deliver("update-console", alert("update-console", service="shelf"))
    assert incident_id is not None
    await bot.incident(incident_id, is_done)
    await bot.ask("help", "update shelf")
    drafts = await bot.until("help", lambda messages: of_kind(messages, "filing request"))
    draft = drafts[-1]
    assert "What is affected: shelf" in draft["payload"]["text"]
    assert "vault" not in draft["payload"]["targets"]
    await bot.submit(
        "console/feedback",
        message=str(draft["id"]),
        verdict="send-update",
        choice="incidents",
        title="Search in the shops",
        text="It is slow.",
        back="/?channel=help",
    )
    sent = await bot.until(
        "incidents",
        lambda messages: [
            each for each in of_kind(messages, "notice") if "Search in the shops" in str(each["payload"])
        ],
    )
    assert sent[-1]["payload"]["text"] == "Search in the shops\n\nIt is slow.\n\nSent by Operator with Plumbline."
