"""The sentences, items and rows of a model's reply, and what they cite."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answering.evidence import MAX_CLAIMS, CitedSentence, Form, claims, complete_claims, is_not_found


@pytest.mark.parametrize(
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
            [CitedSentence("mode | limit", (), Form.ROW), CitedSentence("fast | 5 s", (1,), Form.ROW)],
        ),
        ("See [the page](https://evil.example) [1].", [CitedSentence("See the page.", (1,))]),
        ("It is 実行する。[2]", [CitedSentence("It is 実行する。", (2,))]),
        ("", []),
        ("[1]", []),
    ],
)
def test_reply_is_read_as_claims_with_their_numbers(reply: str, expected: list[CitedSentence]) -> None:
    assert claims(reply) == expected


@pytest.mark.parametrize("reply", ["NOT FOUND", " not found.", "**NOT FOUND**", "", "NOT_FOUND in the passages"])
def test_model_that_finds_nothing_is_understood(reply: str) -> None:
    assert is_not_found(reply)


def test_growing_reply_shows_only_what_is_complete() -> None:
    assert complete_claims("Run it [1]. Then wa") == [CitedSentence("Run it.", (1,))]
    assert complete_claims("Run it") == []


@given(st.text(st.sampled_from("ab.[]|-123 \n`，。*"), max_size=80))
def test_no_reply_gives_more_claims_than_are_read(reply: str) -> None:
    found = claims(reply * 40)
    assert len(found) <= MAX_CLAIMS
    assert all(claim.text and "\n" not in claim.text for claim in found)
