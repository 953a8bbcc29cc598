"""“Wrong” asks what is right; once somebody confirmed it, it is what Plumbline answers with."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import aiohttp
import pytest

from adapters.slack.render import render
from core.model.message_view import Feedback
from core.model.messages import ButtonAction, CorrectionRequest
from tests.fakes import slack_api, slack_payloads
from tests.fakes.block_kit import buttons, texts
from tests.fakes.slack_api import CHANNEL, PRIVATE_CHANNEL
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import mention
from tests.fakes.teams_adapter import open_teams
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import of_kind

INES, DANA = "U0INES", "U0DANA"


async def press(
    bot: RunningBot, posted: dict[str, Any], label: str, person: str, typed: str = "", trigger: str = "1.1.fresh"
) -> None:
    payload = slack_payloads.button_press(buttons(posted["blocks"])[label], posted, person)
    payload["trigger_id"] = trigger
    payload["actions"][0]["action_ts"] = f"{time.time():.6f}"
    if typed:
        payload["state"] = {"values": {"correction": {"correction": {"type": "plain_text_input", "value": typed}}}}
    body = slack_payloads.interaction(payload)
    headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/x-www-form-urlencoded"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{bot.address}slack/events", data=body, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()


def shown(message: dict[str, Any]) -> str:
    return "\n".join(texts(message["blocks"]))


async def reply(bot: RunningBot, thread: str, label: str) -> dict[str, Any]:
    """The reply in the thread that has a button with this label, once it is there."""

    def found() -> list[dict[str, Any]]:
        return [message for message in bot.slack.replies(thread) if label in buttons(message["blocks"])]

    await bot.slack.until(found)
    return found()[-1]


@pytest.mark.asyncio(loop_scope="session")
async def test_what_somebody_in_slack_says_is_right_is_answered_once_somebody_else_confirmed_it(
    bot: RunningBot,
) -> None:
    thread = await bot.slack.asks(bot.address, "how long does the rebuild of the shelf index take?")
    answer = await reply(bot, thread, "Wrong")
    await press(bot, answer, "Wrong", INES, trigger=slack_api.EXPIRED)  # so that no form opens
    request = await reply(bot, thread, "Send")
    await press(bot, request, "Send", INES, "Since the new disks the rebuild of the shelf index takes 7 minutes.")
    proposal = await reply(bot, thread, "Confirm")
    assert "7 minutes" in shown(proposal)
    await press(bot, proposal, "Confirm", DANA)
    await bot.slack.until(lambda: "Confirmed by" in shown(bot.slack.message(CHANNEL, proposal["ts"])))
    assert "Confirm" not in buttons(bot.slack.message(CHANNEL, proposal["ts"])["blocks"])

    again = await bot.slack.asks(bot.address, "how long does the rebuild of the shelf index take?")
    better = await reply(bot, again, "Wrong")
    assert "7 minutes" in shown(better)
    assert re.search(r"Confirmed by ines on \d{4}-\d\d-\d\d, expires \d{4}-\d\d-\d\d", shown(better))


@pytest.mark.asyncio(loop_scope="session")
async def test_on_the_local_page_an_answer_is_corrected_and_confirmed_by_the_operator(bot: RunningBot) -> None:
    async def post(path: str, **form: str) -> None:
        headers = {"HX-Request": "true"}
        async with bot.session.post(f"{bot.address}{path}", data=form, headers=headers) as response:
            assert response.status in (200, 204), await response.text()

    async def message(kind: str, holding: str) -> dict[str, Any]:
        def found(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
            of = [each for each in of_kind(messages, kind) if holding in json.dumps(each["payload"])]
            return of[-1] if of else None

        return await bot.until("vault", found)

    await bot.ask("vault", "who grants exceptions from the deployment freeze?")
    answer = await message("answer", "duty manager")
    await post("console/feedback", message=str(answer["id"]), verdict="wrong")
    request = await message("correction request", answer["payload"]["answer"]["prediction_id"])
    right = "Exceptions from the deployment freeze are granted by the harbour master, key AKIAIOSFODNN7EXAMPLE."
    await post("console/feedback", message=str(request["id"]), verdict="correction", text=right)
    proposal = await message("proposal", "harbour master")
    assert "AKIAIOSFODNN7EXAMPLE" not in json.dumps(proposal)
    await post("console/feedback", message=str(proposal["id"]), verdict="confirm")
    await message("proposal", '"confirmed_by": {')

    async with bot.session.get(bot.address, params={"channel": "vault"}) as response:
        page = await response.text()
    assert "The right answer" in page
    assert "Confirmed by the operator" in page

    # What was said in a private channel is answered there and nowhere else.
    question = "who grants exceptions from the deployment freeze, the harbour master?"
    await bot.ask("vault", question)
    assert "Confirmed by the operator" in json.dumps(await message("answer", "harbour master"))
    await bot.ask("help", question)
    answered = await bot.until(
        "help",
        lambda messages: [m for m in of_kind(messages, "answer") if m["payload"]["answer"]["question"] == question],
    )
    assert "Confirmed by" not in json.dumps(answered)


async def test_what_was_typed_in_slack_comes_with_the_button_and_with_who_reads_along() -> None:
    async with slack_bot() as chat:
        typed = await pressed_in_slack(chat, "in `till.yaml`")
        assert (typed.verdict, typed.subject, typed.text) == (ButtonAction.CORRECTION, "p1", "in `till.yaml`")
        assert typed.audience.disclosed_to == {f"channel:slack:{PRIVATE_CHANNEL}", "channel:payments-private"}


async def pressed_in_slack(chat: SlackBot, text: str) -> Feedback:
    rendered = render(CorrectionRequest("p1"))
    posted = {"channel": PRIVATE_CHANNEL, "ts": "1773480600.000200", "blocks": rendered.blocks}
    payload = slack_payloads.button_press(buttons(rendered.blocks)["Send"], posted)
    (field,) = [block for block in rendered.blocks if block["type"] == "input"]
    values = {field["block_id"]: {field["element"]["action_id"]: {"type": "plain_text_input", "value": text}}}
    assert (await chat.press(payload | {"state": {"values": values}})).status == 200
    return chat.inbox.feedback[0]


async def test_an_empty_field_in_slack_is_an_empty_text() -> None:
    async with slack_bot() as chat:
        await chat.event(mention())
        rendered = render(CorrectionRequest("p1"))
        posted = {"channel": CHANNEL, "ts": "1773480600.000200"}
        payload = slack_payloads.button_press(buttons(rendered.blocks)["Send"], posted)
        payload["state"] = {"values": {"correction": {"correction": {"type": "plain_text_input", "value": None}}}}
        assert (await chat.press(payload)).status == 200
        assert chat.inbox.feedback[0].text == ""


async def test_what_was_typed_into_a_card_of_teams_comes_with_its_button() -> None:
    async with open_teams("builtin") as chat:
        data = {"verdict": "correction", "subject": "p1", "text": "in `till.yaml`"}
        value = {"action": {"type": "Action.Execute", "verb": "correction", "data": data}}
        activity = chat.connector.activity(type="invoke", name="adaptiveCard/action", text=None, value=value)
        assert (await chat.deliver(activity)).status == 200
        (typed,) = chat.inbox.feedback
        assert (typed.verdict, typed.text) == (ButtonAction.CORRECTION, "in `till.yaml`")
        assert f"channel:teams:{chat.connector.activity()['channelData']['channel']['id']}" in typed.audience.readers
