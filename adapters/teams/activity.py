"""An activity from Teams: only the fields that we use, validated, with null treated as absent, and the event that it means."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel

from adapters.html import cut_markup, lines_of, parsed
from adapters.microsoft import attached_text
from adapters.teams.connector import ConversationReference, ConversationReferences, TeamsGuests, recall
from core.model.conversation import (
    MAX_MESSAGE,
    Audience,
    Channel,
    MessageReference,
    Person,
    Place,
    Platform,
    channel_audience,
    cut_message,
    kept_private,
    person_audience,
    with_outsiders,
)
from core.model.errors import MalformedInput, StoreUnavailable
from core.model.messages import ButtonAction
from core.model.text import json_text

MAX_ATTACHMENTS = 10  # attachments considered
# Quoted and forwarded messages in the HTML of another.
QUOTED = """blockquote[itemtype="http://schema.skype.com/Reply"] [itemprop="preview"], \
blockquote[itemtype="http://schema.skype.com/Forward"]"""

THREAD_SEPARATOR = ";messageid="
SENT_QUOTE = 'blockquote[itemtype^="http://schema.skype.com/"]'
AT = re.compile(r"</?(?:at|quoted)\b[^<>]*>", re.IGNORECASE)
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")

# An id becomes part of an address, so it must not contain path separators.
Id = Annotated[str, StringConstraints(pattern=r"^[^\s/?#%\\]*$", max_length=400)]
Name = Annotated[str, StringConstraints(max_length=500)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=AliasGenerator(validation_alias=to_camel))

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


class Account(_Wire):
    id: Id = ""
    name: Name = ""
    aad_object_id: Id = ""
    role: Name = ""


class Conversation(_Wire):
    id: Id = Field(min_length=1)
    conversation_type: Name = ""
    tenant_id: Id = ""


class ActivityItem(_Wire):
    """A tenant, team, channel or reaction, of which an activity says the id or the type."""

    id: Id = ""
    type: Name = ""


class ChannelData(_Wire):
    """Channel data. `event_type` is the kind of a messageUpdate or conversationUpdate."""

    tenant: ActivityItem = ActivityItem()
    channel: ActivityItem = ActivityItem()
    team: ActivityItem = ActivityItem()
    meeting: dict[str, Any] = {}
    event_type: Name = ""


class Activity(_Wire):
    """An activity. `text` is as sent by Teams; `readable_text` is what a person said to the bot."""

    type: Name = Field(min_length=1)
    id: Id = ""
    channel_id: Name
    service_url: Name
    sender: Account = Field(default=Account(), validation_alias="from")
    recipient: Account = Account()
    conversation: Conversation
    text: Annotated[str, AfterValidator(cut_message)] = ""
    text_format: Name = ""
    entities: tuple[Any, ...] = ()
    attachments: tuple[Any, ...] = ()
    name: Name = ""
    value: Any = None
    channel_data: ChannelData = ChannelData()
    action: Name = ""
    reply_to_id: Id = ""
    timestamp: Name = ""
    members_added: tuple[Account, ...] = ()
    members_removed: tuple[Account, ...] = ()
    reactions_added: tuple[ActivityItem, ...] = ()
    reactions_removed: tuple[ActivityItem, ...] = ()

    @property
    def tenant_id(self) -> str:
        return self.conversation.tenant_id or self.channel_data.tenant.id

    @property
    def channel(self) -> str:
        """Return the conversation without the thread."""
        return self.conversation.id.partition(THREAD_SEPARATOR)[0]

    @property
    def thread(self) -> str:
        """Return the id of the thread's root message; empty outside a thread."""
        return self.conversation.id.partition(THREAD_SEPARATOR)[2]

    @property
    def is_personal(self) -> bool:
        return self.conversation.conversation_type == "personal"

    @property
    def is_restricted(self) -> bool:
        """Return whether it comes from a private or shared channel, whose members are fewer or others than the team's."""
        return self.channel_data.channel.type.lower() in ("private", "shared")

    @property
    def is_addressed(self) -> bool:
        """Return whether the bot is addressed: always in a personal chat, elsewhere if it is mentioned."""
        return self.is_personal or bool(self._own_mentions)

    @property
    def adds_bot(self) -> bool:
        """Return whether the app was added to this conversation."""
        if self.type == "installationUpdate":
            return self.action in ("", "add")
        return self.type == "conversationUpdate" and self.recipient.id in {each.id for each in self.members_added}

    @property
    def removes_bot(self) -> bool:
        """Return whether the app was removed from this conversation."""
        if self.type == "installationUpdate":
            return self.action.startswith("remove")
        return self.type == "conversationUpdate" and self.recipient.id in {each.id for each in self.members_removed}

    @property
    def readable_text(self) -> str:
        """Return the text without the bot's name and without markup."""
        text = self.text
        for mention in self._own_mentions:
            text = text.replace(mention, " ", 1)
        if self.text_format not in ("xml", "html"):
            return clean(html.unescape(AT.sub("", text)))
        soup = parsed(text)
        for quote in soup.select(SENT_QUOTE):
            quote.decompose()
        return clean(lines_of(soup))

    @property
    def quoted(self) -> tuple[str, ...]:
        """Return the messages that this one quotes (as shortened by Teams) or forwards, and its cards."""
        replies = [each.get("quotedReply") for each in self.entities if isinstance(each, dict)]
        sent = [each.get("preview") for each in replies if isinstance(each, dict) and not each.get("isReplyDeleted")]
        written = ({"contentType": "text/html", "content": self.text},) if self.text_format in ("xml", "html") else ()
        attached = (*map(str, filter(None, sent)), *_attached((*written, *self.attachments)))
        return tuple(dict.fromkeys(filter(None, map(clean, attached))))

    @property
    def _own_mentions(self) -> list[str]:
        return [
            str(entity.get("text") or "")
            for entity in self.entities
            if isinstance(entity, dict)
            and entity.get("type") == "mention"
            and isinstance(entity.get("mentioned"), dict)
            and entity["mentioned"].get("id") == self.recipient.id
        ]


