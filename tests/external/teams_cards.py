"""Cards in Teams' colours, light and dark, drawn by Microsoft's own library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Page

from tests.external.slack_emulator import HERE

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

# Teams draws a code box, which the library does not know.
CODE_BOX = """
class CodeBlock extends AdaptiveCards.CardElement {
    getJsonTypeName() { return "CodeBlock"; }
    internalRender() {
        const box = document.createElement("div");
        box.className = "code-box";
        for (const line of this.getCustomProperty("code")) {
            box.appendChild(document.createElement("code")).textContent = line || " ";
        }
        return box;
    }
    internalParse(source, context) {
        super.internalParse(source, context);
        this.setCustomProperty("code", source.codeSnippet.split("\\n"));
    }
}
AdaptiveCards.GlobalRegistry.elements.register("CodeBlock", CodeBlock);
"""

DRAW = """([content, host]) => {
    const card = new AdaptiveCards.AdaptiveCard();
    card.hostConfig = new AdaptiveCards.HostConfig(host);
    card.parse(JSON.parse(JSON.stringify(content)));
    const main = document.querySelector("main");
    main.replaceChildren(card.render());
    return main.innerText.trim().length;
}"""


@asynccontextmanager
async def card_page(browser: Browser, theme: str, *, scale: float = 1) -> AsyncIterator[Page]:
    """Open a page that `draw` can draw on, in the colours of a theme."""
    page = await browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=scale)
    background, text, _, border, accent, *_ = THEMES[theme]
    on_accent = "#1f1f1f" if theme == "dark" else "#ffffff"
    style = (
        f"body {{ margin: 0; padding: 16px; background: {background}; color: {text} }}"
        f".ac-pushButton {{ font: 600 14px sans-serif; padding: 5px 12px; border: 1px solid {border}; border-radius: 4px;"
        f" background: {background}; color: {text} }} .ac-pushButton.style-positive {{ background: {accent}; color: {on_accent} }}"
        f"a {{ color: {accent} }} .ac-input {{ background: {background}; color: {text}; border: 1px solid {border};"
        " padding: 6px; width: 100%; box-sizing: border-box } "
        f".code-box {{ border: 1px solid {border}; border-radius: 4px; padding: 6px 10px; margin-top: 4px;"
        f" counter-reset: line; overflow-x: auto; background: {STYLES['emphasis'][theme == 'dark']} }}"
        ".code-box code { display: block; white-space: pre; font: 13px monospace; counter-increment: line }"
        ".code-box code::before { content: counter(line); opacity: .5; margin-right: 12px }"
    )
    await page.set_content(f"<!doctype html><meta charset=utf-8><style>{style}</style><main></main>")
    await page.add_script_tag(content=LIBRARY.read_text(encoding="utf-8"))
    await page.add_script_tag(content=CODE_BOX)
    yield page
    await page.close()


async def draw(page: Page, theme: str, card: Mapping[str, Any]) -> int:
    """Draw a card in place of the one before. Returns how many characters it shows."""
    return await page.evaluate(DRAW, [card, _host(theme)])


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
