"""POST /api/messages: what people do in Teams, handed to the inbox and acknowledged at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import structlog
from aiohttp import web
from pydantic import ValidationError

from adapters.teams.activity import Activity, Pressed, parse_activity
from adapters.teams.authentication import Authenticator
from adapters.teams.cloud import PUBLIC_CLOUD, THIS_MACHINE, Cloud
from adapters.teams.guests import TeamsGuests
from adapters.teams.references import ConversationReference, ConversationReferences, remember
from core.audience import channel_audience, kept_private, person_audience, with_outsiders
from core.conversation import Audience, Channel, Person, Place, Platform, Question, Speaker, Turn
from core.errors import ConfigurationError, InputTooLarge, MalformedInput, Unauthorized
from core.feedback import Feedback
from core.ports import Clock, Inbox

MAX_BODY = 1 << 20  # bytes
CARD_ACTION = "adaptiveCard/action"
TEAMS = "msteams"

THANKS = "Thank you, noted."
UNKNOWN_BUTTON = "This button is no longer understood: ask again for a fresh message."

log = structlog.get_logger()


class TeamsInbound:
    """Receives what Teams sends.

    With `anonymous`, no token is asked for and only a connector service on this machine is spoken to: for the
    playground. With a `tenant_id`, people of any other tenant are not heard.
    """

    def __init__(
        self,
        *,
        app_id: str,
        tenant_id: str,
        anonymous: bool,
        channels: Iterable[Channel],
        inbox: Inbox,
        references: ConversationReferences,
        clock: Clock,
        guests: TeamsGuests | None = None,
        cloud: Cloud = PUBLIC_CLOUD,
    ) -> None:
        """`guests` tells where people from outside read along; the playground has none."""
        if anonymous == bool(app_id):
            raise ConfigurationError("Teams needs TEAMS_APP_ID, or no credentials at all and PLUMBLINE_HOST=127.0.0.1.")
        self._cloud = THIS_MACHINE if anonymous else cloud
        self._authenticator = None if anonymous else Authenticator(app_id, cloud, clock)
        self._tenant_id = tenant_id
        self._channels = tuple(channels)
        self._inbox = inbox
        self._references = references
        self._clock = clock
        self._guests = guests

    async def close(self) -> None:
        if self._authenticator is not None:
            await self._authenticator.close()

    async def handle(self, request: web.Request) -> web.Response:
        """One activity. Answers as soon as it is recorded; what is answered in the chat is posted later.

        Raises Unauthorized, InputTooLarge, MalformedInput, ChatUnavailable, and what the inbox raises.
        """
        return await self._act(await self._receive(request))

    async def _receive(self, request: web.Request) -> Activity:
        credential = None
        if self._authenticator is not None:
            credential = await self._authenticator.check(request.headers.get("Authorization"))
        # A page in the operator's browser could post a form to this machine, but no JSON without being asked first.
        if request.content_type != "application/json":
            raise MalformedInput("An activity is JSON: send Content-Type: application/json.")
        activity = parse_activity(await _body(request))
        if credential is not None:
            credential.vouch(activity.service_url, activity.channel_id)
        if not self._cloud.serves(activity.service_url):
            raise Unauthorized("The activity names a service URL that is none of Teams'.")
        return activity

    async def _act(self, activity: Activity) -> web.Response:
        if activity.channel_id != TEAMS or not self._is_ours(activity):
            log.info("teams activity ignored", type=activity.type, channel=activity.channel_id)
            return web.Response()
        await remember(self._references, activity.channel, _reference(activity))
        if activity.type == "invoke":
            return await self._invoke(activity)
        if activity.type == "messageDelete":
            await self._inbox.retract(_key(activity), _place(activity))
        elif activity.type == "message" and isinstance(activity.value, dict):  # Action.Submit
            await self._press(activity, activity.value)
        elif activity.type == "message" and activity.is_addressed and activity.sender.role != "bot":
            await self._inbox.ask(await self._question(activity))
        return web.Response()

    def _is_ours(self, activity: Activity) -> bool:
        return not self._tenant_id or activity.tenant_id.lower() == self._tenant_id.lower()

    async def _invoke(self, activity: Activity) -> web.Response:
        if activity.name != CARD_ACTION:
            return web.Response()
        action = activity.value.get("action") if isinstance(activity.value, dict) else None
        data = action.get("data") if isinstance(action, dict) else None
        if await self._press(activity, data):
            return _card_response(200, "application/vnd.microsoft.activity.message", THANKS)
        error = {"code": "BadRequest", "message": UNKNOWN_BUTTON}
        return _card_response(400, "application/vnd.microsoft.error", error)

    async def _press(self, activity: Activity, data: Any) -> bool:
        """Hand in a pressed button; False if it is none of ours."""
        try:
            pressed = Pressed.model_validate(data)
        except ValidationError:
            return False
        await self._inbox.press(
            Feedback(
                id=_key(activity),
                verdict=pressed.verdict,
                subject=pressed.subject,
                person=_person(activity),
                place=_place(activity),
                at=self._clock.now(),
                text=pressed.text,
                choice=pressed.choice,
                audience=await self._audience(activity),
            )
        )
        return True

    async def _question(self, activity: Activity) -> Question:
        return Question(
            id=_key(activity),
            text=activity.said,
            asker=_person(activity),
            place=_place(activity),
            audience=await self._audience(activity),
            asked_at=self._clock.now(),
            # A bot cannot read the thread that it was called into; what the person quotes of it, it can.
            history=tuple(Turn(Speaker.PERSON, quote) for quote in activity.quoted),
        )

    async def _audience(self, activity: Activity) -> Audience:
        personal = activity.is_personal
        audience = (
            person_audience(_person(activity)) if personal else channel_audience(_place(activity), self._channels)
        )
        if activity.channel_data.channel.type.lower() == "private":
            audience = kept_private(audience)
        return with_outsiders(audience) if await self._has_outsiders(activity) else audience

    async def _has_outsiders(self, activity: Activity) -> bool:
        if _is_open_to_guests(activity):
            return True
        return self._guests is not None and await self._guests.read_along(activity.service_url, activity.channel)


def _is_open_to_guests(activity: Activity) -> bool:
    """Whether people from outside the organisation may read along: in a shared channel and in a meeting's chat."""
    return activity.channel_data.channel.type.lower() == "shared" or bool(activity.channel_data.meeting)


