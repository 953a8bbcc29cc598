"""What a chat would not take is seen by an operator, tried again from the local page and the terminal, or given up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from adapters.store.store import SqlStore
from bot.commands.records import run_drop, run_list, run_retry
from bot.config.settings import Settings
from core.model.audit import Act
from core.model.conversation import Place, Platform
from core.model.errors import PlumblineError
from core.model.messages import IncidentMessage
from core.ports import DeadLetter
from tests.fakes.slack_api import CHANNEL
from tests.samples import explained_incident
from tests.scenario.application import RunningBot
from tests.scenario.bot_client import Message
from tests.scenario.slack import TIMEOUT

pytestmark = pytest.mark.asyncio(loop_scope="session")

ARCHIVED = json.dumps({"ok": False, "error": "is_archived"})


async def refused(bot: RunningBot) -> tuple[str, str]:
    """Somebody asks in a channel that is archived meanwhile; the question, and the intent of the dead letter."""
    before = {letter.intent for letter in await letters(bot)}
    bot.slack.refuse(200, ARCHIVED, method="chat.postMessage", channel=CHANNEL)
    asked = await bot.slack.asks(bot.address, "help")
    async with asyncio.timeout(TIMEOUT):
        while not (new := {letter.intent for letter in await letters(bot)} - before):  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0.05)
    (intent,) = new
    assert bot.slack.replies(asked) == []
    return asked, intent


async def letters(bot: RunningBot) -> list[DeadLetter]:
    async with bot.store.transaction() as transaction:
        return await transaction.dead_letters.latest(99)


async def is_gone(bot: RunningBot, intent: str) -> None:
    async with asyncio.timeout(TIMEOUT):
        while intent in {letter.intent for letter in await letters(bot)}:  # noqa: ASYNC110 -- nothing tells it
            await asyncio.sleep(0.05)


def settings_of(bot: RunningBot) -> Settings:
    assert isinstance(bot.store, SqlStore)
    return Settings.model_validate({"PLUMBLINE_DATA_DIR": Path(bot.store.engine.url.database or "").parent})


async def test_an_operator_sees_it_on_the_local_page_and_its_button_posts_it_once(bot: RunningBot) -> None:
    asked, intent = await refused(bot)
    async with bot.session.get(f"{bot.address}dead-letters") as response:
        page = BeautifulSoup(await response.text(), "html.parser")
    assert "archived" in page.get_text()
    assert page.find("input", {"name": "intent", "value": intent}) is not None
    for _ in range(2):
        async with bot.session.post(f"{bot.address}console/dead-letters", data={"intent": intent}) as response:
            assert response.status in (200, 404), "the second press may come when it was posted already"
    await is_gone(bot, intent)
    assert len(bot.slack.replies(asked)) == 1
    async with bot.store.transaction() as transaction:
        assert (await transaction.audit.latest(1, act=Act.RETRIED))[0].entry.subject


async def test_an_operator_lists_it_in_the_terminal_and_has_it_tried_again_by_the_running_bot(bot: RunningBot) -> None:
    asked, intent = await refused(bot)
    printed = StringIO()
    await run_list(settings_of(bot), Console(file=printed), as_json=True)
    listed = {row["intent"]: row for row in map(json.loads, printed.getvalue().splitlines())}
    assert "archived" in listed[intent]["reason"]
    await run_retry(settings_of(bot), [intent], Console(file=printed), every=False)
    await bot.slack.until(lambda: bot.slack.replies(asked))
    await is_gone(bot, intent)
    assert len(bot.slack.replies(asked)) == 1


async def test_an_incident_that_no_chat_took_is_shown_with_its_details_as_it_is_by_now(bot: RunningBot) -> None:
    place = Place(Platform.CONSOLE, "incidents")
    kept = explained_incident(id="no-chat-took-it", group_key="no chat took it", revision=1, message=None, place=place)
    intent = f"incident:{kept.id}"
    async with bot.store.transaction() as transaction:
        await transaction.incidents.save(replace(kept, title="What is known by now"))
        await transaction.dead_letters.add(intent, place, IncidentMessage(kept), "It was archived.")
    await run_retry(settings_of(bot), [intent], Console(quiet=True), every=False)
    await is_gone(bot, intent)
    await bot.until("incidents", lambda messages: [each for each in messages if _is_of(each, kept.id, "details")])
    (shown,) = [each for each in await bot.messages("incidents") if _is_of(each, kept.id, "incident")]
    assert shown["payload"]["incident"]["title"] == "What is known by now"


def _is_of(message: Message, incident_id: str, kind: str) -> bool:
    return message["kind"] == kind and message["payload"]["incident"]["id"] == incident_id


async def test_what_an_operator_drops_is_never_posted_and_cannot_be_tried_again(bot: RunningBot) -> None:
    asked, intent = await refused(bot)
    await run_drop(settings_of(bot), [intent], Console(quiet=True))
    for work in (
        run_retry(settings_of(bot), [intent], Console(quiet=True), every=False),
        run_drop(settings_of(bot), [intent], Console(quiet=True)),
    ):
        with pytest.raises(PlumblineError, match="There is no dead letter"):
            await work
    assert bot.slack.replies(asked) == []
    async with bot.store.transaction() as transaction:
        assert (await transaction.audit.latest(1, act=Act.DROPPED))[0].entry.subject == intent
