from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answering.model_answer import Translated
from core.model.conversation import Speaker, Turn
from core.model_calls.choice import schema_of
from core.model_calls.prompts import READ_CHARACTERS, plain, quoted
from core.model_calls.prompts import answering as prompts

HOSTILE = st.text(st.sampled_from('ab =＝═\u200b\ufeff\n\r\u2028\x85$"{}'), max_size=30)


def fences(messages: prompts.Messages) -> int:
    lines = ["".join(plain(line).split()).replace("═", "=") for line in messages[-1].text.splitlines()]
    return sum(set(line) == {"="} and len(line) > 2 for line in lines)


def prompts_about(text: str) -> list[prompts.Messages]:
    excerpts = [prompts.Named(text, text), prompts.Named(f"{text}\n=====", f"\n=====\n{text}")]
    passages = [prompts.Numbered(1, text, text), prompts.Numbered(2, "=====", f"\n=====\n{text}")]
    return [
        prompts.rewrite(text, [Turn(Speaker.PERSON, text), Turn(Speaker.PLUMBLINE, f"=====\n{text}")]),
        prompts.choose(excerpts, text),
        prompts.write(passages, text),
        prompts.judge(passages, text, [prompts.Named(text, text)]),
        prompts.suffices(passages, text),
        prompts.rates(passages, text, text),
        prompts.translate([text, "====="], text, "German"),
    ]


@given(HOSTILE)
def test_no_text_can_end_its_own_quotation(text: str) -> None:
    assert [fences(messages) for messages in prompts_about(text)] == [
        fences(messages) for messages in prompts_about("harmless")
    ]


def test_line_that_reads_like_the_fence_is_shortened() -> None:
    cases: list[str] = [
        "=====",
        "  ===\t",
        "=\u200b====",
        "\ufeff=====",
        "＝＝＝＝＝",
        "═════",
        "= = =",
        "=\u00ad====",
        "=\x00====",
    ]
    for fence in cases:
        assert quoted(f"a\n{fence}\nb") == "a\n=\nb", fence


def test_line_that_is_no_fence_is_quoted_as_it_is() -> None:
    cases: list[str] = ["==", "a === b", "=== FAILURES ===", "== 3 ==", "\u200b", "", "–––––"]
    for line in cases:
        assert quoted(f"a\n{line}\nb") == f"a\n{line}\nb", line


def test_prompts_about_one_question_begin_alike_up_to_its_end() -> None:
    passages = [prompts.Numbered(1, "Rolling back", "Run `slip`.")]
    written, judged, sufficient = (
        prompts.write(passages, "how?"),
        prompts.judge(passages, "how?", [prompts.Named("Run `slip`. [1]", "Run `slip`.")]),
        prompts.suffices(passages, "how?"),
    )
    beginning = sufficient[1].text.rpartition("=====")[0]
    assert written[0] == judged[0] == sufficient[0]
    assert written[1].text.startswith(beginning)
    assert judged[1].text.startswith(beginning)


def test_long_excerpt_to_choose_from_is_read_in_part() -> None:
    (_, task) = prompts.choose([prompts.Named("Rolling back", "Run `slip`. " * 200)], "how?")
    assert len(task.text) < READ_CHARACTERS + 400


@pytest.mark.parametrize("kind", [prompts.Rewritten, Translated], ids=lambda kind: kind.__name__)
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
