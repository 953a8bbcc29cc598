"""An incident whose owner nothing but texts can tell."""

from __future__ import annotations

from pathlib import Path

import aiohttp

from tests.fakes.door_secrets import KNOWN
from tests.folders import copy_folder
from tests.scenario.webhooks import alert, delivery

SUMMARY = "the stock of the shelf and the refunds of the till disagree"


def without_monitoring(furnished: Path, folder: Path) -> None:
    """A company that nothing but texts can tell an owner; of its two teams one has mentions."""
    copy_folder(furnished, folder)
    file = folder / "company" / "plumbline.yaml"
    text, _, _ = file.read_text(encoding="utf-8").partition("tools:\n")
    mentions = "mention: {slack: S0PAY, teams: pay@lantern.example}"
    text = text.replace("on_call: [Ada Quist]", f"on_call: [Ada Quist], {mentions}")
    file.write_text(f"{text}confidence: {{ping_two_when_unsure: true}}\n", encoding="utf-8")


async def raise_unclear(address: str) -> None:
    unclear = alert("disagree") | {"annotations": {"summary": SUMMARY, "description": ""}}
    unclear["labels"] = {"alertname": "Disagreement", "severity": "warning"}
    async with (
        aiohttp.ClientSession(headers=KNOWN) as session,
        session.post(f"{address}webhooks/alertmanager", json=delivery("group", unclear)) as response,
    ):
        assert response.status == 202, await response.text()
