"""What people see in a Slack workspace with a language model: pictures of threads, forms and every kind of message."""

from __future__ import annotations

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import Place, Platform
from tests import samples as messages
from tests.benchmarks.simulated_agent import Cause
from tests.external.bot_in_slack import QUESTION, shown
from tests.external.browser import open_browser
from tests.external.slack_emulator import (
    ARTIFACTS,
    BOT_TOKEN,
    BOT_USER,
    SAMPLE_COMPANY,
    SlackWorkspace,
    slack_workspace,
)
from tests.fakes.general_servers import fake_model_server
from tests.fakes.speaking_model import speaking
from tests.fakes.triage_script import Cast
from tests.scenario.webhooks import alert, delivery

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

CULPRIT = "CHG-9212"
KNOWN = "Connection is not available, request timed out"  # which the rules understand
POOL = "HikariPool-1 - no lane is free"
FULL = Cause(
    "p99 of POST /v1/authorise",
    "payment-gateway",
    frozenset(),
    lambda line: POOL in line,
    "The connection pool of payment-gateway is exhausted, so that its requests wait for a connection and time out.",
    [{"tool": "read_logs", "service": "payment-gateway"}],
)
ANSWERS = {
    "canary": (
        ("Roll it back with `slipway rollback SERVICE`, without `--to`.", "Rolling back a canary"),
        (
            "While the canary gets 5 % or 25 %, this only takes its pods away, which takes 15 seconds.",
            "only takes the canary",
        ),
        ("Anybody on an on-call rota may do so, without approval.", "Anybody on an on-call rota"),
        ("slipway itself aborts a canary if one of its pods restarts twice.", "restarts twice"),
    )
}
MANAGERS = 5
LATE = alert("late", service="", alertname="MessagesLate") | {
    "annotations": {
        "summary": "Messages reach passengers hours late",
        "description": "The consumers of tideline lag on all topics.",
    }
}


def agreeing() -> Cast:
    """Each of the five managers votes for its own team at first, then all for the one that runs the brokers."""
    ballots = count()
    return lambda team, _: team.lower() if next(ballots) % (2 * MANAGERS) < MANAGERS else "platform"


def is_explained(message: dict[str, Any]) -> bool:
    return FULL.said[:60] in shown(message)


def is_settled(message: dict[str, Any]) -> bool:
    return "hours late" in shown(message) and "Right owner" in shown(message)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workspace(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SlackWorkspace]:
    """With a model that people trust, and without the change that caused an incident and the words that tell of it."""
    ARTIFACTS.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("slack")
    shutil.copytree(SAMPLE_COMPANY.parent, folder / "company")
    config, changes = folder / "company/plumbline.yaml", folder / "company/live/connection-pool/changes.jsonl"
    config.write_text(config.read_text() + "\nmodels: {use: always, investigation: {calls: 200, tokens: 1000000}}\n")
    kept = [line for line in changes.read_text().splitlines() if CULPRIT not in line]
    changes.write_text("\n".join(kept))
    for log in (changes.parent / "logs").iterdir():
        log.write_text(log.read_text().replace(KNOWN, "no lane is free"))
    async with fake_model_server("vllm", context=200_000) as model:
        model.script = speaking(ANSWERS, [FULL], agreeing())
        more = {"PLUMBLINE_CONFIG": str(config), "PLUMBLINE_LLM_URL": model.url}
        async with slack_workspace(folder, more=more) as started:
            yield started
            assert started.proxy.refused == [], "Slack would have refused a message"
    log = (folder / "bot.log").read_text()
    assert "Traceback" not in log, log


async def test_people_read_what_a_model_writes_finds_and_settles(workspace: SlackWorkspace) -> None:
    asked = await workspace.say(QUESTION)
    (answer,) = await workspace.until(lambda said: len(said) == 1 and "Helpful" in shown(said[0]), "C0ASK", asked)
    for number, (sentence, _) in enumerate(ANSWERS["canary"], 1):
        assert f"{sentence} [{number}]" in shown(answer)
    nothing = await workspace.say(f"<@{BOT_USER}> what is the wifi password of the cafeteria?")
    await workspace.until(lambda said: len(said) == 1, "C0ASK", nothing)

    await workspace.alert("connection-pool")
    said = await workspace.until(lambda said: any(map(is_explained, said)), "C0INC")
    (message,) = filter(is_explained, said)
    (details,) = await workspace.until(lambda said: len(said) == 1, "C0INC", message["ts"])
    for told in (
        FULL.said.rstrip("."),
        POOL[:15],
        "Undo what happened to payment-gateway.",
        "Found by the language model",
    ):
        assert told in shown(details)

    await workspace.fire(delivery("late", LATE))
    said = await workspace.until(lambda said: any(map(is_settled, said)), "C0INC")
    (dispute,) = filter(is_settled, said)
    (details,) = await workspace.until(lambda said: len(said) == 1, "C0INC", dispute["ts"])
    assert shown(details).count("Round 2: ") == MANAGERS == len(re.findall("Round 2: .* for Platform", shown(details)))

    await workspace.open_home()
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
