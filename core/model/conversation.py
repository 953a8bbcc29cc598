"""Conversations: people, places, audiences and questions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from typing import Annotated, Any, ClassVar

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

MAX_MESSAGE = 30_000  # characters read of a message; Teams allows 28 KB
MAX_BEGINNING = 10_000  # characters kept of its beginning if it is longer; more are of its end, which says what failed
CUT = "\n[… not read …]\n"
PUBLIC = "public"  # the reader that everybody in the workspace holds


class Personal(Enum):
    """The mark of a field that is about a person. Deleting a person's data follows the marks of all stored types.

    - NAME: the name or id of a person.
    - NAME_FIRST: a text that is, or begins with, the name of a person.
    - WORDS: a text of the person whose NAME is in the same object.
    - EVENT: the id of a chat event, which may contain the id of a person.

    A mark that is followed by a value applies only if another field of the object has that value. The NAME in a field
    FIELD_by is that of the person of FIELD alone.
    """

    NAME = auto()
    NAME_FIRST = auto()
    WORDS = auto()
    EVENT = auto()


PersonName = Annotated[str, Personal.NAME]
NameFirst = Annotated[str, Personal.NAME_FIRST]
Words = Annotated[str, Personal.WORDS]
EventId = Annotated[str, Personal.EVENT]


class Platform(str):
    """The name of a chat, which its package gives it. Stored data names chats that this version may not have."""

    __slots__ = ()

    SLACK: ClassVar[Platform]
    TEAMS: ClassVar[Platform]
    CONSOLE: ClassVar[Platform]  # the local page
    TERMINAL: ClassVar[Platform]  # `plumbline ask` and `plumbline replay`

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(cls, core_schema.str_schema())


Platform.SLACK, Platform.TEAMS = Platform("slack"), Platform("teams")
Platform.CONSOLE, Platform.TERMINAL = Platform("console"), Platform("terminal")


@dataclass(frozen=True, slots=True)
class Place:
    """A place for messages in a chat.

    `workspace` is the Slack team or the Teams tenant, empty if the platform has only one. `channel` and `thread` are
    platform ids; `thread` is the id of the root message, or None for the channel itself.
    """

    platform: Platform
    channel: str
    thread: str | None = None
    workspace: str = ""


@dataclass(frozen=True, slots=True)
class MessageReference:
    """A posted message, with what is needed to edit it and to reply in its thread."""

    place: Place
    message_id: str

    @property
    def thread(self) -> Place:
        """Return the place of replies to it: its own thread, or that in which it is a reply itself."""
        return replace(self.place, thread=self.place.thread or self.message_id)


@dataclass(frozen=True, slots=True)
class Placement:
    """The places in which something is shown.

    The thread of `place` is the main one, and `message` the message there; None before it is posted. `also_in` are further
    places with a copy of the message.
    """

    place: Place
    also_in: tuple[Place, ...] = ()
    message: MessageReference | None = None

    @property
    def places(self) -> tuple[Place, ...]:
        return (self.place, *self.also_in)

    @property
    def thread(self) -> Place | None:
        """Return the main thread; None before its message is posted, unless somebody else began it."""
        return self.message.thread if self.message is not None else self.place if self.place.thread else None

    def audience(self, channels: Sequence[Channel]) -> Audience:
        """Return the audience of what is shown there: readers common to all places, disclosed to each of them.

        `channels` are the channels as they are now; those that are missing are private.
        """
        return common_audience([channel_audience(place, channels) for place in self.places])


@dataclass(frozen=True, slots=True)
class Person:
    """A person in a chat. `id` is the platform's id, `name` the displayed name."""

    platform: Platform
    id: PersonName
    name: Words = ""

    @property
    def key(self) -> str:
        """Return `PLATFORM:ID`, by which a person is stored and configured."""
        return f"{self.platform}:{self.id}"

    @property
    def name_or_id(self) -> str:
        return self.name or self.id


OPERATOR = Person(Platform.CONSOLE, "operator", "Operator")  # who holds the console token; other chats show this name


@dataclass(frozen=True, slots=True)
class Audience:
    """The documents that a place may read, and the people who may read what is said there.

    `readers` are the reader names that every member of the place holds: `public`, `channel:NAME`, `person:ID`. A
    document may be shown if it names at least one of them. `disclosed_to` are the reader names that may read what is
    said in the place; empty means nobody.
    """

    readers: frozenset[str] = frozenset({PUBLIC})
    disclosed_to: frozenset[str] = frozenset()

    def may_read(self, readers: Iterable[str]) -> bool:
        return not self.readers.isdisjoint(readers)

    def shares_with(self, other: Audience) -> bool:
        """Return whether each may read what is said to the other."""
        return self.may_read(other.disclosed_to) and other.may_read(self.disclosed_to)

    @property
    def basis(self) -> frozenset[str]:
        """Return the reader names that others need to read whatever is quoted here. A public place makes it public."""
        return self.readers & {PUBLIC} if PUBLIC in self.disclosed_to else self.readers