def _key(activity: Activity) -> str:
    if not activity.id:
        raise MalformedInput("The activity cannot be understood: it has no id.")
    return f"teams:{activity.conversation.id}:{activity.id}"


def _person(activity: Activity) -> Person:
    """The directory's id where there is one: the id in `from` is another one for every bot."""
    sender = activity.sender
    return Person(Platform.TEAMS, sender.aad_object_id or sender.id, sender.name)


def _place(activity: Activity) -> Place:
    """A chat without threads is one thread of its own, so that a follow-up is understood there too."""
    return Place(Platform.TEAMS, activity.channel, activity.thread or activity.channel, activity.tenant_id)


def _reference(activity: Activity) -> ConversationReference:
    threaded = bool(activity.thread) or activity.conversation.conversation_type == "channel"
    return ConversationReference(activity.service_url, activity.tenant_id, threaded)


async def _body(request: web.Request) -> bytes:
    body = bytearray()
    async for chunk in request.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > MAX_BODY:
            raise InputTooLarge(f"The body is larger than {MAX_BODY} bytes, more than any activity has.")
    return bytes(body)


def _card_response(status: int, kind: str, value: Any) -> web.Response:
    """The answer to a pressed button; Teams reads the status from the body."""
    return web.json_response({"statusCode": status, "type": kind, "value": value})
