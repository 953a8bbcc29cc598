"""Pressed buttons and reactions, independent of the platform."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.model.conversation import Audience, MessageReference, Person, Place
from core.model.messages import ButtonAction

NOBODY = Audience(frozenset())


@dataclass(frozen=True, slots=True)
class Feedback:
    """A pressed button.

    - `id`: the idempotency key of the chat event.
    - `subject`: a prediction id for a verdict, a curated answer's id for `confirm`, otherwise an incident id. For
      `reassign` and `not ours`, it is the owner prediction that the person was asked about, if there was one.
    - `place`: the place of a reply (the message's thread); `audience`: its readers.
    - `text`: the text typed above the button; `choice`: the id that was picked there; `title`: the title typed in a form
      that has one. All are untrusted.
    - `in_form`: the platform asks for details in its own form, so no message has to.
    """

    id: str
    verdict: ButtonAction
    subject: str
    person: Person
    place: Place
    at: datetime
    text: str = ""
    audience: Audience = NOBODY
    choice: str = ""
    in_form: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Reaction:
    """A positive or negative reaction to one of our messages, or its removal.

    `id` is the idempotency key of the chat event. `message` has the platform, the channel and the message's id; its
    thread may be missing. `comment` is what the person typed with it, untrusted.
    """

    id: str
    message: MessageReference
    approves: bool
    person: Person
    at: datetime
    taken_back: bool = False
    comment: str = ""
