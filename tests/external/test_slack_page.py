"""What people see in a Slack workspace: pictures of threads, forms and every kind of message."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Page

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Place, Platform
from tests import samples as messages
from tests.external.bot_in_slack import QUESTION, incident, over_http, workspace
from tests.external.browser import open_browser
from tests.external.slack_emulator import ARTIFACTS, BOT_TOKEN, BOT_USER, SlackWorkspace

__all__ = ["workspace"]  # the fixture

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]


@over_http
async def test_people_see_it_on_the_page(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    nothing = await workspace.say(f"<@{BOT_USER}> what is the wifi password of the cafeteria?")
    await workspace.until(lambda said: len(said) == 1, "C0ASK", nothing)
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "check-in")
    await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])

    await workspace.open_home()
    (answer,) = await workspace.from_bot("C0ASK", asked)
    async with open_page(workspace) as page:
        await picture_of_threads(page, "ask-plumbline", "slack-answers")
        await picture_of_threads(page, "incidents", "slack-incident")
        await page.get_by_role("button", name="🏠 plumbline").click()
        await page.get_by_text("Settings", exact=True).wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-home.png")
        for pressed, label, name in ((answer, "Wrong", "correction"), (message, "Reassign…", "handover")):
            await workspace.press(pressed, label)
            await workspace.form()
            await page.get_by_role("button", name="Cancel").wait_for()
            await page.screenshot(path=ARTIFACTS / f"slack-form-{name}.png")
            await page.get_by_role("button", name="Cancel").click()
        await workspace.press(message, "Wrong cause")
        await page.get_by_text("What was the cause?").wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-form-cause.png")
        await page.get_by_role("button", name="Cancel").click()
        await workspace.choose_shortcut("C0ASK", nothing)
        await page.get_by_text("Your question").wait_for()
        await page.screenshot(path=ARTIFACTS / "slack-form-question.png")
        await page.get_by_role("button", name="Cancel").click()


@over_http
async def test_every_kind_of_message_is_taken_and_can_be_looked_at(workspace: SlackWorkspace) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, workspace.api_url, workspace.session))
    place = Place(Platform.SLACK, "C0GALLERY")
    references = {name: await messenger.post(place, message, name) for name, message in messages.SAMPLES.items()}
    assert {name: await messenger.find(place, name) for name in references} == references
    folder = ARTIFACTS / "slack-messages"
    folder.mkdir(exist_ok=True)
    async with open_page(workspace) as page:
        await page.get_by_role("button", name="gallery").click()
        for name, reference in references.items():
            shown_message = page.locator(f'.msg[data-ts="{reference.message_id}"]')
            await shown_message.screenshot(path=folder / f"{name.replace(' ', '-')}.png")
        assert await page.get_by_text("Take", exact=True).count() > 0


@asynccontextmanager
async def open_page(workspace: SlackWorkspace, height: int = 2_000) -> AsyncIterator[Page]:
    """The workspace in a browser."""
    async with open_browser() as browser:
        page = await browser.new_page(viewport={"width": 1_400, "height": height})
        await page.goto(workspace.page)
        yield page


async def picture_of_threads(page: Page, channel: str, name: str) -> None:
    """The channel, with each of its latest two threads beside it in turn."""
    await page.get_by_role("button", name=channel).click()
    threads = await page.get_by_text(re.compile(r"^\d+ repl")).all()
    assert threads
    for number, thread in enumerate(threads[-2:], 1):
        await thread.click()
        await page.screenshot(path=ARTIFACTS / f"{name}-{number}.png")