class Pressed(_Wire):
    """The data of a button, and the text typed into the card's fields."""

    verdict: ButtonAction
    subject: str = Field(min_length=1, max_length=1000)
    text: str = Field(default="", max_length=MAX_MESSAGE)
    choice: str = Field(default="", max_length=1000)
    title: str = Field(default="", max_length=1000)


class _Body(_Wire):
    content: str = Field(default="", max_length=1 << 20)
    content_type: Name = ""


class QuotedMessage(_Wire):
    """The message on which the message extension was invoked."""

    body: _Body = _Body()
    attachments: tuple[Any, ...] = ()

    @property
    def readable_text(self) -> str:
        """Return the readable text and that of its cards, within the usual length limit."""
        content = self.body.content
        text = clean(content if self.body.content_type == "text" else plain_text(cut_markup(content)))
        return cut_message("\n".join(filter(None, (text, *_attached(self.attachments)))))


def parse_activity(body: bytes) -> Activity:
    """Return the activity in a body. Raises MalformedInput if it is invalid."""
    try:
        activity = Activity.model_validate_json(json_text(body))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the body"
        raise MalformedInput(f"The activity is not valid at {where}: {problem['msg']}.") from None
    return activity


def _attached(attachments: tuple[Any, ...]) -> Iterator[str]:
    for each in attachments[:MAX_ATTACHMENTS]:
        kind, content = (each.get(name) for name in ("contentType", "content")) if isinstance(each, dict) else ("", "")
        if kind == "text/html" and isinstance(content, str):
            texts = [lines_of(quote) for quote in parsed(cut_markup(content)).select(QUOTED)]
        else:
            texts = [attached_text(str(kind), content)]
        yield from filter(None, map(clean, texts))


def clean(text: str) -> str:
    """Return the text without invisible characters."""
    return UNPRINTABLE.sub("", text.replace("\xa0", " ")).strip()


def plain_text(markup: str) -> str:
    """Return the readable text of HTML."""
    return lines_of(parsed(markup))