def cut_message(text: str) -> str:
    """Return a chat message, without its middle if it is longer than MAX_MESSAGE characters.

    Chat adapters call this before any other processing.
    """
    end = MAX_MESSAGE - MAX_BEGINNING - len(CUT)
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_BEGINNING]}{CUT}{text[-end:]}"


def was_cut(text: str) -> bool:
    """Return whether `cut_message` truncated a text, even if mentions and markup were removed since."""
    return len(text) > MAX_MESSAGE // 2 and CUT in text


class Speaker(StrEnum):
    PERSON = "person"
    PLUMBLINE = "plumbline"


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier message of a conversation. A history is sorted oldest first."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A text file in a message. Name and address, where its platform has it, are untrusted."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question. `id` identifies the message.

    `revision` identifies the latest edit of the message, empty if it was not edited. An edited question is asked again,
    and its answer replaces the earlier one. `history` is what the question quotes, or the conversation before it.
    `files` were shared with it, and are read when it is answered. `lacks_thread` says that it continues a thread that
    could not be read.
    """

    id: str
    text: str
    asker: Person
    place: Place
    audience: Audience
    asked_at: datetime
    history: tuple[Turn, ...] = field(default=())
    revision: str = ""
    files: tuple[SharedFile, ...] = ()
    lacks_thread: bool = False

    @property
    def key(self) -> str:
        """Return the idempotency key of the chat event."""
        return f"{self.id}:{self.revision}" if self.revision else self.id


def turn_key(question_id: str, speaker: Speaker) -> str:
    """Return the key under which a question or its answer is stored."""
    return f"{question_id}:question" if speaker is Speaker.PERSON else f"{question_id}:answer"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of plumbline.yaml: one name, with an id on each platform.

    A document with the reader `channel:NAME` is readable in the channel on every platform. A channel that is not
    private is readable by the whole workspace.
    """

    name: str
    ids: dict[Platform, str]
    private: bool = False

    @property
    def places(self) -> list[Place]:
        return [Place(platform, channel_id) for platform, channel_id in self.ids.items()]


def channel_audience(place: Place, channels: Sequence[Channel]) -> Audience:
    """Return the audience of a channel: the public, and what is shared with exactly this channel.

    A channel that plumbline.yaml does not name is still a reader under its platform id, so that documents from that
    channel can be shown in it. Its messages are disclosed to the channel only, unless plumbline.yaml names it and does
    not call it private.
    """
    named = [channel for channel in channels if channel.ids.get(place.platform) == place.channel]
    own = frozenset({channel_reader(place), *(f"channel:{channel.name}" for channel in named)})
    is_public = bool(named) and not any(channel.private for channel in named)
    return Audience(own | {PUBLIC}, own | {PUBLIC} if is_public else own)


def channel_reader(place: Place) -> str:
    """Return the reader name that the members of a channel hold, on its platform alone."""
    return f"channel:{place.platform}:{place.channel}"


def current_readers(readers: Collection[str], channels: Iterable[Channel]) -> frozenset[str]:
    """Return the reader names of a stored text as of now. `channels` are the channels as they are now.

    What was said in a public channel is stored as public. It is for the members once that channel is private, unless
    another of its channels is still public.
    """
    private = {channel_reader(place): channel.private for channel in channels for place in channel.places}
    said_in = [private[reader] for reader in readers if reader in private]
    return frozenset(readers) - ({PUBLIC} if said_in and all(said_in) else frozenset())


def named_readers(names: Collection[str], channels: Iterable[Channel]) -> frozenset[str]:
    """Return the reader names that the members of the channels with these names hold, except the public."""
    ids = {channel_reader(place) for each in channels if each.name in names for place in each.places}
    return frozenset(ids.union(f"channel:{name}" for name in names))


def common_audience(audiences: Sequence[Audience]) -> Audience:
    """Return the audience of one message in several places: readers common to all, disclosed to each of them."""
    first, *others = audiences
    return Audience(
        first.readers.intersection(*(each.readers for each in others)),
        first.disclosed_to.union(*(each.disclosed_to for each in others)),
    )


def person_audience(person: Person) -> Audience:
    """Return the audience of a direct message: the public, and what is shared with exactly this person."""
    own = frozenset({f"person:{person.platform}:{person.id}"})
    return Audience(own | {PUBLIC}, own)


def with_outsiders(audience: Audience) -> Audience:
    """Return the audience without the public, for places where people outside the workspace can read."""
    return Audience(audience.readers - {PUBLIC}, audience.disclosed_to - {PUBLIC})


def kept_private(audience: Audience) -> Audience:
    """Return the audience of a place that its platform calls private, whatever plumbline.yaml says."""
    return Audience(audience.readers, audience.disclosed_to - {PUBLIC})
