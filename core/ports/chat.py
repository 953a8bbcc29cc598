"""Ports of the chat platforms, and of the systems in which people file issues and postmortems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.model.alert import Posted
from core.model.conversation import Audience, Channel, MessageReference, Person, Place, Question, SharedFile, Turn
from core.model.findings import SimilarIncident
from core.model.incident import Filed, Incident, Report
from core.model.message_view import Feedback, Reaction
from core.model.messages import AnswerMessage, ButtonAction, Form, Home, IncidentMessage, Message
from core.model.running import PostingRate

AudienceAt = Callable[[Place], Awaitable[Audience]]
OpenToAll = Callable[[Place], Awaitable[bool]]  # whether the whole workspace may read a channel now
ChannelsNow = Callable[[Iterable[str]], Awaitable[Sequence[Channel]]]  # those with these reader names looked up
HomeOf = Callable[[Sequence[str], Audience], Awaitable[Home]]  # from a person's names


class Messenger(Protocol):
    """Posts messages on one chat platform.

    Raises ChatUnavailable if the platform does not answer, ChatBusy if it asks to wait and accepted nothing,
    MessageNotFound if the message to edit or to reply to was deleted, and Undeliverable if it permanently refuses a
    message.
    """

    async def post(self, place: Place, message: Message, intent: str) -> MessageReference:
        """Post a message. `intent` identifies the post, so that `find` finds it after a crash."""
        ...

    async def edit(self, reference: MessageReference, message: Message) -> None:
        """Replace the content of a posted message."""

    async def find(self, place: Place, intent: str) -> MessageReference | None:
        """Return the message posted for this intent; None if there is none or the platform cannot tell."""
        ...

    async def delete(self, reference: MessageReference) -> None:
        """Delete a posted message. Does nothing if it is already deleted."""

    async def link(self, reference: MessageReference) -> str:
        """Return the address of a message for people who may read it; empty if unknown. Does not raise."""
        ...


class RateLimiter(Protocol):
    """Assigns turns to write in a channel, across all processes. Does not raise.

    A `lane` names the channel, and the kind of write if it has a separate limit. A `ticket` names what is written.
    """

    async def take(self, lane: str, ticket: str, rate: PostingRate) -> float:
        """Take the ticket's turn and return 0.0, or reserve a turn and return the seconds until it.

        Repeated calls return the same turn. A reserved turn expires after `core.model.running.LATE`.
        """
        ...

    async def answered(self, lane: str, rate: PostingRate) -> None:
        """Record that the platform answered a write: the next turn is `rate.interval` from now."""

    async def rest(self, lane: str, seconds: float, rate: PostingRate) -> None:
        """Delay all turns because the platform asks to wait. Their order is kept."""


class ThreadReader(Protocol):
    """Reads the messages of threads on one chat platform. Untrusted."""

    async def earlier(self, place: Place, before: datetime, limit: int) -> tuple[Turn, ...]:
        """Return the turns of the thread at `place` before a time, oldest first; empty outside a thread.

        Of more than `limit` (at least 2) messages, the first and the latest are returned. A deleted thread is empty.
        Raises ChatUnavailable.
        """
        ...


class ChannelReader(Protocol):
    """Reads what other bots posted in channels of one chat platform. Untrusted. Raises ChatUnavailable."""

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        """Return how many of the latest `limit` messages of a channel there are, and those of other bots, newest first.

        Replies are not among them.
        """
        ...

    async def first(self, place: Place) -> Posted | None:
        """Return the first message of the thread at `place`; None if it is gone, or not of a bot."""
        ...

    async def look(self, place: Place, since: datetime) -> bool:
        """Pass on what is new in a channel, unless that was done since this time. Returns whether anything was.

        False where the chat sends what is new by itself, and where the channel cannot be read.
        """
        ...


class FileReader(Protocol):
    """Reads the text files that people share on one chat platform. Untrusted."""

    async def text(self, file: SharedFile) -> str:
        """Return the beginning and the end of a file's text, MAX_MESSAGE characters at most.

        Raises ChatUnavailable, with a reason that people may read, if it is not text or not to be had.
        """
        ...


class Inbox(Protocol):
    """Receives chat events from the inbound adapters.

    Each call returns as soon as the event is durably recorded (milliseconds), so that it can be acknowledged; it is
    processed later. Events with a known key are dropped.
    """

    async def ask(self, question: Question) -> None:
        """Receive a mention, a direct message or a slash command, or an edited one (see `Question.revision`).

        The text is what follows the bot's name.
        """
        ...

    async def overhear(self, remark: Question, name: Callable[[], Awaitable[str]]) -> None:
        """Receive a remark in a thread, and keep it if it is about the cause of the thread's open incident.

        `name` looks up the speaker's name, and is called only if needed.
        """
        ...

    async def post(self, posted: Posted) -> None:
        """Receive a message that another bot posted, or edited, and keep it only if it tells of an alert."""

    async def join(self, place: Place) -> None:
        """Receive an invitation to a channel."""
        ...

    async def press(self, feedback: Feedback) -> None:
        """Receive a pressed button."""
        ...

    async def react(self, reaction: Reaction) -> None:
        """Receive a reaction to a message that may be one of ours."""
        ...

    async def retract(self, question_id: str, place: Place, *, edited: bool = False) -> None:
        """Receive the deletion of a message that may have been a question. `question_id` is its actual or potential id.

        With `edited`, the message still exists but no longer addresses the bot: its answer is removed, and it may be
        asked again later.
        """
        ...


class CardRefresher(Protocol):
    """Renders the current content of our messages, for platforms that request it again."""

    async def message(self, reference: MessageReference) -> Message | None:
        """Return the message as it would be shown now, within milliseconds; None if it can no longer change.

        Only the platform, the channel and the message id of the reference are used. Raises StoreUnavailable.
        """
        ...


class Forms(Protocol):
    """Provides the forms that a button opens, for platforms with forms."""

    async def form(self, verdict: ButtonAction, subject: str, audience: Audience, person: Person) -> Form | None:
        """Return the form for this button that a person pressed, within milliseconds; None if nothing is to be asked.

        It contains nothing that the message's audience may not read. Raises StoreUnavailable.
        """
        ...


class OnCall(Protocol):
    """On-call schedules of teams."""

    @property
    def name(self) -> str:
        """Return the name of the system that holds the schedules."""
        ...

    @property
    def teams(self) -> frozenset[str]:
        """Return the ids of the teams that have a schedule."""
        ...

    async def people(self, team_id: str, at: datetime) -> Sequence[str]:
        """Return the people on call for a team at a time (with a zone), in calling order. Untrusted.

        Empty for a team that is not in `teams`, or if nobody is on call. It is `Partial` where some of the team's
        schedules could not be read. Raises ToolUnavailable if none can be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """An agent that calls: its name in the audit log, and the audience that limits what it is shown."""

    name: str
    audience: Audience


