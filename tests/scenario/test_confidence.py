"""From a badge to what it rests on, and from the note that ends an incident to what the next one is judged by."""

from __future__ import annotations

from typing import Any

import pytest

from core.model.messages import ButtonAction
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def in_thread(bot: RunningBot, root: int, kind: str) -> dict[str, Any]:
    """The payload of the latest message of a kind in a thread, once there is one."""

    def found(messages: list[Message]) -> list[Message]:
        return [each for each in of_kind(messages, kind) if each["thread"] == root]

    return (await bot.until("incidents", found))[-1]["payload"]


EMPTY_SEARCH = {"summary": "shelf search returns nothing", "description": "Customers find no goods any more."}


async def opened(bot: RunningBot, group: str, **changes: Any) -> tuple[Message, int]:
    """An incident that was worked on, and the message that shows it."""
    return await bot.worked_on(group, alert(group) | changes)


@pytest.mark.parametrize("verdict", [ButtonAction.WHY_OWNER, ButtonAction.WHY_CAUSE])
async def test_a_badge_says_what_it_rests_on_and_names_no_percentage_without_labels(
    bot: RunningBot, verdict: ButtonAction
) -> None:
    incident, root = await opened(bot, f"why {verdict}")
    await bot.submit("console/feedback", incident=incident["id"], verdict=verdict)
    explanation = (await in_thread(bot, root, "badge"))["explanation"]
    assert {reference["title"].partition(":")[0] for reference in explanation["references"]} >= {"OLD-1"}
    assert explanation["badge"]["probability"] is None
    assert any("Nobody has judged" in sentence for sentence in explanation["sentences"])
    async with bot.session.get(f"{bot.address}?channel=incidents") as response:
        page = await response.text()
    assert "OLD-1: till p99 latency above 2 s" in page


async def test_the_note_that_ends_an_incident_labels_its_claims_and_is_remembered(bot: RunningBot) -> None:
    labels = {"alertname": "SearchEmpty", "service": "shelf", "severity": "critical"}
    incident, root = await opened(bot, "noted", annotations=EMPTY_SEARCH, labels=labels)
    note = "root cause: the stock feed sent an empty file\nfix: replayed the feed; owner: Payments"
    await bot.submit("console/messages", channel="incidents", thread=str(root), text=note)
    said = await in_thread(bot, root, "notice")
    assert said["text"].startswith("Noted the root cause, the fix, the owner.")
    async with bot.session.get(f"{bot.address}predictions?kind=owner&outcome=wrong") as response:
        assert f"/incidents/{incident['id']}" in await response.text()
    await bot.deliver("noted", alert("noted", resolved=True) | {"annotations": EMPTY_SEARCH, "labels": labels})
    await bot.incident(incident["id"], lambda each: each["state"] == "resolved")
    again, _ = await opened(bot, "noted again", annotations=EMPTY_SEARCH, labels=labels)
    similar = {each["id"]: each for each in again["findings"]["explanation"]["similar"]}
    assert similar[incident["id"]]["owner"] == "payments"
    assert similar[incident["id"]]["fix"] == "replayed the feed"
