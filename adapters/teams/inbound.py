"""The route POST /api/messages: receives activities of Teams, passes them to the inbox and acknowledges them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import aiohttp
import structlog
from aiohttp import web
from pydantic import ValidationError

from adapters.http import read_body
from adapters.teams.activity import Activity, Pressed, parse_activity
from adapters.teams.cloud import PUBLIC_CLOUD, THIS_MACHINE, Cloud
from adapters.teams.events import (
    TeamsAudiences,
    approves,
    happened_at,
    key_of,
    person_of,
    place_of,
    reference_of,
    target_message,
    written_at,
)
from adapters.teams.invokes import Invokes, pressed_button
from adapters.teams.references import ConversationReferences, remember
from adapters.teams.threads import shared_files
from core.incidents.command import CommandName
from core.model.conversation import Question, Speaker, Turn
from core.model.errors import ConfigurationError, InputTooLarge, MalformedInput, Unauthorized
from core.model.feedback import Reaction
from core.ports import CardRefresher, Clock, Forms, Inbox

if TYPE_CHECKING:
    from adapters.teams.authentication import Authenticator

MAX_BODY = 1 << 20  # bytes
TEAMS = "msteams"
RESTORED = "undeleteMessage"

log = structlog.get_logger()


def _authenticator(app_id: str, cloud: Cloud, clock: Clock, session: aiohttp.ClientSession) -> Authenticator:
    from adapters.teams.authentication import Authenticator  # imports cryptography, which the playground does not need

    return Authenticator(app_id, cloud, clock, session)


class TeamsInbound:
    """Receives the requests of Teams.

    With `anonymous`, no token is required and only a local connector service is contacted, for the playground. With
    `tenant_ids`, people of other tenants are ignored.
    """

    def __init__(
        self,
        *,
        app_id: str,
        tenant_ids: frozenset[str],
        anonymous: bool,
        audiences: TeamsAudiences,
        inbox: Inbox,
        forms: Forms,
        refresher: CardRefresher,
        references: ConversationReferences,
        clock: Clock,
        session: aiohttp.ClientSession,
        cloud: Cloud = PUBLIC_CLOUD,
    ) -> None:
        if anonymous == bool(app_id):
            raise ConfigurationError("Set TEAMS_APP_ID. Without it, Teams needs PLUMBLINE_HOST=127.0.0.1.")
        self._cloud = THIS_MACHINE if anonymous else cloud
        self._authenticator = None if anonymous else _authenticator(app_id, cloud, clock, session)
        self._tenant_ids = frozenset(tenant.lower() for tenant in tenant_ids)
        self._audiences = audiences
        self._inbox = inbox
        self._references = references
        self._clock = clock
        self._invokes = Invokes(
            inbox=inbox, forms=forms, refresher=refresher, audiences=audiences, references=references, clock=clock
        )

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one activity. The response is sent once it is recorded; replies in the chat are posted later.

        Raises Unauthorized, InputTooLarge, MalformedInput, ChatUnavailable, and the errors of the inbox.
        """
        activity = await self._receive(request)
        if activity.channel_id != TEAMS or (self._tenant_ids and activity.tenant_id.lower() not in self._tenant_ids):
            log.info("teams activity ignored", type=activity.type, channel=activity.channel_id)
            return web.Response()
        if activity.type == "invoke":
            return await self._invokes.answer(activity)
        if activity.removes_bot:
            await self._references.remove(activity.channel, activity.channel_data.team.id)
            return web.Response()
        await remember(self._references, activity.channel, reference_of(activity), restricted=activity.is_restricted)
        match activity.type:
            case "message":
                await self._take_message(activity)
            case "messageUpdate":
                await self._take_edit(activity)
            case "messageDelete":
                await self._inbox.retract(key_of(activity), place_of(activity))
            case "messageReaction":
                await self._take_reactions(activity)
            case _ if activity.adds_bot:
                await self._inbox.ask(await self._greeting(activity))
        return web.Response()

    async def _receive(self, request: web.Request) -> Activity:
        given = request.headers.get("Authorization")
        credential = await self._authenticator.check(given) if self._authenticator is not None else None
        # A web page could send a form to this machine, but no JSON without a CORS preflight.
        if request.content_type != "application/json":
            raise MalformedInput("An activity must be JSON. Send Content-Type: application/json.")
        too_large = InputTooLarge(f"The body is larger than {MAX_BODY} bytes.")
        activity = parse_activity(await read_body(request.content, MAX_BODY, too_large))
        if credential is not None:
            credential.vouch(activity.service_url, activity.channel_id)
        if not self._cloud.serves(activity.service_url):
            raise Unauthorized("The activity names a service URL that does not belong to Teams.")
        return activity

    async def _take_message(self, activity: Activity) -> None:
        if isinstance(activity.value, dict):  # Action.Submit
            try:
                pressed = Pressed.model_validate(activity.value)
            except ValidationError:
                return
            await self._inbox.press(
                pressed_button(activity, pressed, await self._audiences.of(activity), self._clock.now())
            )
        elif _is_question(activity):
            await self._inbox.ask(await self._question(activity))

    async def _take_edit(self, activity: Activity) -> None:
        """Handle an edit. An edited message is asked again; a restored one is asked as a new one."""
        if not _is_question(activity):
            await self._inbox.retract(key_of(activity), place_of(activity), edited=True)
            return
        question = await self._question(activity)
        changed = activity.timestamp or f"{self._clock.now():%Y-%m-%dT%H:%M:%S.%fZ}"
        if activity.channel_data.event_type == RESTORED:
            await self._inbox.ask(replace(question, id=f"{question.id}:{changed}"))
        else:
            await self._inbox.ask(replace(question, revision=changed))

    async def _take_reactions(self, activity: Activity) -> None:
        if not activity.reply_to_id:
            return
        at = happened_at(activity, self._clock.now())
        put = {approves(reaction.type) for reaction in activity.reactions_added}
        for taken_back, reactions in ((False, activity.reactions_added), (True, activity.reactions_removed)):
            for reaction in reactions:
                says = approves(reaction.type)
                if says is None or (taken_back and says in put):
                    continue  # a reaction replaced with an equivalent one
                id_ = f"{key_of(activity)}:{reaction.type}:{'removed' if taken_back else 'added'}"
                await self._inbox.react(
                    Reaction(id_, target_message(activity), says, person_of(activity), at, taken_back)
                )

    async def _greeting(self, activity: Activity) -> Question:
        """Return the question that the greeting answers. Its id is fixed, because Teams reports an added app repeatedly."""
        place = replace(place_of(activity), thread=activity.channel)
        return Question(
            id=f"teams:greeting:{activity.channel}",
            text=CommandName.HELLO,
            asker=person_of(activity),
            place=place,
            audience=await self._audiences.of(activity),
            asked_at=self._clock.now(),
        )

    async def _question(self, activity: Activity) -> Question:
        text, quoted = activity.readable_text, activity.quoted
        return Question(
            id=key_of(activity),
            # What is quoted is never a command.
            text=text or ("\n".join((CommandName.ASK, *quoted)) if quoted else ""),
            asker=person_of(activity),
            place=place_of(activity),
            audience=await self._audiences.of(activity),
            asked_at=written_at(activity, self._clock.now()),
            # Reading the thread needs consent; quoted messages are always available.
            history=tuple(Turn(Speaker.PERSON, quote) for quote in quoted if text),
            files=shared_files(activity.attachments),
        )


def _is_question(activity: Activity) -> bool:
    return activity.is_addressed and activity.sender.role != "bot"
