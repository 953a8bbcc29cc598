"""Messages that other bots post in a channel, and the meaning that they are recognised to have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from core.model.alert import AlertDelivery
from core.model.conversation import Place

MAX_CHOICES = 100  # of one channel, the latest


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of another bot, as its chat shows it. All texts are untrusted.

    - `place`: its channel; the thread is the id of the message that it replies to, None for none.
    - `sender`: the id of its app. `sender_name`: the displayed name.
    - `lines`: its texts in the order in which they are seen, without markup; signs are emoji or `:name:`.
    - `fields`: names and values that the chat shows as such. `links`: texts and addresses, that of the title first.
    - `colours`: of its bars, as six hexadecimal digits or one of the chat's names.
    - `revision`: identifies the latest edit; empty if it was not edited. `at` is the time of the edit, or of the message.
    """

    place: Place
    message_id: str
    sender: str
    sender_name: str
    at: datetime
    lines: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    colours: tuple[str, ...] = ()
    revision: str = ""

    @property
    def root(self) -> str:
        """Return the id of the first message of its thread, which may be itself."""
        return self.place.thread or self.message_id


class PostedKind(StrEnum):
    ALERT = "alert"
    UNSURE = "unsure"
    CHANGE = "change"
    BUILD = "build"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a sender, or of a shape of its messages: these are alerts, or they are none. `name` is for people."""

    key: str
    name: str
    is_alert: bool


@dataclass(frozen=True, slots=True)
class Adoption:
    """The choices of which alerts of other bots are adopted in a channel. `is_on` is None where nobody chose."""

    is_on: bool | None = None
    choices: tuple[Choice, ...] = ()

    def over(self, other: Adoption) -> Adoption:
        """Return these choices, and the others where nobody made one."""
        own = {choice.key for choice in self.choices}
        others = tuple(choice for choice in other.choices if choice.key not in own)
        return Adoption(other.is_on if self.is_on is None else self.is_on, (*self.choices, *others))

    def choosing(self, choice: Choice) -> Adoption:
        return replace(self, choices=(choice, *(each for each in self.choices if each.key != choice.key))[:MAX_CHOICES])

    @property
    def reads(self) -> bool:
        """Return whether any message is adopted."""
        return bool(self.is_on) or any(choice.is_alert for choice in self.choices)

    def kind_of(self, sender: str, recognised: Recognised) -> PostedKind:
        """Return the kind that a message is treated as: what was chosen of its shape, else OTHER if its sender is left alone."""
        chosen = {choice.key: choice.is_alert for choice in self.choices}
        is_alert = chosen.get(recognised.shape)
        if is_alert is not None:
            return PostedKind.ALERT if is_alert else PostedKind.OTHER
        return recognised.kind if chosen.get(sender, self.is_on) else PostedKind.OTHER


@dataclass(frozen=True, slots=True)
class Recognised:
    """The meaning of a posted message.

    - `shape`: equal for messages of one sender that differ only in what they tell.
    - `delivery`: of the alert that it is, or would be if it were one.
    - `keys`: the group keys by which its incident may be known, most specific first; the first is that of `delivery`.
    - `title`: the words that name it.
    """

    kind: PostedKind
    shape: str
    title: str
    delivery: AlertDelivery
    keys: tuple[str, ...]


NO_ADOPTION = Adoption()
