"""Messages of the local page, to JSON and back."""

from __future__ import annotations

import json

import pytest

from adapters.console.messages import Content, PersonMessage, decode, encode
from tests.fakes.text_everywhere import everywhere
from tests.samples import SAMPLES

CONTENTS: dict[str, Content] = {
    **SAMPLES,
    **{f"hostile {name}": message for name, message in everywhere('<b>\x00\u2028"', count=2).items()},
    "person": PersonMessage("You", "how?"),
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_a_message_survives_json(content: Content) -> None:
    kind, payload = encode(content)
    assert decode(kind, json.loads(json.dumps(payload))) == content
