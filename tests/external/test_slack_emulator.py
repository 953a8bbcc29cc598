"""The whole bot in a Slack workspace: mention, follow-up, command, button and incident, over HTTP and Socket Mode."""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, async_playwright

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.conversation import Place, Platform
from tests.external.slack_emulator import BOT_TOKEN, BOT_USER, DANA, HERE, SlackWorkspace, slack_workspace
from tests.fakes import messages
from tests.fakes.block_kit import texts

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

ARTIFACTS = HERE / "artifacts"
QUESTION = f"<@{BOT_USER}> how do I roll back a canary?"

over_http = pytest.mark.parametrize("workspace", ["http"], indirect=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["http", "socket mode"])
async def workspace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SlackWorkspace]:
    """One for all tests: each speaks in a thread or a channel of its own."""
    ARTIFACTS.mkdir(exist_ok=True)
    folder = tmp_path_factory.mktemp("slack")
    async with slack_workspace(folder, socket_mode=request.param == "socket mode") as started:
        yield started
        assert started.proxy.refused == [], "Slack would have refused a message"
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


def shown(message: dict[str, Any]) -> str:
    return "\n".join(texts(message.get("blocks") or [])) or message["text"]


async def incident(workspace: SlackWorkspace, name: str) -> dict[str, Any]:
    """The one message of the incident whose text holds this name, once the work on it is done."""

    def done(said: list[dict[str, Any]]) -> bool:
        return any(name in shown(each) and "Right cause" in shown(each) for each in said)

    (message,) = [each for each in await workspace.until(done, "C0INC") if name in shown(each)]
    return message


async def test_a_conversation_in_a_channel(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert "[1]" in shown(answer)
    assert "canary" in shown(answer).lower()

    # A follow-up in the thread is understood in its context.
    await workspace.say(f"<@{BOT_USER}> and how long does that take?", thread=asked, person=DANA)
    _, follow_up = await workspace.until(lambda said: len(said) == 2, "C0ASK", asked)
    assert shown(follow_up) != shown(answer)

    # What people say to each other is none of its business.
    await workspace.say("thanks, that worked", thread=asked)

    await workspace.press(answer, "Ask a person", person=DANA)
    *_, called = await workspace.until(lambda said: len(said) == 3, "C0ASK", asked)
    assert "dana" in shown(called)

    await workspace.press(answer, "Helpful", person=DANA)
    assert len(await workspace.from_bot("C0ASK", asked)) == 3


async def test_a_command_is_answered_in_its_channel(workspace: SlackWorkspace) -> None:
    await workspace.command("help", channel="C0CICD")
    (help_,) = await workspace.until(lambda said: len(said) == 1, "C0CICD")
    assert "status" in shown(help_)


async def test_a_direct_message_needs_no_mention(workspace: SlackWorkspace) -> None:
    asked = await workspace.say("How do I drain a drydock runner?", channel="D0INES")
    (answer,) = await workspace.until(lambda said: len(said) == 1, "D0INES", asked)
    assert "drain" in shown(answer)


async def test_an_incident_is_posted_edited_and_detailed(workspace: SlackWorkspace) -> None:
    await workspace.alert("connection-pool")
    message = await incident(workspace, "PaymentGateway")
    assert shown(message).startswith("🔴 Critical")
    (details,) = await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])
    assert "Timeline" in shown(details)
    await workspace.press(message, "Take it", person=DANA)
    await workspace.until(lambda said: any("Taken by*  dana" in shown(each) for each in said), "C0INC")
    # The same alert again folds into the same message.
    await workspace.alert("connection-pool")
    assert await incident(workspace, "PaymentGateway")


@over_http
async def test_an_event_that_slack_sends_three_times_is_answered_once(workspace: SlackWorkspace) -> None:
    workspace.proxy.retries = 2
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    # The answer to a second question comes after all that the first one set off.
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1
    assert set(workspace.proxy.delivered) == {200}
    workspace.proxy.retries = 0


@over_http
async def test_a_rate_limit_delays_the_answer_and_nothing_is_lost_or_said_twice(workspace: SlackWorkspace) -> None:
    workspace.proxy.rate_limits = 3
    started = time.monotonic()
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert time.monotonic() - started >= 2 * workspace.proxy.retry_after
    assert workspace.proxy.rate_limits == 0
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1


@over_http
async def test_slack_is_acknowledged_in_time_and_the_answer_follows_at_once(workspace: SlackWorkspace) -> None:
    taken: list[float] = []
    for _ in range(10):
        started = time.monotonic()
        asked = await workspace.say(QUESTION)
        await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
        taken.append(time.monotonic() - started)
    assert max(workspace.proxy.acknowledged_in) < 3.0, "Slack waits no longer than 3 s"
    (ARTIFACTS / "slack-latency.json").write_text(
        json.dumps({"answer_median_s": median(taken), "acknowledgement_max_s": max(workspace.proxy.acknowledged_in)})
    )


@over_http
async def test_people_see_it_on_the_page(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    nothing = await workspace.say(f"<@{BOT_USER}> what is the wifi password of the cafeteria?")
    await workspace.until(lambda said: len(said) == 1, "C0ASK", nothing)
    await workspace.alert("check-in-storm")
    message = await incident(workspace, "CheckIn")
    await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])

    async with open_page(workspace) as page:
        await picture_of_threads(page, "ask-plumbline", "slack-answers")
        await picture_of_threads(page, "incidents", "slack-incident")


@over_http
async def test_every_kind_of_message_is_taken_and_can_be_looked_at(workspace: SlackWorkspace) -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, workspace.api_url, workspace.session))
    place = Place(Platform.SLACK, "C0GALLERY")
    references = [await messenger.post(place, message, name) for name, message in messages.SAMPLES.items()]
    assert [await messenger.find(place, name) for name in messages.SAMPLES] == references
    async with open_page(workspace, height=4_200) as page:
        await page.get_by_role("button", name="gallery").click()
        await page.screenshot(path=ARTIFACTS / "slack-gallery.png")
        assert await page.get_by_text("Take it", exact=True).count() > 0


@asynccontextmanager
async def open_page(workspace: SlackWorkspace, height: int = 2_000) -> AsyncIterator[Page]:
    """The workspace in a browser."""
    flags = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path="/usr/bin/chromium", args=flags)
        page = await browser.new_page(viewport={"width": 1_400, "height": height})
        await page.goto(workspace.page)
        yield page
        await browser.close()


async def picture_of_threads(page: Page, channel: str, name: str) -> None:
    """The channel, with each of its latest two threads beside it in turn."""
    await page.get_by_role("button", name=channel).click()
    threads = await page.get_by_text(re.compile(r"^\d+ repl")).all()
    assert threads
    for number, thread in enumerate(threads[-2:], 1):
        await thread.click()
        await page.screenshot(path=ARTIFACTS / f"{name}-{number}.png")
