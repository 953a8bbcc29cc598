"""Shared parts of the pages of the local page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from adapters.console.live import Live
from adapters.console.messages import ConsoleMessages
from adapters.console.render import Renderer
from core.model.conversation import Audience, Channel, Person, Place, Platform, channel_audience
from core.model.errors import PlumblineError
from core.model.incident import Incident
from core.model.prediction import PredictionKind
from core.ports import Clock, Inbox, PassageIndex, Store

RECENT_INCIDENTS = 50
RECENT_PREDICTIONS = 100  # per kind, whose labels are shown on the buttons

OPERATOR = Person(Platform.CONSOLE, "operator", "Operator")  # the page has no accounts; other chats show this name
MAX_DIGITS = 18  # in a number that databases accept

Replay = Callable[[], Awaitable[None]]
Retry = Callable[[str], Awaitable[bool]]


class PageNotFound(PlumblineError):
    """An address of the local page refers to something that does not exist, or that this channel may not read."""


@dataclass(frozen=True, kw_only=True)
class Console:
    """The ports and settings of the local page."""

    messages: ConsoleMessages
    live: Live
    inbox: Inbox
    store: Store
    index: PassageIndex
    sources_status: Callable[[], Awaitable[Sequence[SourceStatus]]]
    all_channels: Sequence[Channel]
    workspace_name: str
    clock: Clock
    examples: Sequence[str] = ()
    replays: Mapping[str, Replay] = field(default_factory=dict[str, Replay])

    @cached_property
    def renderer(self) -> Renderer:
        return Renderer(self.clock.now, self.workspace_name)

    @cached_property
    def channels(self) -> list[Channel]:
        """Return the channels with an id on this page."""
        return [channel for channel in self.all_channels if Platform.CONSOLE in channel.ids]

    def channel(self, channel_id: str) -> Channel:
        """Return the channel with this id. Raises PageNotFound."""
        for channel in self.channels:
            if channel.ids[Platform.CONSOLE] == channel_id:
                return channel
        raise PageNotFound("There is no such channel on this page: choose one from the list on the left.")

    def audience(self, channel_id: str) -> Audience:
        """Return the audience of a channel. Raises PageNotFound if there is no such channel."""
        self.channel(channel_id)
        return channel_audience(Place(Platform.CONSOLE, channel_id), self.channels)

    async def recent_incidents(self) -> list[Incident]:
        async with self.store.transaction() as transaction:
            return await transaction.incidents.recent(RECENT_INCIDENTS)

    async def labels(self) -> dict[str, bool]:
        """Return whether each of the latest judged predictions was right, by id."""
        async with self.store.transaction() as transaction:
            recent = [await transaction.predictions.recent(kind, RECENT_PREDICTIONS) for kind in PredictionKind]
        return {
            prediction.id: outcome.correct
            for predictions in recent
            for prediction, outcome in predictions
            if outcome is not None
        }


def number_of(text: str) -> int:
    """Return a message id or an entry number from an address. Raises PageNotFound if it is invalid."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise PageNotFound("There is no such message on this page.")
    return int(text)


STALE_AFTER = timedelta(hours=24)  # a source that was last read longer ago is marked as old


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The state of a source. `passages` is None if the index does not count passages per source.

    `read_at` is the time of the last attempt, None before the first one has ended; `failure` says why it failed, empty
    if it did not. `left_out` names documents that could not be indexed, and why.
    """

    name: str
    reads: str
    documents: int
    passages: int | None
    read_at: datetime | None
    failure: str = ""
    left_out: tuple[str, ...] = ()

    def condition(self, now: datetime) -> str:
        """Return `failing`, `never read`, `first import`, `old` or `fresh`."""
        if self.failure:
            return "failing"
        if self.read_at is None:
            return "first import" if self.documents else "never read"
        return "old" if now - self.read_at > STALE_AFTER else "fresh"