# Other reactions neither approve nor disapprove.
REACTIONS = {"like": True, "heart": True, "yes": True, "angry": False, "no": False}
MILLISECONDS = re.compile(r"1[0-9]{12}")  # since 1970, in this century
EMOJI = (("1f44d", True), ("2705", True), ("1f4af", True), ("1f44e", False), ("274c", False))  # prefixes of names


def key_of(activity: Activity) -> str:
    """Return the idempotency key. Raises MalformedInput for an activity without an id."""
    if not activity.id:
        raise MalformedInput("The activity is not valid: it has no id.")
    return f"teams:{activity.conversation.id}:{activity.id}"


def person_of(activity: Activity) -> Person:
    """Return the person, by the directory's id if available, because the id in `from` differs for every bot."""
    sender = activity.sender
    return Person(Platform.TEAMS, sender.aad_object_id or sender.id, sender.name)


def place_of(activity: Activity) -> Place:
    """Return the place. A chat without threads is one thread, so that follow-up questions work there."""
    return Place(Platform.TEAMS, activity.channel, activity.thread or activity.channel, activity.tenant_id)


def reference_of(activity: Activity) -> ConversationReference:
    threaded = bool(activity.thread) or activity.conversation.conversation_type == "channel"
    is_by_person = activity.is_personal and activity.sender.role != "bot"
    return ConversationReference(
        activity.service_url,
        activity.tenant_id,
        threaded,
        activity.is_personal,
        activity.channel_data.team.id,
        person_of(activity).id if is_by_person else "",
    )


def target_message(activity: Activity) -> MessageReference:
    """Return the message that was reacted to, or whose button was pressed."""
    return MessageReference(place_of(activity), activity.reply_to_id)


def written_at(activity: Activity, now: datetime) -> datetime:
    """Return when the message was written: its id contains milliseconds, as in Microsoft Graph."""
    return (
        min(datetime.fromtimestamp(int(activity.id) / 1000, UTC), now) if MILLISECONDS.fullmatch(activity.id) else now
    )


def happened_at(activity: Activity, now: datetime) -> datetime:
    """Return the event's time according to Teams, which may be earlier than its arrival; `now` if that is implausible."""
    try:
        timestamp = datetime.fromisoformat(activity.timestamp)
        return min(timestamp.astimezone(UTC), now) if timestamp.tzinfo is not None else now
    except (ValueError, OverflowError):
        return now


def approves(reaction: str) -> bool | None:
    """Return True if a reaction approves, False if it disapproves, None otherwise."""
    return REACTIONS.get(reaction, next((says for name, says in EMOJI if reaction.startswith(name)), None))


class TeamsAudiences:
    """Audiences of conversations. `guests` tells where outsiders can read; None in the playground."""

    def __init__(
        self, channels: Iterable[Channel], guests: TeamsGuests | None, references: ConversationReferences
    ) -> None:
        self._channels = tuple(channels)
        self._guests = guests
        self._references = references

    async def at(self, place: Place) -> Audience:
        """Return the audience of a place. If it cannot be looked up, outsiders are assumed. Does not raise."""
        audience = channel_audience(place, self._channels)
        if self._guests is None:
            return audience
        try:
            home = await recall(self._references, place.channel, place.workspace)
        except StoreUnavailable:
            home = None
        if home is None or await self._guests.read_along(home.service_url, place.channel, home.tenant_id):
            return with_outsiders(audience)
        return audience

    async def of(self, activity: Activity) -> Audience:
        """Return the audience of an activity's conversation. Does not raise."""
        audience = (
            person_audience(person_of(activity))
            if activity.is_personal
            else channel_audience(place_of(activity), self._channels)
        )
        if activity.is_restricted:
            audience = kept_private(audience)
        # Outsiders may be present in a shared channel and in a meeting's chat.
        shared = activity.channel_data.channel.type.lower() == "shared"
        has_outsiders = shared or bool(activity.channel_data.meeting)
        if not has_outsiders and self._guests is not None:
            has_outsiders = await self._guests.read_along(activity.service_url, activity.channel, activity.tenant_id)
        return with_outsiders(audience) if has_outsiders else audience
