"""What people see in Teams: an answer that grows, pictures of what is said, and how long an answer takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from statistics import median

import pytest
import pytest_asyncio
from playwright.async_api import Page

from tests.external.bot_in_teams import QUESTION, fire, playground, sdk, started
from tests.external.browser import open_browser
from tests.external.slack_emulator import ARTIFACTS
from tests.external.teams_playground import INCIDENTS, Playground

__all__ = ["playground", "sdk", "started"]  # the fixtures

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

QUESTIONS = 7  # in one round
PACE = 2.1  # seconds between two questions: a burst of that many would wait for the pacing of the chat


@pytest_asyncio.fixture(loop_scope="module")
async def page(playground: Playground) -> AsyncIterator[Page]:
    async with open_browser() as browser:
        page = await browser.new_page(viewport={"width": 1400, "height": 1700})
        await page.goto(playground.page, wait_until="domcontentloaded")
        yield page


async def test_people_see_it_on_the_page(playground: Playground, page: Page, sdk: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    await _write(page, QUESTION)
    await page.get_by_text("Closest matches").first.wait_for()
    await page.get_by_role("button", name="Ask a person").click()
    await page.get_by_text("Received.").wait_for()
    await _write(page, "what is the airspeed velocity of an unladen swallow?")
    await page.get_by_text("I don’t know").wait_for()
    await page.screenshot(path=ARTIFACTS / f"teams-{sdk}-personal.png")
    for command, told in (("home", "What I know"), ("settings", "Settings of this channel"), ("help", "triage")):
        await _write(page, command)
        await page.get_by_text(told).first.wait_for()
    await page.screenshot(path=ARTIFACTS / f"teams-{sdk}-commands.png")

    await fire(playground, "position-lag")
    (message,) = await playground.until(INCIDENTS, lambda said: len(said) == 1 and "Looking for" not in said[0].text)
    await playground.until(message.thread, lambda said: len(said) == 1)
    await page.get_by_text("incidents", exact=True).first.click()
    await page.get_by_text("Timeline (UTC)").wait_for()
    await page.screenshot(path=ARTIFACTS / f"teams-{sdk}-incident.png", full_page=True)


async def test_the_answer_follows_at_once(playground: Playground, page: Page, sdk: str) -> None:
    """From Enter to the answer on the screen, by the page's own clock: a figure, since a busy machine is no fault of ours."""
    ARTIFACTS.mkdir(exist_ok=True)
    await page.evaluate(WATCH_FOR_ANSWERS)
    taken = [await _answered_within(page) for _ in range(QUESTIONS)]
    figures = {"answer_median_ms": round(median(taken)), "answers_ms": [round(each) for each in taken]}
    (ARTIFACTS / f"teams-{sdk}-latency.json").write_text(json.dumps(figures))
    assert all(each > 0 for each in taken)


async def _answered_within(page: Page) -> float:
    """Milliseconds until a question is answered on the page."""
    await asyncio.sleep(PACE)
    before = await page.evaluate("window.answers.length")
    await _write(page, f"{QUESTION} {before}")
    await page.wait_for_function("known => window.answers.length > known", arg=before)
    return await page.evaluate("window.answers.at(-1)")


WATCH_FOR_ANSWERS = """() => {
    window.answers = [];
    let pressed = 0;
    const isAnswer = node => /Closest matches|Sources|Ask a person|I don’t know/.test(node.textContent || "");
    document.addEventListener("keydown", event => { if (event.key === "Enter") pressed = performance.now(); }, true);
    new MutationObserver(changes => {
        if (pressed && changes.some(change => [...change.addedNodes].some(isAnswer))) {
            window.answers.push(performance.now() - pressed);
            pressed = 0;
        }
    }).observe(document.body, { childList: true, subtree: true });
}"""


async def _write(page: Page, text: str) -> None:
    await page.locator("[contenteditable=true], [placeholder^='Type a message']").first.click()
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")
