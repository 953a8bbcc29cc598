"""Sample messages for tests of how text from outside is shown."""

from __future__ import annotations

from core.model.messages import CorrectionRequest, DriftAlarm, Message
from tests.fakes.text_everywhere import everywhere


def telling(text: str, count: int = 1) -> dict[str, Message]:
    """Of `everywhere`, the messages that hold text from outside at all."""
    found = everywhere(text, count)
    return {name: each for name, each in found.items() if not isinstance(each, CorrectionRequest | DriftAlarm)}
