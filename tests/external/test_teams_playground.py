"""The whole bot in Teams: question, follow-up, button and incident, through both SDKs."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from statistics import median

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright

from tests.external.slack_emulator import HERE
from tests.external.teams_playground import (
    ASK,
    DANA,
    GROUP_CHAT,
    INCIDENTS,
    PERSONAL_CHAT,
    Playground,
    teams_playground,
)

# Both chats start once: the bot needs a while to read the company's documents.
pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

ARTIFACTS = HERE / "artifacts"
LIVE = HERE.parent.parent / "bot" / "sample_company" / "live"
QUESTION = "how do I roll back a canary?"
CHROMIUM = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(params=["agents", "botbuilder"], scope="module")
def sdk(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(sdk: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Playground]:
    folder = tmp_path_factory.mktemp(sdk)
    async with teams_playground(folder, sdk) as started:
        yield started
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


@pytest.fixture
def playground(started: Playground) -> Playground:
    """With nothing said yet, as far as this test sees."""
    started.shown.clear()
    return started


@pytest_asyncio.fixture(loop_scope="module")
async def page(playground: Playground) -> AsyncIterator[Page]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM)
        page = await browser.new_page(viewport={"width": 1400, "height": 1700})
        await page.goto(playground.page, wait_until="domcontentloaded")
        yield page
        await browser.close()


async def test_a_personal_conversation_with_a_follow_up_and_buttons(playground: Playground) -> None:
    await playground.say(QUESTION)
    (answer,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    assert "[1]" in answer.text
    assert "canary" in answer.text.lower()
    assert "Sources" in answer.text

    # A follow-up is understood in its context.
    await playground.say("and how long does that take?")
    _, follow_up = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 2)
    assert follow_up.text != answer.text

    thanked = await playground.press(answer, "Helpful")
    assert "Thank you" in json.dumps(thanked)

    await playground.submit(answer, "Ask a person")
    *_, called = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 3)
    assert "Ines would like a person to answer this" in called.text


async def test_in_a_channel_the_answer_stands_in_the_thread(playground: Playground) -> None:
    thread = await playground.say(QUESTION, conversation=ASK, mention=True)
    assert thread.startswith(f"{ASK};messageid=")
    (answer,) = await playground.until(thread, lambda said: len(said) == 1)
    assert "canary" in answer.text.lower()

    # What people say to each other is none of its business.
    await playground.say("thanks, that worked", conversation=thread)
    await playground.say("and how long does that take?", conversation=thread, person=DANA, mention=True)
    await playground.until(thread, lambda said: len(said) == 2)
    assert playground.in_(ASK) == []


async def test_in_a_group_chat_it_answers_when_it_is_mentioned(playground: Playground) -> None:
    await playground.say("help", conversation=GROUP_CHAT)
    await playground.say("help", conversation=GROUP_CHAT, person=DANA, mention=True)
    (help_,) = await playground.until(GROUP_CHAT, lambda said: len(said) == 1)
    assert "status" in help_.text


async def test_an_incident_is_posted_edited_and_detailed(playground: Playground) -> None:
    # Nobody has ever spoken in that channel: it is reached the way the tenant is.
    await playground.say("help")
    await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    await _fire(playground, "connection-pool")
    (message,) = await playground.until(INCIDENTS, lambda said: len(said) == 1 and "Next check" in said[0].text)
    assert "▲ Critical · firing since" in message.text
    assert "Payments" in message.text
    assert message.edits >= 1
    (details,) = await playground.until(message.thread, lambda said: len(said) == 1)
    assert "Timeline" in details.text

    await playground.press(message, "Take it", person=DANA)
    (taken,) = await playground.until(INCIDENTS, lambda said: "Taken by" in said[0].text)
    assert "Dana" in taken.text
    assert len(playground.in_(INCIDENTS)) == 1


async def test_people_see_it_on_the_page(playground: Playground, page: Page, sdk: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    await _write(page, QUESTION)
    await page.get_by_text("Sources").wait_for()
    await page.get_by_role("button", name="Helpful").click()
    await page.get_by_text("Thank you, noted.").wait_for()
    await _write(page, "what is the airspeed velocity of an unladen swallow?")
    await page.get_by_text("I don’t know").wait_for()
    await page.screenshot(path=ARTIFACTS / f"teams-{sdk}-personal.png")

    await _fire(playground, "position-lag")
    (message,) = await playground.until(INCIDENTS, lambda said: len(said) == 1 and "looking for" not in said[0].text)
    await playground.until(message.thread, lambda said: len(said) == 1)
    await page.get_by_text("incidents", exact=True).first.click()
    await page.get_by_text("Timeline (UTC)").wait_for()
    await page.screenshot(path=ARTIFACTS / f"teams-{sdk}-incident.png", full_page=True)


async def test_the_answer_follows_at_once(playground: Playground, sdk: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    taken: list[float] = []
    for number in range(10):
        started = time.monotonic()
        await playground.say(f"{QUESTION} {number}")
        await playground.until(PERSONAL_CHAT, lambda said, wanted=number + 1: len(said) == wanted)
        taken.append(time.monotonic() - started)
    (ARTIFACTS / f"teams-{sdk}-latency.json").write_text(json.dumps({"answer_median_s": median(taken)}))
    assert median(taken) < 5.0


async def _write(page: Page, text: str) -> None:
    await page.locator("[contenteditable=true], [placeholder^='Type a message']").first.click()
    await page.keyboard.type(text)
    await page.keyboard.press("Enter")


async def _fire(playground: Playground, incident: str) -> None:
    alert = json.loads((LIVE / incident / "alert.json").read_text())
    async with playground.session.post(f"{playground.bot}/webhooks/alertmanager", json=alert) as response:
        assert response.status == 202, await response.text()