class AgentTools(Protocol):
    """Answers for agents. Every call is recorded in the audit log; nothing is posted in a chat.

    `subject` is the id of an incident, or the text of an alert, which is investigated now. Each method raises
    PlumblineError with a sentence for the caller, for example if the audience may not see an incident.
    """

    async def ask(self, question: str, caller: AgentCaller) -> AnswerMessage: ...

    async def triage(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        """Find the team that should own an incident."""
        ...

    async def explain(self, subject: str, caller: AgentCaller) -> IncidentMessage:
        """Find the probable cause of an incident, and its owner."""
        ...

    async def get(self, incident_id: str, caller: AgentCaller) -> IncidentMessage: ...

    async def find(self, words: str, caller: AgentCaller, *, only_open: bool) -> tuple[Incident, ...]:
        """Return the latest incidents whose title, service or id contains every word, newest first."""
        ...

    async def similar(self, text: str, caller: AgentCaller) -> tuple[SimilarIncident, ...]:
        """Return past incidents that resemble an alert's text, most similar first."""
        ...

    async def list_all(self, kind: str, caller: AgentCaller) -> None:
        """Record that the caller was shown the list of tools, or of another kind."""
        ...

    async def refuse(self, caller: str, reason: str) -> None:
        """Record a call that got an error instead of a result."""
        ...


class Publisher(Protocol):
    """Writes reports into one target: a project of an issue tracker, a wiki space, or a repository.

    All methods raise Unavailable with a reason that a person understands.
    """

    @property
    def settles_after(self) -> float:
        """Return the seconds after which `find` sees what was written."""
        ...

    async def find(self, report: Report) -> Filed | None:
        """Return the report if an earlier attempt wrote it, recognised by its marker; None otherwise."""
        ...

    async def file(self, report: Report) -> Filed:
        """Write the report. After a failure it may be written or not: call `find` before the next attempt."""
        ...

    async def check(self) -> None:
        """Raise Unavailable if the token, its permissions, the target or the connection are wrong. Writes nothing."""
        ...
