"""Questions: the person, the place, the text, and the audience."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

MAX_MESSAGE = 30_000  # characters of a message that are read; Teams allows 28 KB, and nobody types more in Slack
PUBLIC = "public"  # the reader that everybody in the workspace is


class Platform(StrEnum):
    SLACK = "slack"
    TEAMS = "teams"
    CONSOLE = "console"  # the local page
    TERMINAL = "terminal"  # `plumbline ask` and `plumbline replay`


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a chat where a message can stand.

    `workspace` is the Slack team or the Teams tenant, empty where the platform has only one. `channel` and `thread`
    are the platform's own ids; `thread` is the id of the root message, or None for the channel itself.
    """

    platform: Platform
    channel: str
    thread: str | None = None
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class MessageReference:
    """A message that was posted: enough to edit it and to reply in its thread."""

    place: Place
    message_id: str


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a chat. `id` is the platform's own, `name` what people there see."""

    platform: Platform
    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Audience:
    """The documents that a place may read, and the people who may read what is said there.

    `readers` are the reader names that every member of the place holds: `public`, `channel:NAME`, `person:ID`.
    A document may be shown if it names at least one of them. `disclosed_to` are the reader names that what is said in
    the place may be shown to: nobody if it is empty.
    """

    readers: frozenset[str] = frozenset({PUBLIC})
    disclosed_to: frozenset[str] = frozenset()

    def may_read(self, readers: frozenset[str]) -> bool:
        return not self.readers.isdisjoint(readers)


def cut_message(text: str) -> str:
    """Return the first MAX_MESSAGE characters of what a chat sent, the last one of them “…” if there were more.

    Every adapter of a chat calls it before anything else looks at the text.
    """
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"


def was_cut(text: str) -> bool:
    """Return whether `cut_message` cut a text, even if its mentions and markup were taken out since."""
    return len(text) > MAX_MESSAGE // 2 and text.endswith("…")


class Speaker(StrEnum):
    PERSON = "person"
    PLUMBLINE = "plumbline"


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of the conversation, oldest first in a history."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it was asked. `id` names the message that asks it.

    `revision` names the edit that the message was changed by last, empty as it was first written: the question is then
    asked again, and its answer replaces the one that stands there. `history` is what it quotes, or what came before it.
    """

    id: str
    text: str
    asker: Person
    place: Place
    audience: Audience
    asked_at: datetime
    history: tuple[Turn, ...] = field(default=())
    revision: str = ""

    @property
    def key(self) -> str:
        """The idempotency key of the chat event that brought it."""
        return f"{self.id}:{self.revision}" if self.revision else self.id


def turn_key(question_id: str, speaker: Speaker) -> str:
    """The key under which a question, or the answer to it, is remembered."""
    return f"{question_id}:question" if speaker is Speaker.PERSON else f"{question_id}:answer"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel as plumbline.yaml names it: one name here, an id on each platform.

    `ids` maps a platform to the channel's own id there. A document whose readers hold `channel:NAME` is readable in
    that channel, whatever platform it is on. A channel that is not private is read by the whole workspace.
    """

    name: str
    ids: dict[Platform, str]
    private: bool = False
