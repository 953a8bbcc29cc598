"""Every message as a card in Teams' colours, light and dark, drawn by Microsoft's own library: pictures to look at."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from adapters.teams.render import ask_dialog, form_dialog, render
from core.model.messages import CauseRequest, CorrectionRequest, HandoverRequest
from tests.external.browser import open_browser
from tests.external.slack_emulator import ARTIFACTS
from tests.external.teams_cards import THEMES, card_page, draw
from tests.samples import SAMPLES

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

DIALOGS = {
    "dialog correct": form_dialog(CorrectionRequest("answer-1")),
    "dialog reassign": form_dialog(HandoverRequest("incident-1", "Payments", (("web", "Web Store"),))),
    "dialog wrong cause": form_dialog(CauseRequest("cause-1")),
    "dialog ask about this": ask_dialog(),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as browser:
        yield browser


@pytest.mark.parametrize("theme", THEMES)
async def test_every_message_is_drawn(browser: Browser, theme: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    names = [*SAMPLES, *DIALOGS]
    assert len({_file_name(name) for name in names}) == len(names)
    cards = {name: render(message).content for name, message in SAMPLES.items()}
    cards |= {name: dialog["value"]["card"]["content"] for name, dialog in DIALOGS.items()}
    async with card_page(browser, theme) as page:
        for name, content in cards.items():
            assert await draw(page, theme, content), f"nothing of {name} is drawn"
            file = ARTIFACTS / f"teams-card-{theme}-{_file_name(name)}.png"
            await page.locator("main").screenshot(path=file)


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
