"""How long somebody in Slack waits: from Enter to the answer on the screen, without a language model.

    python -m tests.benchmarks slack-latency [--questions 30] [--json FILE]

The whole bot with the sample company, and local-slack (tests/external, `npm ci`) in Chromium. The clock is the page's own:
it starts with the Enter key in the channel, and stops when the question on the page has its reply. The questions follow
each other more slowly than Slack lets a bot post in one channel. Milliseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.async_api import Page

from tests.external.browser import open_browser
from tests.external.slack_emulator import BOT_USER, SlackWorkspace, slack_workspace

CHANNEL = "ask-plumbline"
PAUSE = 1.3  # seconds between an answer and the next question: Slack takes one post a second in a channel
WARM_UP = 3  # questions that are not counted
QUESTIONS = (
    "how do I roll back a canary?",
    "how do I drain a drydock runner?",
    "who may deploy during the freeze?",
    "how do I rotate the gateway key?",
    "what is the wifi password of the cafeteria?",
)

# Counts the replies on the page; remembers when Enter was pressed, and when there was one reply more.
WATCH = """() => {
    const replies = () => [...document.querySelectorAll('*')].filter(
        (each) => !each.children.length && /^\\d+ repl/.test(each.textContent)).length;
    document.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter') return;
        const before = replies(), started = performance.now();
        window.waited = null;
        const observer = new MutationObserver(() => {
            if (replies() > before) {
                observer.disconnect();
                requestAnimationFrame(() => { window.waited = performance.now() - started; });
            }
        });
        observer.observe(document.body, {childList: true, subtree: true, characterData: true});
    }, true);
}"""


async def measured(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with slack_workspace(Path(folder)) as workspace, open_browser() as browser:
            waited = await _times_of(await browser.new_page(), workspace, count)
            acknowledged = 1_000 * np.array(workspace.proxy.acknowledged_in)
    return {
        "questions": count,
        "answer_ms": _percentiles(np.array(waited[WARM_UP:])),
        "acknowledgement_ms": _percentiles(acknowledged),
    }


async def _times_of(page: Page, workspace: SlackWorkspace, count: int) -> list[float]:
    await page.goto(workspace.page)
    await page.get_by_role("button", name=CHANNEL).click()
    await page.evaluate(WATCH)
    box = page.get_by_placeholder("Message #")
    waited: list[float] = []
    for number in range(WARM_UP + count):
        await box.fill(f"<@{BOT_USER}> {QUESTIONS[number % len(QUESTIONS)]}")
        await box.press("Enter")
        await page.wait_for_function("window.waited")
        waited.append(await page.evaluate("window.waited"))
        await asyncio.sleep(PAUSE)
    return waited


def _percentiles(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    return {name: round(float(np.percentile(values, at)), 1) for name, at in (("p50", 50), ("p90", 90), ("p99", 99))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = asyncio.run(measured(given.questions))
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
