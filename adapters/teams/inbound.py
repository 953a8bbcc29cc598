"""The route POST /api/messages: passes activities of Teams to the inbox, and answers requests that wait for a reply."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiohttp
import structlog
from aiohttp import web
from pydantic import ValidationError

from adapters.http import read_body
from adapters.teams.activity import (
    Activity,
    Pressed,
    QuotedMessage,
    TeamsAudiences,
    approves,
    happened_at,
    key_of,
    parse_activity,
    person_of,
    place_of,
    reference_of,
    target_message,
    written_at,
)
from adapters.teams.connector import PUBLIC_CLOUD, THIS_MACHINE, Cloud, ConversationReferences, is_member, remember
from adapters.teams.elements import ADAPTIVE_CARD, REFRESH
from adapters.teams.history import shared_files
from adapters.teams.render import EXTENSION, ask_dialog, form_dialog, question_in, render, said_in_dialog
from core.incidents.incident_questions import CommandName
from core.model.conversation import Question, Speaker, Turn, cut_message
from core.model.errors import ConfigurationError, InputTooLarge, MalformedInput, Unauthorized
from core.model.message_view import Feedback, Reaction
from core.model.messages import TAKING, ButtonAction, IncidentMessage, Message, Notice, NoticeKind
from core.ports import CardRefresher, Clock, Forms, Inbox

if TYPE_CHECKING:
    from adapters.teams.authentication import Authenticator

MAX_BODY = 1 << 20  # bytes
TEAMS = "msteams"
RESTORED = "undeleteMessage"
HOUR = 13  # characters of a time, down to its hour

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
            await self._invokes.press(activity, _pressed(activity.value))
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
        """Return the question that the greeting answers. Its id is that of the hour, because Teams reports an added app
        several times at once, but one that is added again greets again.
        """
        place = replace(place_of(activity), thread=activity.channel)
        return Question(
            id=f"teams:greeting:{activity.channel}:{activity.timestamp[:HOUR]}",
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


SENTENCE = "application/vnd.microsoft.activity.message"
REFUSAL = "application/vnd.microsoft.error"

RECEIVED = "Received."  # whether it is accepted, the message itself shows
UNKNOWN_BUTTON = "This button is too old. Ask again to get a new message."
NOT_HERE = "I’m not in this conversation. Add Plumbline to it, and I can answer here."
ANSWERED_THERE = "I’ll answer below the message."
NOTHING_TO_ASK = "This message contains no text to ask me about."

THUMBS = {"like": True, "dislike": False}

# Forms in a card, which are hidden from the person who has submitted one.
SENT = frozenset(
    {ButtonAction.REASSIGN, ButtonAction.NOT_OURS, ButtonAction.CORRECTION, ButtonAction.FILE, ButtonAction.SEND_UPDATE}
)


class Invokes:
    """Handlers of invokes. Each reply has the form that its request needs; a button's status is in the body."""

    def __init__(
        self,
        *,
        inbox: Inbox,
        forms: Forms,
        refresher: CardRefresher,
        audiences: TeamsAudiences,
        references: ConversationReferences,
        clock: Clock,
    ) -> None:
        self._inbox = inbox
        self._forms = forms
        self._refresher = refresher
        self._audiences = audiences
        self._references = references
        self._clock = clock

    async def answer(self, activity: Activity) -> web.Response:
        """Handle an invoke. Raises the errors of the inbox. Unknown invokes get an empty reply."""
        match activity.name:
            case "adaptiveCard/action":
                return await self._card_action(activity)
            case "task/fetch":
                return await self._open_dialog(activity)
            case "task/submit":
                pressed = _pressed(_part(activity.value, "data"))
                await self.press(activity, pressed, in_form=True)
                return _task(said_in_dialog(RECEIVED if pressed is not None else UNKNOWN_BUTTON))
            case "composeExtension/fetchTask":
                return _task(ask_dialog())
            case "composeExtension/submitAction":
                return await self._ask_about(activity)
            case "message/submitAction":
                return await self._rate(activity)
            case _:
                return web.Response()

    async def _card_action(self, activity: Activity) -> web.Response:
        await remember(self._references, activity.channel, reference_of(activity), restricted=activity.is_restricted)
        action = _part(activity.value, "action")
        if _part(action, "verb") == REFRESH:
            message = await self._refresher.message(target_message(activity))
            return _card(message) if message is not None else _card_action_refused()
        pressed = _pressed(_part(action, "data"))
        await self.press(activity, pressed)
        if pressed is None:
            return _card_action_refused()
        if pressed.verdict in SENT:
            return _card(Notice(RECEIVED, NoticeKind.THANKS))
        if pressed.verdict in TAKING:
            message = await self._refresher.message(target_message(activity))
            if isinstance(message, IncidentMessage):
                # The change is stored soon, and updates everybody else's card then.
                is_theirs = pressed.verdict is ButtonAction.TAKE_OVER or not message.incident.taken_by
                by = activity.sender.name or activity.sender.id if is_theirs else message.incident.taken_by
                return _card(replace(message, incident=replace(message.incident, taken_by=by)))
        return web.json_response({"statusCode": 200, "type": SENTENCE, "value": RECEIVED})

    async def _rate(self, activity: Activity) -> web.Response:
        """Handle a thumb below an answer as a reaction with the typed comment."""
        value = _part(activity.value, "actionValue")
        thumb = _part(value, "reaction")
        if thumb in THUMBS and activity.reply_to_id:
            now = self._clock.now()
            await self._inbox.react(
                Reaction(
                    id=key_of(activity),
                    message=target_message(activity),
                    approves=THUMBS[thumb],
                    person=person_of(activity),
                    at=happened_at(activity, now),
                    comment=_comment(_part(value, "feedback")),
                )
            )
        return web.json_response({})

    async def press(self, activity: Activity, pressed: Pressed | None, *, in_form: bool = False) -> None:
        """Pass a pressed button to the inbox, unless it is not ours."""
        if pressed is not None:
            button = Feedback(
                id=key_of(activity),
                verdict=pressed.verdict,
                subject=pressed.subject,
                person=person_of(activity),
                place=place_of(activity),
                at=self._clock.now(),
                text=pressed.text,
                choice=pressed.choice,
                title=pressed.title,
                audience=await self._audiences.of(activity),
                in_form=in_form,
            )
            await self._inbox.press(button)

    async def _open_dialog(self, activity: Activity) -> web.Response:
        """Record the button at once, and open the dialog for the details."""
        pressed = _pressed(_part(activity.value, "data"))
        if pressed is None:
            return _task(said_in_dialog(UNKNOWN_BUTTON))
        audience = await self._audiences.of(activity)
        form = await self._forms.form(pressed.verdict, pressed.subject, audience, person_of(activity))
        await self.press(activity, pressed, in_form=form is not None)
        return _task(form_dialog(form) if form is not None else said_in_dialog(RECEIVED))

    async def _ask_about(self, activity: Activity) -> web.Response:
        """Handle “Ask Plumbline about this”: answer in the message's thread, if the app is in that conversation."""
        if _part(activity.value, "commandId") != EXTENSION:
            return web.Response()
        if not await is_member(self._references, activity.channel, activity.channel_data.team.id):
            return _task(said_in_dialog(NOT_HERE))
        try:
            quoted = QuotedMessage.model_validate(_part(activity.value, "messagePayload")).readable_text
        except ValidationError:
            quoted = ""
        text = cut_message(question_in(_part(activity.value, "data"))).strip()
        if not quoted and not text:
            return _task(said_in_dialog(NOTHING_TO_ASK))
        await self._inbox.ask(
            Question(
                id=key_of(activity),
                text=f"ask {text or quoted}",  # prefixed, so that the text is never taken for another command
                asker=person_of(activity),
                place=place_of(activity),
                audience=await self._audiences.of(activity),
                asked_at=self._clock.now(),
                history=(Turn(Speaker.PERSON, quoted),) if text and quoted else (),
            )
        )
        return _task(said_in_dialog(ANSWERED_THERE))


def _pressed(data: Any) -> Pressed | None:
    """Return the pressed button; None if it is not ours."""
    try:
        return Pressed.model_validate(data)
    except ValidationError:
        return None


def _comment(feedback: Any) -> str:
    """Return the text of a feedback form, which Teams sends as JSON in a string."""
    try:
        typed = _part(json.loads(feedback) if isinstance(feedback, str) else feedback, "feedbackText")
    except (ValueError, RecursionError):
        return ""
    return cut_message(typed) if isinstance(typed, str) else ""


def _part(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _card(message: Message) -> web.Response:
    """Return a card that replaces the one whose button was pressed."""
    return web.json_response({"statusCode": 200, "type": ADAPTIVE_CARD, "value": render(message).content})


def _card_action_refused() -> web.Response:
    return web.json_response(
        {"statusCode": 400, "type": REFUSAL, "value": {"code": "BadRequest", "message": UNKNOWN_BUTTON}}
    )


def _task(task: dict[str, Any]) -> web.Response:
    return web.json_response({"task": task})
