"""A pressed button, in our terms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.conversation import Audience, Person, Place
from core.messages import Verdict

NOBODY = Audience(frozenset())


@dataclass(frozen=True, slots=True)
class Feedback:
    """`subject` is a prediction id for a judgement, a curated answer's for `confirm`, otherwise an incident id.

    `id` is the idempotency key of the chat event. `place` is where a reply belongs (the message's thread), `audience`
    who reads along there. `text` is what was typed into the field above the button, `choice` the id of the team that was
    picked there: both untrusted.
    """

    id: str
    verdict: Verdict
    subject: str
    person: Person
    place: Place
    at: datetime
    text: str = ""
    audience: Audience = NOBODY
    choice: str = ""
