"""Pictures for the documentation: `python -m tests.external.screenshots`, which `make screenshots` runs.

The sample company, light and dark: an answer on the local page; fifty alerts in Slack's emulator, and an incident as the card that the
Agents Playground was sent, drawn in Teams' colours. It needs the emulators, Chromium and a font with emoji, as `.ci/run` installs them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.async_api import Browser, FloatRect, Page, ViewportSize

from tests.external.bot_in_slack import shown
from tests.external.bot_in_teams import QUESTION, fire
from tests.external.browser import open_browser
from tests.external.slack_emulator import (
    CHANNELS,
    SAMPLE_COMPANY,
    SlackWorkspace,
    eventually,
    free_port,
    process,
    slack_workspace,
)
from tests.external.teams_cards import card_page, draw
from tests.external.teams_playground import INCIDENTS, PERSONAL_CHAT, STARTED_WITHIN, Playground, teams_playground

PLUMBLINE = Path(sys.executable).with_name("plumbline")
IMAGES = Path(__file__).parents[2] / "docs" / "images"
INCIDENT = "connection-pool"
# What else alerts in it, one alert for each pod: the rule, its service, what it says, and how many pods. 49, with INCIDENT 50.
WITH_IT = (
    ("PaymentsTimeOut", "payment-gateway", "Payments time out", 2),
    ("CheckoutErrorRateHigh", "booking-api", "Checkouts fail", 14),
    ("CheckoutSlow", "web-store", "Checkout takes longer than 5 s", 24),
    ("RefundsWait", "refunds-worker", "Refunds wait for longer than 10 minutes", 9),
)
ASKED = "How do I get a shell on a runner of a failing run?"
WIDTH, HEIGHT = 1_000, 1_800  # pixels of the page; an answer must fit below the header
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
WHOLE_PAGE = ".reply { display: none !important; } .thread { padding: 16px !important; border: 0 !important; }"
# Slack shows a time in the zone of each reader; its emulator shows the mark for it, which holds the time in UTC.
DATES = """() => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        texts.currentNode.data = texts.currentNode.data.replace(/<!date[^|>]*[|]([^>]*)>/g, "$1");
    }
}"""
PLAIN_SLACK = ".topbar, .composer, .msg-hover-actions { display: none !important; }"


@asynccontextmanager
async def open_page(browser: Browser, address: str, theme: Literal["light", "dark"]) -> AsyncIterator[Page]:
    size = ViewportSize(width=WIDTH, height=HEIGHT)
    page = await browser.new_page(viewport=size, device_scale_factor=SCALE, color_scheme=theme, bypass_csp=True)
    await page.goto(address, wait_until="domcontentloaded")
    yield page
    await page.close()


async def answer_on_page(browser: Browser, folder: Path) -> None:
    log, port = folder / "demo.log", free_port()
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "PLUMBLINE_PORT": str(port)}
    async with process([str(PLUMBLINE), "demo"], log, environment):

        async def is_open() -> bool | None:
            return "Open http" in log.read_text(encoding="utf-8") or None

        await eventually(is_open, "the page is open", STARTED_WITHIN)
        address = f"http://127.0.0.1:{port}/?channel=ask-plumbline"
        for theme in THEMES:
            async with open_page(browser, address, theme) as page:
                if theme == THEMES[0]:
                    await page.get_by_label("Ask in #ask-plumbline").fill(ASKED)
                    await page.keyboard.press("Enter")
                await page.locator(".answer").first.wait_for()
                await page.add_style_tag(content=WHOLE_PAGE)
                await page.locator(".thread").first.screenshot(path=IMAGES / f"page-answer-{theme}.png")


def storm(first: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the deliveries of WITH_IT, as Alertmanager makes them: one for each rule."""
    for rule, service, summary, pods in WITH_IT:
        common = first["commonLabels"] | {"alertname": rule, "service": service, "severity": "warning"}
        notes = {"summary": summary}
        alerts = [
            first["alerts"][0]
            | {"labels": common | {"pod": f"{service}-{number}"}, "annotations": notes}
            | {"fingerprint": hashlib.md5(f"{rule}{number}".encode(), usedforsecurity=False).hexdigest()[:16]}
            for number in range(pods)
        ]
        named = {"groupKey": f"{{}}:{{alertname={rule}}}", "groupLabels": {"alertname": rule}}
        yield first | named | {"alerts": alerts, "commonLabels": common, "commonAnnotations": notes}


async def incident_in_slack(browser: Browser, workspace: SlackWorkspace) -> None:
    first = json.loads((SAMPLE_COMPANY.parent / "live" / INCIDENT / "alert.json").read_text(encoding="utf-8"))
    for delivery in (first, *storm(first)):
        await workspace.fire(delivery)
    (message,) = await workspace.until(
        lambda said: len(said) == 1 and "49 alerts" in shown(said[0]) and "Right cause" in shown(said[0]),
        CHANNELS["incidents"],
    )
    await workspace.until(bool, CHANNELS["incidents"], message["ts"])
    for theme in THEMES:
        async with open_page(browser, workspace.page, theme) as page:
            await page.add_style_tag(content=PLAIN_SLACK + (DARK_SLACK if theme == "dark" else ""))
            await page.get_by_role("button", name="incidents").click()
            posted = page.locator(f'.msg[data-ts="{message["ts"]}"]')
            await posted.get_by_text("Take", exact=True).wait_for()
            await page.evaluate(DATES)
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
            await answer_on_page(browser, Path(folder))
        with tempfile.TemporaryDirectory() as folder:
            async with slack_workspace(Path(folder)) as workspace:
                await incident_in_slack(browser, workspace)
        with tempfile.TemporaryDirectory() as folder:
            async with teams_playground(Path(folder), "builtin") as playground:
                await in_teams(browser, playground)


if __name__ == "__main__":
    asyncio.run(main())
