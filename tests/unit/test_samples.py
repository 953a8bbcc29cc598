"""Every message of every platform, at its smallest and at its largest, against what the platforms publish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import get_args

import pytest

from adapters.slack.render import render as as_blocks
from adapters.teams.render import render as as_card
from core.model.answer import Sentence
from core.model.messages import AnswerMessage, Message, Notice
from tests.cases import every_case
from tests.fakes import adaptive_card, block_kit
from tests.fakes.text_everywhere import everywhere
from tests.samples import SAMPLES
from tests.samples.parts import answer

# By the text that fills every field of outside: nothing, one letter, long lines, one endless word, markup.
TEXTS = {
    "nothing": ("", 0),
    "one letter": ("x", 1),
    "many long lines": (("A text of some length. " * 30 + "\n") * 5, 20),
    "one endless word": ("x" * 3_200, 20),
    "markup": ("<!channel> <@U1> *b* `c` [a](https://x) <at>y</at> &amp; " * 6, 20),
    "much markup": ("<!channel> <@U1> *b* `c` [a](https://x) <at>y</at> &amp; " * 40, 20),
    "escaped in JSON": ('"\\' * 1_600, 20),
    "characters of many bytes": ("漢💩é" * 500, 20),
    "invisible": ("\u200b\u202e\x00\x07 \n" * 50, 5),
}


def filled(kind: str) -> dict[str, Message]:
    """Return every message with its fields filled with this kind of text."""
    text, count = TEXTS[kind]
    found = everywhere(text, count)
    return {name: each for name, each in found.items() if count or name != "join request"}  # has at least one to pick


SLOW = ("much markup", "one endless word", "escaped in JSON", "characters of many bytes")
KINDS = [pytest.param(kind, marks=[pytest.mark.external] if kind in SLOW else []) for kind in ("as usual", *TEXTS)]


@pytest.fixture(params=KINDS)
def messages(request: pytest.FixtureRequest) -> Mapping[str, Message]:
    return SAMPLES if request.param == "as usual" else filled(request.param)


@every_case("kind", get_args(Message))
def test_every_type_of_message_has_a_sample_as_it_usually_is_and_at_its_largest(kind: type[Message]) -> None:
    assert any(isinstance(sample, kind) for sample in SAMPLES.values())
    assert any(isinstance(sample, kind) for sample in everywhere("x").values())


def test_slack_takes_every_message(messages: Mapping[str, Message]) -> None:
    rendered = {name: as_blocks(message) for name, message in messages.items()}
    problems = {name: block_kit.problems(each.text, each.blocks) for name, each in rendered.items()}
    assert {name: found for name, found in problems.items() if found} == {}


def test_teams_takes_every_message(messages: Mapping[str, Message]) -> None:
    cards = {name: as_card(message) for name, message in messages.items()}
    problems = {name: adaptive_card.problems(each.content, each.summary) for name, each in cards.items()}
    assert {name: found for name, found in problems.items() if found} == {}
    assert [name for name, each in cards.items() if json.loads(json.dumps(each.content)) != each.content] == []


def test_code_and_tables_of_an_answer_keep_their_lines_in_each_chat() -> None:
    code, table = "slipway rollback <SERVICE>\n  slipway status", "| Stage | Share |\n|---|---|\n| canary 1 | 5 % |"
    text = f"Run this:\n```sh\n{code}\n```\nThe stages:\n\n{table}"
    message = AnswerMessage(answer(sentences=(Sentence(text, (1,)),)))
    card = as_card(message).content
    assert [each["codeSnippet"] for each in adaptive_card.of_type(card, "CodeBlock")] == [code]
    assert [
        (each["firstRowAsHeader"], [adaptive_card.texts(row) for row in each["rows"]])
        for each in adaptive_card.of_type(card, "Table")
    ] == [(True, [["Stage", "Share"], ["canary 1", "5 %"]])]
    shown = "\n".join(block_kit.texts(as_blocks(message).blocks))
    code = code.replace("<", "&lt;").replace(">", "&gt;")
    assert f"Run this:\n```{code}```\nThe stages:\nStage · Share\ncanary 1 · 5 % " in shown


def test_the_number_of_a_quote_stands_before_its_head_in_each_chat() -> None:
    lines = adaptive_card.texts(as_card(SAMPLES["closest matches"]).content)
    assert "[1] Rolling back › During a canary · updated 2026-02-11" in lines
    shown = "\n".join(block_kit.texts(as_blocks(SAMPLES["closest matches"]).blocks))
    assert shown.index("[1]") < shown.index("*Rolling back")


def test_only_a_command_has_a_box_of_its_own_in_teams() -> None:
    boxes = {name: [*adaptive_card.of_type(as_card(each).content, "CodeBlock")] for name, each in SAMPLES.items()}
    assert not boxes["error"], "its reference is small, and stands in its line"
    assert [box["codeSnippet"] for box in boxes["incident explained"]] == ["harbour-config revert config-4711"]


@pytest.mark.parametrize(
    "line",
    ["14:03 api: shop/__init__.py", "14:03 api: SELECT *, `id` FROM *", "14:03 api: [sign in](https://evil.example)"],
)
def test_a_log_line_in_a_notice_keeps_its_markup_as_text(line: str) -> None:
    notice = Notice(f"The latest lines:\n{line}")
    assert line in adaptive_card.texts(as_card(notice).content)
    (block,) = as_blocks(notice).blocks
    # Slack has no escape for its markup, so a character that looks alike stands for it.
    assert line in block["text"]["text"].translate({ord("ˍ"): "_", ord("∗"): "*", ord("ˋ"): "`"})
