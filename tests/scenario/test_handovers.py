"""“Reassign…”: what was picked and typed on each platform comes with the button, and the incident moves on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from adapters.slack.interactions import FormOrigin, feedback_form
from adapters.slack.render import render as render_for_slack
from adapters.teams.render import render as render_for_teams
from core.model.findings import Relation, RelationKind
from core.model.messages import ButtonAction, HandoverRequest
from handlers.common.stored_incident import update_incident
from handlers.incidents.reassign_incident import OVERTAKEN
from tests.fakes import slack_payloads
from tests.fakes.block_kit import buttons, problems, view_problems
from tests.fakes.slack_api import CHANNEL
from tests.fakes.slack_bot import slack_bot
from tests.fakes.teams_adapter import open_teams
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, is_done, of_kind
from tests.scenario.webhooks import alert

REQUEST = HandoverRequest("incident-1", "Payments", (("bookings", "Bookings"), ("fleet", "Fleet")))


async def test_the_team_picked_in_slack_and_the_reason_come_with_the_button() -> None:
    async with slack_bot() as chat:
        rendered = render_for_slack(REQUEST)
        picker, field = [block for block in rendered.blocks if block["type"] == "input"]
        option = picker["element"]["options"][1]
        posted = {"channel": CHANNEL, "ts": "1773480600.000200", "blocks": rendered.blocks}
        payload = slack_payloads.button_press(buttons(rendered.blocks)["Reassign"], posted)
        payload["state"] = {
            "values": {
                picker["block_id"]: {
                    picker["element"]["action_id"]: {"type": "static_select", "selected_option": option}
                },
                field["block_id"]: {field["element"]["action_id"]: {"type": "plain_text_input", "value": "no ledger"}},
            }
        }
        assert (await chat.press(payload)).status == 200
        (pressed,) = chat.inbox.feedback
    assert (pressed.verdict, pressed.subject) == (ButtonAction.REASSIGN, "incident-1")
    assert (pressed.choice, pressed.text) == ("fleet", "no ledger")


async def test_nothing_picked_in_slack_is_no_choice() -> None:
    async with slack_bot() as chat:
        rendered = render_for_slack(REQUEST)
        posted = {"channel": CHANNEL, "ts": "1773480600.000200", "blocks": rendered.blocks}
        payload = slack_payloads.button_press(buttons(rendered.blocks)["Not ours"], posted)
        payload["state"] = {"values": {"team": {"team": {"type": "static_select", "selected_option": None}}}}
        assert (await chat.press(payload)).status == 200
        (pressed,) = chat.inbox.feedback
    assert (pressed.verdict, pressed.choice) == (ButtonAction.NOT_OURS, "")


async def test_the_team_picked_in_a_card_of_teams_comes_with_its_button() -> None:
    picker = next(
        element for element in render_for_teams(REQUEST).content["body"] if element["type"] == "Input.ChoiceSet"
    )
    async with open_teams("builtin") as chat:
        action = next(each for each in render_for_teams(REQUEST).content["actions"] if each["title"] == "Reassign")
        data = action["data"] | {picker["id"]: picker["choices"][0]["value"], "text": "no ledger"}
        value = {"action": {"type": "Action.Execute", "verb": action["verb"], "data": data}}
        activity = chat.connector.activity(type="invoke", name="adaptiveCard/action", text=None, value=value)
        assert (await chat.deliver(activity)).status == 200
        (pressed,) = chat.inbox.feedback
    assert (pressed.verdict, pressed.choice, pressed.text) == (ButtonAction.REASSIGN, "bookings", "no ledger")


HUNDREDS = HandoverRequest("incident-1", "", tuple((f"team-{n:03}", f"Team {n:03} " + "x" * 60) for n in range(300)))


def test_each_of_hundreds_of_teams_can_be_picked_in_slacks_form() -> None:
    form = feedback_form(HUNDREDS, FormOrigin(channel=CHANNEL, ts="1773480600.000200"))
    assert view_problems(form) == []
    (picker,) = [
        block["element"] for block in form["blocks"] if block.get("element", {}).get("type") == "static_select"
    ]
    offered = [option["value"] for group in picker["option_groups"] for option in group["options"]]
    assert offered == [team for team, _ in HUNDREDS.teams]
    rendered = render_for_slack(HUNDREDS)
    assert problems(rendered.text, rendered.blocks) == []


def test_hundreds_of_teams_can_be_picked_in_teams_as_far_as_a_card_has_room_for_them() -> None:
    for request, at_least in (
        (HUNDREDS, 120),
        (replace(HUNDREDS, teams=tuple((t, t) for t, _ in HUNDREDS.teams)), 300),
    ):
        body = render_for_teams(request).content["body"]
        (picker,) = [element for element in body if element["type"] == "Input.ChoiceSet"]
        assert len(picker["choices"]) >= at_least


@pytest.mark.asyncio(loop_scope="session")
async def test_an_incident_that_is_turned_away_goes_on_without_that_team_and_to_the_one_that_is_picked(
    bot: RunningBot,
) -> None:
    incident_id = await bot.deliver("handed over", alert("handed"))
    assert incident_id is not None
    assert (await bot.incident(incident_id, is_done))["findings"]["owner"]["owner"]["team_id"] == "payments"

    await _post(bot, incident=incident_id, verdict="hand-over")
    first = await _request(bot, incident_id, 1)
    offered = dict(first["payload"]["teams"])
    assert "payments" not in offered
    await _post(bot, message=str(first["id"]), verdict="not-ours", text="the till is\nnot at fault")
    away = await bot.incident(
        incident_id,
        lambda incident: "payments" not in {each["team_id"] for each in incident["findings"]["owner"]["candidates"]},
    )
    (hop,) = away["hops"]
    assert (hop["turned_away"], hop["given_to"], hop["reason"]) == ("payments", "", "the till is not at fault")
    assert {vote["hop"] for vote in away["findings"]["owner"]["votes"]} == {0, 1}, "what was said before is kept"

    def shown_in_the_thread(messages: list[Message]) -> bool:
        details = [m for m in of_kind(messages, "details") if m["payload"]["incident"]["id"] == incident_id]
        return len(details) == 1 and details[0]["payload"]["incident"]["findings"]["owner"] == away["findings"]["owner"]

    assert await bot.until("incidents", shown_in_the_thread)

    await _post(bot, message=str(first["id"]), verdict="not-ours", text="nor is the shelf")
    await bot.until("incidents", lambda messages: OVERTAKEN in str(of_kind(messages, "notice")))
    assert len((await bot.incident(incident_id, is_done))["hops"]) == 1

    await _post(bot, incident=incident_id, verdict="hand-over")
    second = await _request(bot, incident_id, 2)
    other = next(team for team in offered if team != "payments")
    await _post(bot, message=str(second["id"]), verdict="reassign", choice=other)
    given = await bot.incident(
        incident_id,
        lambda incident: (
            (incident["findings"]["owner"]["owner"] or {}).get("reasons", [""])[0].endswith(offered[other])
        ),
    )
    assert given["findings"]["owner"]["owner"]["team_id"] == other
    assert len(given["hops"]) == 2


@pytest.mark.asyncio(loop_scope="session")
async def test_an_incident_that_is_a_part_of_another_is_triaged_again_too_once_a_person_turns_it_away(
    bot: RunningBot,
) -> None:
    leader_id = await bot.deliver("a cause of others", alert("cause", service="kiosk"))
    incident_id = await bot.deliver("handed over as a part", alert("part"))
    assert leader_id is not None
    assert incident_id is not None
    assert (await bot.incident(incident_id, is_done))["findings"]["owner"]["owner"]["team_id"] == "payments"
    merge = Relation(RelationKind.PART_OF, leader_id, at=datetime.now(UTC), person="Mira")
    await update_incident(incident_id, lambda latest: latest.with_relation(merge), bot.store)
    await _post(bot, incident=incident_id, verdict="hand-over")
    request = await _request(bot, incident_id, 1)
    await _post(bot, message=str(request["id"]), verdict="not-ours", text="no till of ours")
    away = await bot.incident(
        incident_id,
        lambda incident: "payments" not in {each["team_id"] for each in incident["findings"]["owner"]["candidates"]},
    )
    assert [each["incident_id"] for each in away["relations"] if each["kind"] == RelationKind.PART_OF] == [leader_id]


async def _post(bot: RunningBot, **form: str) -> None:
    headers = {"HX-Request": "true"}
    async with bot.session.post(f"{bot.address}console/feedback", data=form, headers=headers) as response:
        assert response.status in (200, 204), await response.text()


async def _request(bot: RunningBot, incident_id: str, count: int) -> Message:
    """The latest of the pickers, once there are so many."""

    def found(messages: list[Message]) -> Message | None:
        asked = [m for m in of_kind(messages, "handover request") if m["payload"]["incident_id"] == incident_id]
        return asked[-1] if len(asked) == count else None

    return await bot.until("incidents", found)
