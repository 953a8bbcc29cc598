"""Messages of the local page, to JSON and back."""

from __future__ import annotations

import json

from adapters.console.messages import Content, PersonMessage, decode, encode
from tests.fakes.text_everywhere import everywhere
from tests.samples import SAMPLES

CONTENTS: dict[str, Content] = {
    **SAMPLES,
    **{f"hostile {name}": message for name, message in everywhere('<b>\x00\u2028"', count=2).items()},
    "person": PersonMessage("You", "how?"),
}


def test_a_message_survives_json() -> None:
    encoded = {name: encode(content) for name, content in CONTENTS.items()}
    decoded = {name: decode(kind, json.loads(json.dumps(payload))) for name, (kind, payload) in encoded.items()}
    assert decoded == CONTENTS
