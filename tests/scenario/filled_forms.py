"""An incident in Slack, the forms that its buttons open, and what a person sends in them."""

from __future__ import annotations

import time
from typing import Any

from tests.fakes import block_kit, slack_payloads
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import is_done

PAGES = "C0PAGES"


async def slack_sends(bot: RunningBot, payload: dict[str, Any]) -> None:
    body = slack_payloads.interaction(payload)
    headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/x-www-form-urlencoded"}
    async with bot.session.post(f"{bot.address}slack/events", data=body, headers=headers) as response:
        assert response.status == 200, await response.text()


async def incident_in_slack(bot: RunningBot, check: str) -> tuple[str, dict[str, Any]]:
    """Return the id of a new incident once its cause was looked for, and its message."""
    state = {"check": {"name": f"till {check}", "id": check, "state": "firing", "level": "critical"}}
    body = state | {"where": {"service": "till"}}
    async with bot.session.post(f"{bot.address}webhooks/generic", json=body) as response:
        assert response.status == 202, await response.text()
        incident_id = (await response.json())["incident"]
    await bot.incident(incident_id, is_done)

    def posted() -> list[dict[str, Any]]:
        return [each for each in bot.slack.messages if each["channel"] == PAGES and check in str(each.get("blocks"))]

    await bot.slack.until(lambda: posted() and "Create issue…" in block_kit.buttons(posted()[0]["blocks"]))
    return incident_id, posted()[0]


def filled(view: dict[str, Any], **values: str) -> dict[str, Any]:
    """Return what a person sends who changes these fields and leaves the others as they are."""
    shown: dict[str, str] = {}
    for block in (block for block in view["blocks"] if block["type"] == "input"):
        element = block["element"]
        picked = element.get("initial_option", {}).get("value", "")
        shown[block["block_id"]] = element.get("initial_value", picked)
    return slack_payloads.form_submission(view | {"id": f"V{time.monotonic_ns()}"}, shown | values)
