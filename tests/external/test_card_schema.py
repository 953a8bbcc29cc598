"""Every card, at its smallest and at its largest, as Microsoft's own library for Adaptive Cards reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adapters.teams.render import render
from tests.fakes.text_everywhere import everywhere
from tests.samples import SAMPLES

pytestmark = pytest.mark.external

VALIDATOR = Path(__file__).with_name("validate_cards.cjs")
LONG = "A text as long as whoever writes it likes. " * 40


def problems(cards: list[dict[str, Any]]) -> list[list[str]]:
    """What the library says is wrong with each card."""
    read = subprocess.run(["node", VALIDATOR], input=json.dumps(cards), capture_output=True, text=True, check=True)
    return json.loads(read.stdout)


def test_the_library_finds_nothing_wrong_with_any_card() -> None:
    messages = SAMPLES | {f"{name}, at its largest": each for name, each in everywhere(LONG, 30).items()}
    messages |= {f"{name}, with nothing in it": each for name, each in everywhere("", 1).items()}
    found = dict(zip(messages, problems([render(each).content for each in messages.values()]), strict=True))
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "element",
    [
        {"type": "TextBlok", "text": "x"},
        {"type": "TextBlock", "text": "x", "size": "Gigantic"},
        {"type": "Image", "size": "Vast"},
    ],
)
def test_the_library_finds_what_is_wrong(element: dict[str, Any]) -> None:
    (found,) = problems([{"type": "AdaptiveCard", "version": "1.5", "body": [element]}])
    assert found


def test_more_buttons_than_teams_shows_belong_in_the_menu() -> None:
    def card(mode: str) -> dict[str, Any]:
        actions = [{"type": "Action.Submit", "title": str(number), "mode": mode} for number in range(7)]
        return {"type": "AdaptiveCard", "version": "1.5", "actions": actions}

    shown, in_menu = problems([card("primary"), card("secondary")])
    assert shown
    assert in_menu == []
