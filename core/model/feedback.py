"""A pressed button or a reaction, in our terms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.model.conversation import Audience, MessageReference, Person, Place
from core.model.messages import Verdict

NOBODY = Audience(frozenset())


@dataclass(frozen=True, slots=True)
class Feedback:
    """`subject` is a prediction id for a judgement, a curated answer's for `confirm`, otherwise an incident id.

    For `reassign` and `not ours` it is the owner's prediction that the person was asked about, if there was one.

    `id` is the idempotency key of the chat event. `place` is where a reply belongs (the message's thread), `audience`
    who reads along there. `text` is what was typed into the field above the button, `choice` the id of the team that was
    picked there: both untrusted. `in_form`: the platform asks for the rest in a form of its own, so nobody else need.
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
    in_form: bool = False


@dataclass(frozen=True, slots=True)
class Reaction:
    """Somebody put a reaction that says yes or no to a message of ours, or took it back.

    `id` is the idempotency key of the chat event. Of `message`, the platform, the channel and the message's id are known;
    its thread may be missing.
    """

    id: str
    message: MessageReference
    approves: bool
    person: Person
    at: datetime
    taken_back: bool = False
