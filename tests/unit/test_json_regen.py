"""JSON from a model that cannot be held to a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.errors import InvalidReply
from core.model.language_model import ChatMessage, ModelReply, ModelRequest, Role
from core.model_calls.constrained_reply import ROUNDS, valid_json, with_valid_json
from tests.cases import every_case
from tests.fakes.language_model import ScriptedModel

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"cause": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["cause", "sure"],
    "additionalProperties": False,
}
REQUEST = ModelRequest((ChatMessage(Role.USER, "Why?"),), schema=SCHEMA)
GOOD = '{"cause": "disk", "sure": true}'
YAML = "cause: disk\nsure: true"


async def mended(first: str, *later: str, complete: bool = True) -> tuple[str, list[ModelRequest]]:
    """What comes of a reply when the model says `later` next, and what it was asked."""
    replies = iter(later)
    model = ScriptedModel(lambda _: next(replies))
    reply = await with_valid_json(REQUEST, ModelReply(first, 1, 0, 1, complete), model.generate)
    return reply.text, model.requests


@every_case(
    "said",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```\nAnything else?",
        f"The answer is {GOOD}.",
        '{"cause": "disk", "sure": true,}',
        f"```\n{GOOD}\n```",
    ],
)
async def test_what_can_be_cleaned_is_not_asked_for_again(said: str) -> None:
    text, asked = await mended(said)
    assert json.loads(text) == {"cause": "disk", "sure": True}
    assert not asked


async def test_a_raw_line_break_in_a_text_is_kept_as_one() -> None:
    text, _ = await mended('{"cause": "disk\nfull", "sure": true}')
    assert json.loads(text)["cause"] == "disk\nfull"


async def test_the_content_is_asked_for_as_yaml_and_taken_if_that_is_valid() -> None:
    text, asked = await mended("cause is disk", f"```yaml\n{YAML}\n```")
    assert json.loads(text) == {"cause": "disk", "sure": True}
    assert [request.schema for request in asked] == [None]
    assert asked[0].messages[0] == REQUEST.messages[0]  # what was computed before stays in front


async def test_json_is_asked_for_again_from_the_yaml() -> None:
    text, asked = await mended("cause is disk", "- disk", GOOD)
    assert json.loads(text)["cause"] == "disk"
    assert [request.schema for request in asked] == [None, SCHEMA]
    assert asked[1].messages[-2].text == "- disk"


async def test_after_some_rounds_it_gives_up() -> None:
    with pytest.raises(InvalidReply):
        await mended("no", *["no"] * 2 * ROUNDS)


async def test_a_reply_that_was_cut_is_left_as_it_is() -> None:
    assert await mended('{"cause": "di', complete=False) == ('{"cause": "di', [])


async def test_yaml_that_unfolds_to_gigabytes_is_not_unfolded() -> None:
    bomb = "\n".join(["a0: &a0 lol", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))])
    text, asked = await mended("no", bomb, GOOD)
    assert json.loads(text)["sure"] is True
    assert len(asked) == 2


@every_case("said", ['{"n": 1e999}', '{"n": NaN}', '{"n": "one"}', "[" * 100_000, ""])
def test_what_no_parser_would_take_is_not_valid(said: str) -> None:
    assert valid_json(said, {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}) is None


def test_half_of_a_surrogate_pair_becomes_the_sign_for_what_cannot_be_shown() -> None:
    assert valid_json('"\\ud800!"', {"type": "string"}) == '"\ufffd!"'


@given(st.text(), st.booleans(), st.text())
def test_valid_json_is_found_and_keeps_its_content(cause: str, sure: bool, around: str) -> None:
    value = {"cause": cause, "sure": sure}
    text = valid_json(json.dumps(value), SCHEMA)
    assert text is not None
    assert json.loads(text) == value
    valid_json(around, SCHEMA)  # whatever it is, it is no error


def test_a_fence_that_is_never_closed_is_read_at_once() -> None:
    assert valid_json("```" + "\n" * 100_000, SCHEMA) is None
