"""The sentences, items and rows of a model's reply, and what they cite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answering.reply import MAX_CLAIMS, CitedSentence, Form, claims, complete_claims, is_not_found
from tests.cases import every_case


@every_case(
    ("reply", "expected"),
    [
        ("Run it [1].", [CitedSentence("Run it.", (1,))]),
        ("Run it. [1]", [CitedSentence("Run it.", (1,))]),
        ("Run it [1][3]. Wait [2, 4].", [CitedSentence("Run it.", (1, 3)), CitedSentence("Wait.", (2, 4))]),
        ("Run it. Wait for it [2].", [CitedSentence("Run it.", (2,)), CitedSentence("Wait for it.", (2,))]),
        ("Run it [1]. slipway waits [2].", [CitedSentence("Run it.", (1,)), CitedSentence("slipway waits.", (2,))]),
        (
            "1. Stop it [1]\n2. Start it [2]",
            [CitedSentence("Stop it", (1,), Form.STEP), CitedSentence("Start it", (2,), Form.STEP)],
        ),
        ("- `a` [1]\n* `b` [2]", [CitedSentence("`a`", (1,), Form.ITEM), CitedSentence("`b`", (2,), Form.ITEM)]),
        (
            "| mode | limit |\n|---|---|\n| fast | 5 s [1] |",
            [CitedSentence("mode | limit", (), Form.LEAD), CitedSentence("fast | 5 s", (1,), Form.ROW)],
        ),
        ("See [the page](https://evil.example) [1].", [CitedSentence("See the page.", (1,))]),
        ("It is 実行する。[2]", [CitedSentence("It is 実行する。", (2,))]),
        ("", []),
        ("[1]", []),
    ],
)
def test_reply_is_read_as_claims_with_their_numbers(reply: str, expected: list[CitedSentence]) -> None:
    assert claims(reply) == expected


@every_case("reply", ["NOT FOUND", " not found.", "**NOT FOUND**", "", "NOT_FOUND in the passages"])
def test_model_that_finds_nothing_is_understood(reply: str) -> None:
    assert is_not_found(reply)


def test_growing_reply_shows_only_what_is_complete() -> None:
    assert complete_claims("Run it [1]. Then wa") == [CitedSentence("Run it.", (1,))]
    assert complete_claims("Run it") == []


@given(st.text(st.sampled_from("ab.[]|-123 \n`，。*"), max_size=80))
def test_no_reply_gives_more_claims_than_are_read(reply: str) -> None:
    found = claims(reply * 40)
    assert len(found) <= MAX_CLAIMS
    assert all(claim.text and ("\n" not in claim.text or claim.form is Form.CODE) for claim in found)


SAID = ("Run `slip undo`", "The traffic returns after 90 s")
FORMS = {
    "sentences": "Run `slip undo` [1]. The traffic returns after 90 s [1].",
    "marks after the full stop": "Run `slip undo`. [1] The traffic returns after 90 s. [1]",
    "one mark for both": "Run `slip undo`. The traffic returns after 90 s [1].",
    "mark on the first only": "Run `slip undo` [1]. The traffic returns after 90 s.",
    "mark on a line of its own": "Run `slip undo`. The traffic returns after 90 s.\n\n[1]",
    "source line": "Run `slip undo`. The traffic returns after 90 s.\n\n**Source:** [1]",
    "sources as a list": "Run `slip undo` [1]. The traffic returns after 90 s [1].\n\n### Sources\n- [1] Rolling back",
    "footnotes": "Run `slip undo` [^1]. The traffic returns after 90 s [^1].\n\n[^1]: passage 1",
    "reference definition": "Run `slip undo` [1]. The traffic returns after 90 s [1].\n\n[1]: https://wiki.example/undo",
    "in parentheses": "Run `slip undo` (1). The traffic returns after 90 s (1).",
    "passage in parentheses": "Run `slip undo` (passage 1). The traffic returns after 90 s (see passage 1).",
    "passage in brackets": "Run `slip undo` [Passage 1]. The traffic returns after 90 s [Passage 1].",
    "corner brackets": "Run `slip undo`【1】. The traffic returns after 90 s【1†source】.",
    "linked mark": "Run `slip undo` [1](https://wiki.example). The traffic returns after 90 s [1](#1).",
    "raised mark": "Run `slip undo` <sup>[1]</sup>. The traffic returns after 90 s <sup>[1]</sup>.",
    "according to": "According to passage 1, Run `slip undo`. The traffic returns after 90 s (passage 1).",
    "several marks": "Run `slip undo` [1][2]. The traffic returns after 90 s [1, 2].",
    "range": "Run `slip undo` [1-2]. The traffic returns after 90 s [1–2].",
    "lead line": "Here is how:\n\nRun `slip undo` [1]. The traffic returns after 90 s [1].",
    "lead with a mark": "These are the steps [1]:\n- Run `slip undo`\n- The traffic returns after 90 s",
    "bold title": "**Undo**\n\nRun `slip undo` [1]. The traffic returns after 90 s [1].",
    "heading": "## Undo\nRun `slip undo` [1]. The traffic returns after 90 s [1].",
    "answer": "Answer: Run `slip undo` [1]. The traffic returns after 90 s [1].",
    "bold answer": "**Answer:** Run `slip undo` [1]. The traffic returns after 90 s [1].",
    "bold statement": "**Run `slip undo`** [1]. *The traffic returns after 90 s* [1].",
    "bullets": "- Run `slip undo` [1]\n- The traffic returns after 90 s [1]",
    "stars": "* Run `slip undo` [1]\n* The traffic returns after 90 s [1]",
    "dots": "• Run `slip undo` [1]\n• The traffic returns after 90 s [1]",
    "loose list": "- Run `slip undo` [1]\n\n- The traffic returns after 90 s [1]",
    "mark under a list": "- Run `slip undo`\n- The traffic returns after 90 s\n\n[1]",
    "nested list": "- Run `slip undo` [1]\n  - The traffic returns after 90 s [1]",
    "numbered": "1. Run `slip undo` [1]\n2. The traffic returns after 90 s [1]",
    "numbered with parentheses": "1) Run `slip undo` [1]\n2) The traffic returns after 90 s [1]",
    "quotation": "> Run `slip undo` [1]\n>\n> The traffic returns after 90 s [1]",
    "table": "| what | how |\n|---|---|\n| Run `slip undo` | yes [1] |\n| The traffic returns after 90 s | no [1] |",
    "table without outer bars": "what | how\n---|---\nRun `slip undo` | yes [1]\nThe traffic returns after 90 s | no [1]",
    "table with a column of sources": "| what | source |\n|---|---|\n| Run `slip undo` | [1] |\n"
    "| The traffic returns after 90 s | [1] |",
    "table below a line with a mark": "As a table [1]:\n\n| what |\n|---|\n| Run `slip undo` |\n"
    "| The traffic returns after 90 s |",
    "lines wrapped": "Run `slip undo` [1]. The traffic\nreturns after 90 s [1].",
    "whole reply fenced": "```markdown\nRun `slip undo` [1]. The traffic returns after 90 s [1].\n```",
    "rule between": "Run `slip undo` [1].\n\n---\n\nThe traffic returns after 90 s [1].",
    "yes": "Yes. Run `slip undo` [1]. The traffic returns after 90 s [1].",
}
"""Forms in which models answer: each says both statements, and cites passage 1."""


def test_every_form_is_read_as_what_it_says_and_cites(subtests: pytest.Subtests) -> None:
    for name, reply in FORMS.items():
        with subtests.test(name):
            read = [each for each in claims(reply) if each.form is not Form.LEAD]
            for said in SAID:
                assert [each.numbers[:1] for each in read if said in each.text] == [(1,)]
            assert all(any(said in each.text for said in SAID) or each.text.endswith(":") for each in read)


def test_block_of_code_is_one_claim_and_cites_what_is_near() -> None:
    for reply in (
        "Run this [1]:\n\n```sh\nslip undo\n```",
        "Run this:\n```\nslip undo\n```\n[1]",
        "```sh\nslip undo  # [1]\n```",
    ):
        assert CitedSentence("```\nslip undo\n```", (1,), Form.CODE) in [
            CitedSentence(each.text, each.numbers or (1,), each.form) for each in claims(reply)
        ]
