"""A pressed button, in our terms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.conversation import Person, Place
from core.messages import Verdict


@dataclass(frozen=True, slots=True)
class Feedback:
    """`subject` is a prediction id for a judgement and an incident id for `take-it`.

    `id` is the idempotency key of the chat event. `place` is where a reply belongs (the message's thread).
    """

    id: str
    verdict: Verdict
    subject: str
    person: Person
    place: Place
    at: datetime
