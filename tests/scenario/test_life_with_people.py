"""What people do with incidents is what the next ones are triaged by, without a note and without a training run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message, of_kind
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="session")


def about(group: str, summary: str, *, service: str = "", resolved: bool = False) -> dict[str, Any]:
    labels = {"alertname": group, "severity": "warning"} | ({"service": service} if service else {})
    said = {"summary": summary, "description": ""}
    return alert(group, resolved=resolved) | {"annotations": said, "labels": labels}


async def opened(bot: RunningBot, group: str, summary: str, service: str = "") -> tuple[Message, int]:
    """An incident that was worked on, and the message that shows it."""
    return await bot.worked_on(group, about(group, summary, service=service))


async def note(bot: RunningBot, root: int, text: str) -> None:
    """End an incident with a note; everything that ended so far is learned from."""
    await bot.submit("console/messages", channel="incidents", thread=str(root), text=text)

    def noted(messages: list[Message]) -> bool:
        return any(each["thread"] == root for each in of_kind(messages, "notice"))

    await bot.until("incidents", noted)


async def reassigned(bot: RunningBot, incident_id: str, team: str) -> None:
    await bot.submit("console/feedback", incident=incident_id, verdict="hand-over")

    def asked(messages: list[Message]) -> int:
        of_it = [m for m in of_kind(messages, "handover request") if m["payload"]["incident_id"] == incident_id]
        return of_it[-1]["id"] if of_it else 0

    request = await bot.until("incidents", asked)
    await bot.submit("console/feedback", message=str(request), verdict="reassign", choice=team)
    await bot.incident(incident_id, lambda shown: (shown["findings"]["owner"]["owner"] or {}).get("team_id") == team)


@pytest.mark.external  # a process fits the votes
async def test_an_incident_that_was_reassigned_and_closed_without_a_note_trains_the_next_triage(
    bot: RunningBot,
) -> None:
    first, _ = await opened(bot, "tune-1", "the glockenspiel is out of tune")
    assert first["findings"]["owner"]["owner"] is None
    await reassigned(bot, first["id"], "catalogue")
    over = about("tune-1", "the glockenspiel is out of tune", resolved=True)
    assert await bot.deliver("tune-1", over) == first["id"]
    await bot.incident(first["id"], lambda shown: shown["state"] == "resolved")
    _, root = await opened(bot, "other-1", "an unrelated kettle whistles")
    await note(bot, root, "root cause: it boiled")
    again, _ = await opened(bot, "tune-2", "the glockenspiel is out of tune again")
    assert again["findings"]["owner"]["owner"]["team_id"] == "catalogue"
    assert any(first["id"] in reason for reason in again["findings"]["owner"]["owner"]["reasons"])


async def test_an_incident_that_a_note_calls_nobodys_is_nobodys_the_next_time(bot: RunningBot) -> None:
    first, root = await opened(bot, "rehearsal-1", "the rehearsal of the alarm clock rings")
    await note(bot, root, "root cause: a rehearsal; owner: nobody")
    again, _ = await opened(bot, "rehearsal-2", "the rehearsal of the alarm clock rings loudly")
    assert again["findings"]["owner"]["owner"] is None
    assert (
        again["findings"]["owner"]["note"]
        == "Most of the similar incidents belonged to no team. A person should decide."
    )
    assert first["id"] in {similar["id"] for similar in again["findings"]["explanation"]["similar"]}


async def test_a_document_that_a_team_changes_counts_at_the_next_incident_of_the_running_bot(bot: RunningBot) -> None:
    before, _ = await opened(bot, "carousel-1", "the carousel squeaks")
    assert before["findings"]["owner"]["owner"] is None
    document = bot.company / "teams" / "catalogue.md"
    text = document.read_text(encoding="utf-8")
    document.write_text(f"{text}\nThe carousel is ours, and so is whatever squeaks.\n", encoding="utf-8")
    try:
        after, _ = await opened(bot, "carousel-2", "the carousel squeaks loudly")
    finally:
        document.write_text(text, encoding="utf-8")
    assert after["findings"]["owner"]["candidates"][0]["team_id"] == "catalogue"
    assert "its document speaks of" in " ".join(after["findings"]["owner"]["candidates"][0]["reasons"])
