"""The text that people see in a message of Slack."""

from __future__ import annotations

from typing import Any

from adapters.slack.payloads import Content
from core.model.conversation import MAX_MESSAGE
from tests.cases import every_case


def rich(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text", "elements": list(elements)}


def section(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def words(text: str, **style: bool) -> dict[str, Any]:
    return {"type": "text", "text": text, "style": style}


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text}


def marked(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text}


BUTTONS = {"type": "actions", "elements": [{"type": "button", "text": plain("Acknowledge")}]}
FORWARDED = {
    "is_share": True,
    "is_msg_unfurl": True,
    "fallback": "[March 3rd] hana: ferry 12 is fully booked twice",
    "message_blocks": [
        {"team": "T1", "message": {"blocks": [rich(section(words("ferry 12 is fully booked twice")))]}},
    ],
}


@every_case(
    ("message", "seen"),
    [
        ({"blocks": [{"type": "header", "text": plain("Till & jetty down")}]}, "Till &amp; jetty down"),
        ({"blocks": [{"type": "section", "text": marked("*till* slow"), "fields": [marked("p99: 4 s")]}]}, "*till* slow\np99: 4 s"),
        ({"blocks": [{"type": "context", "elements": [plain("since 9:00"), {"type": "image", "alt_text": "x"}]}]}, "since 9:00"),
        ({"blocks": [{"type": "markdown", "text": "**Fix**\n- restart <till>"}]}, "**Fix**\n- restart &lt;till&gt;"),
        (
            {"blocks": [rich(section(words("run "), words("tillctl drain", code=True)), {"type": "rich_text_list", "style": "ordered", "elements": [section(words("stop")), section(words("start"))]})]},
            "run `tillctl drain`\n1. stop\n2. start",
        ),
        ({"blocks": [rich({"type": "rich_text_preformatted", "elements": [words("a\nb")]})]}, "```\na\nb\n```"),
        ({"blocks": [rich({"type": "rich_text_quote", "elements": [words("one\ntwo")]})]}, "&gt; one\n&gt; two"),
        (
            {"blocks": [rich(section({"type": "user", "user_id": "U1"}, words(" see "), {"type": "link", "url": "https://a.example/?b&c", "text": "it"}, {"type": "emoji", "name": "fire"}))]},
            "<@U1> see <https://a.example/?b&amp;c|it>:fire:",
        ),
        (
            {"blocks": [{"type": "table", "rows": [[{"type": "raw_text", "text": "pod"}, {"type": "raw_text", "text": "n|m"}], [rich(section(words("till"))), {"type": "raw_text", "text": "2"}]]}]},
            "| pod | n\\|m |\n|---|---|\n| till | 2 |",
        ),
        ({"attachments": [{"pretext": "TillSlow", "color": "danger", "fields": [{"title": "Service", "value": "till", "short": True}]}]}, "TillSlow\nService: till"),
        ({"attachments": [{"fallback": "[no preview available]", "blocks": [{"type": "section", "text": marked("till slow")}, BUTTONS]}]}, "till slow"),
        ({"attachments": [{"fallback": "2 more"}, {"fallback": "[no preview available]"}]}, "2 more"),
        ({"text": "look", "attachments": [FORWARDED]}, "look\nferry 12 is fully booked twice"),
        ({"text": "hi", "attachments": [FORWARDED | {"text": "ferry 12 is fully booked twice"}]}, "hi\nferry 12 is fully booked twice"),
        ({"files": [{"name": "image.png", "title": "Queue of the till"}, {"name": "a.log", "title": "a"}]}, "(attachment: Queue of the till, image.png)\n(attachment: a.log)"),
        ({"text": "till slow", "blocks": [rich(section(words("till slow")))]}, "till slow"),
        ({"text": "Alert", "blocks": [{"type": "section", "text": marked("till slow")}]}, "Alert\ntill slow"),
        ({"text": None, "blocks": "x", "attachments": {"text": 3}, "files": [None, "x"]}, ""),
        ({"blocks": [{"type": ["x"], "elements": 3}, rich({"type": "rich_text_list", "indent": "x", "elements": None})]}, ""),
    ],
)  # fmt: skip
def test_everything_that_people_see_in_a_message_is_read_once(message: dict[str, Any], seen: str) -> None:
    assert Content.model_validate(message).seen == seen


def test_a_huge_or_deeply_nested_message_is_cut() -> None:
    nested: dict[str, Any] = {"type": "section", "text": marked("deep")}
    for _ in range(1_000):
        nested = {"elements": [nested]}
    assert Content(blocks=[nested]).seen == ""
    many = [{"text": f"{number} {'x' * 100}"} for number in range(10_000)]
    assert len(Content(text="a", attachments=many).seen) <= MAX_MESSAGE
