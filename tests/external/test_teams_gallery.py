"""Every message as a card in Teams' colours, light and dark, drawn by Microsoft's own library: pictures to look at."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from adapters.teams.dialogs import ask_dialog, form_dialog
from adapters.teams.render import render
from core.model.messages import CauseRequest, CorrectionRequest, HandoverRequest
from core.samples import SAMPLES
from tests.external.browser import open_browser
from tests.external.slack_emulator import ARTIFACTS, HERE

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]

LIBRARY = HERE / "node_modules" / "adaptivecards" / "dist" / "adaptivecards.min.js"
WIDTH = 720  # pixels; a card in a channel is about as wide

# Background, text, subtle text, border, and the colours of emphasis, as in Teams' two usual themes.
THEMES = {
    "light": ("#ffffff", "#242424", "#616161", "#d1d1d1", "#5b5fc7", "#237b4b", "#835c00", "#c4314b"),
    "dark": ("#292929", "#ffffff", "#adadad", "#3d3d3d", "#a6a7dc", "#92c353", "#f8d22a", "#f9526b"),
}
STYLES = {  # containers: light, dark
    "attention": ("#fcf4f6", "#3e1f25"),
    "warning": ("#fbf6d9", "#463100"),
    "good": ("#e7f2da", "#0d2e0d"),
    "accent": ("#e8ebfa", "#2f2f4a"),
    "emphasis": ("#f0f0f0", "#1f1f1f"),
}
DIALOGS = {
    "dialog correct": form_dialog(CorrectionRequest("answer-1")),
    "dialog reassign": form_dialog(HandoverRequest("incident-1", "Payments", (("web", "Web Store"),))),
    "dialog wrong cause": form_dialog(CauseRequest("cause-1")),
    "dialog ask about this": ask_dialog(),
}


def _host(theme: str) -> dict[str, object]:
    _, text, subtle, border, accent, good, warning, attention = THEMES[theme]
    named = {"default": text, "accent": accent, "good": good, "warning": warning, "attention": attention}
    foreground = {
        name: {"default": color, "subtle": subtle if name == "default" else color} for name, color in named.items()
    }
    styles = {
        name: {"backgroundColor": colors[theme == "dark"], "foregroundColors": foreground}
        for name, colors in STYLES.items()
    }
    plain = {"backgroundColor": THEMES[theme][0], "foregroundColors": foreground}
    return {
        "fontFamily": "sans-serif",
        "separator": {"lineThickness": 1, "lineColor": border},
        "containerStyles": {"default": plain, **styles},
        "actions": {"maxActions": 6, "actionsOrientation": "horizontal", "buttonSpacing": 8},
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
    page = await browser.new_page(viewport={"width": WIDTH, "height": 800})
    background, text, _, border, accent, *_ = THEMES[theme]
    on_accent = "#1f1f1f" if theme == "dark" else "#ffffff"
    style = (
        f"body {{ margin: 0; padding: 16px; background: {background}; color: {text} }}"
        f".ac-pushButton {{ font: 600 14px sans-serif; padding: 5px 12px; border: 1px solid {border}; border-radius: 4px;"
        f" background: {background}; color: {text} }} .ac-pushButton.style-positive {{ background: {accent}; color: {on_accent} }}"
        f"a {{ color: {accent} }} .ac-input {{ background: {background}; color: {text}; border: 1px solid {border};"
        " padding: 6px; width: 100%; box-sizing: border-box } "
    )
    await page.set_content(f"<!doctype html><meta charset=utf-8><style>{style}</style><main></main>")
    await page.add_script_tag(content=LIBRARY.read_text(encoding="utf-8"))
    for name, content in cards.items():
        shown = await page.evaluate(DRAW, [content, _host(theme)])
        assert shown, f"nothing of {name} is drawn"
        file = ARTIFACTS / f"teams-card-{theme}-{_file_name(name)}.png"
        await page.locator("main").screenshot(path=file)
    await page.close()


DRAW = """([content, host]) => {
    const card = new AdaptiveCards.AdaptiveCard();
    card.hostConfig = new AdaptiveCards.HostConfig(host);
    card.parse(JSON.parse(JSON.stringify(content)));
    const main = document.querySelector("main");
    main.replaceChildren(card.render());
    return main.innerText.trim().length;
}"""


def _file_name(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
