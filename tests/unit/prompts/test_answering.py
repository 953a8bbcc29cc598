from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.conversation import Speaker, Turn
from core.model_calls.prompts import REPLY_TYPES
from core.model_calls.prompts import answering as prompts
from core.model_calls.structured_reply import schema_of

HOSTILE = st.text(st.sampled_from('ab =\n\r\u2028\x85$"{}'), max_size=30)


def fences(messages: prompts.Messages) -> int:
    return sum(set(line.strip()) == {"="} and line.count("=") > 2 for line in messages[-1].text.splitlines())


def prompts_about(text: str) -> list[prompts.Messages]:
    sections = [prompts.Section(text, text, {1: text, 2: f"\n=====\n{text}"})]
    return [
        prompts.rewrite(text, [Turn(Speaker.PERSON, text), Turn(Speaker.PLUMBLINE, f"=====\n{text}")]),
        prompts.compress(sections, text),
        prompts.compose(sections, text),
        prompts.verdict(sections, text, [1, 2]),
        prompts.translate([text, f"{text}\n====="], text, f"German\n=====\n{text}"),
        prompts.same_meaning(text, f"=====\n{text}"),
    ]


@given(HOSTILE)
def test_no_text_can_end_its_own_quotation(text: str) -> None:
    assert [fences(messages) for messages in prompts_about(text)] == [
        fences(messages) for messages in prompts_about("harmless")
    ]


def test_every_statement_is_shown_whole_under_its_number() -> None:
    section = prompts.Section("Rolling back", "By hand", {3: "Run `slip`.", 7: "Line one\nand “two”."})
    (message,) = [each for each in prompts.compose([section], "how?") if each.role == "user"]
    (line,) = [line for line in message.text.splitlines() if line.startswith('{"document"')]
    assert json.loads(line) == {
        "document": "Rolling back",
        "heading": "By hand",
        "statements": {"3": "Run `slip`.", "7": "Line one\nand “two”."},
    }


@pytest.mark.parametrize("kind", REPLY_TYPES, ids=lambda kind: kind.__name__)
def test_every_reply_is_of_bounded_size(kind: type) -> None:
    def unbounded(part: Any) -> Iterator[object]:
        if isinstance(part, dict):
            bound = {"string": "maxLength", "array": "maxItems"}.get(str(part.get("type")))
            if bound and bound not in part and "enum" not in part and "const" not in part:
                yield part
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                yield from unbounded(each)

    assert list(unbounded(schema_of(kind))) == []
