"""Messages of the local page, to JSON and back."""

from __future__ import annotations

import json

import pytest

from adapters.console.messages import Content, PersonMessage, decode, encode
from core.model.messages import BadgeMessage
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


def test_an_explanation_of_a_badge_by_an_earlier_version_is_still_shown() -> None:
    badge, measures = {"strength": "strong", "probability": 0.8}, {"coe": 0.9, "rce": 0.8}
    explanation = {"kind": "answer", "badge": badge, "evaluation": measures, "references": [{"title": "Rollbacks"}]}
    written = {"hidden": 1, "record": None, "estimator": "evidence 1", "evidence": ["All terms are found."]}
    shown = decode("badge", {"explanation": explanation | written})
    assert isinstance(shown, BadgeMessage)
    assert (shown.explanation.references[0].title, shown.explanation.hidden) == ("Rollbacks", 1)
