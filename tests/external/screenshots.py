"""Pictures for the documentation: `python -m tests.external.screenshots`, which `make screenshots` runs.

An answer and an incident of the sample company, light and dark: in Slack's emulator; and the incident as the card that the
Agents Playground was sent, drawn in Teams' colours. It needs the emulators, Chromium and a font with emoji, as `.ci/run` installs them.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, FloatRect, Page, ViewportSize

from tests.external.bot_in_slack import incident, shown
from tests.external.bot_in_teams import QUESTION, fire
from tests.external.browser import open_browser
from tests.external.slack_emulator import BOT_USER, SlackWorkspace, slack_workspace
from tests.external.teams_cards import card_page, draw
from tests.external.teams_playground import INCIDENTS, PERSONAL_CHAT, Playground, teams_playground

IMAGES = Path(__file__).parents[2] / "docs" / "images"
INCIDENT = "connection-pool"
ASKED = f"<@{BOT_USER}> what does drydock exit code 86 mean?"
WIDTH, HEIGHT = 1_000, 900  # pixels of the page
SCALE = 2  # pixels of the picture for each of the page's
MARGIN = 16  # pixels of the page below what is shown
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

# The emulator of Slack has no dark theme: these are Slack's own colours.
DARK_SLACK = """
:root { color-scheme: dark; --text: #d1d2d3; --muted: #ababad; --border: #35373b; }
body, .main, .thread-pane { background: #1a1d21; color: #d1d2d3; }
.msg:hover, .msg-hover-actions { background: #222529; }
.badge-app { background: #35373b; color: #d1d2d3; }
.main a, .thread-summary-count { color: #1d9bd1; }
.main code { background: #222529; border-color: #35373b; color: #e8912d; }
.main button:not(.thread-summary, .msg-hover-btn), .main select { background: #222529; color: #d1d2d3; }
.main button:not(.thread-summary, .msg-hover-btn), .main select { border-color: #565856; }
.main button[class*="primary"] { background: #007a5a; color: #ffffff; }
"""
PLAIN_SLACK = ".topbar, .composer, .msg-hover-actions { display: none !important; }"


@asynccontextmanager
async def open_page(browser: Browser, address: str, theme: Literal["light", "dark"]) -> AsyncIterator[Page]:
    size = ViewportSize(width=WIDTH, height=HEIGHT)
    page = await browser.new_page(viewport=size, device_scale_factor=SCALE, color_scheme=theme)
    await page.goto(address, wait_until="domcontentloaded")
    yield page
    await page.close()


async def answer_in_slack(browser: Browser, workspace: SlackWorkspace) -> None:
    asked = await workspace.say(ASKED)
    await workspace.until(lambda said: len(said) == 1 and "86" in shown(said[0]), "C0ASK", asked)
    for theme in THEMES:
        async with open_page(browser, workspace.page, theme) as page:
            await page.add_style_tag(content=PLAIN_SLACK + (DARK_SLACK if theme == "dark" else ""))
            await page.get_by_role("button", name="ask-plumbline").click()
            await page.get_by_text("1 reply").click()
            await page.locator(".thread-pane").screenshot(path=IMAGES / f"slack-answer-{theme}.png")


async def incident_in_slack(browser: Browser, workspace: SlackWorkspace) -> None:
    await workspace.alert(INCIDENT)
    message = await incident(workspace, "payment")
    for theme in THEMES:
        async with open_page(browser, workspace.page, theme) as page:
            await page.add_style_tag(content=PLAIN_SLACK + (DARK_SLACK if theme == "dark" else ""))
            await page.get_by_role("button", name="incidents").click()
            posted = page.locator(f'.msg[data-ts="{message["ts"]}"]')
            await posted.get_by_text("Take", exact=True).wait_for()
            box = await posted.bounding_box()
            assert box is not None
            part = FloatRect(x=0, y=0, width=WIDTH, height=box["y"] + box["height"] + MARGIN)
            await page.screenshot(path=IMAGES / f"slack-incident-{theme}.png", clip=part)


async def in_teams(browser: Browser, playground: Playground) -> None:
    await playground.say(QUESTION)  # Teams tells the bot with it how its organisation is reached
    await playground.until(PERSONAL_CHAT, lambda said: any("canary" in each.text for each in said))
    await fire(playground, INCIDENT)
    said = await playground.until(INCIDENTS, lambda said: any("Cause" in each.text for each in said))
    (message,) = [each for each in said if "Cause" in each.text]
    for theme in THEMES:
        async with card_page(browser, theme, scale=SCALE) as page:
            await draw(page, theme, message.card)
            await page.locator("body").screenshot(path=IMAGES / f"teams-incident-{theme}.png")


async def main() -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    async with open_browser() as browser:
        with tempfile.TemporaryDirectory() as folder:
            async with slack_workspace(Path(folder)) as workspace:
                await answer_in_slack(browser, workspace)
                await incident_in_slack(browser, workspace)
        with tempfile.TemporaryDirectory() as folder:
            async with teams_playground(Path(folder), "agents") as playground:
                await in_teams(browser, playground)


if __name__ == "__main__":
    asyncio.run(main())
