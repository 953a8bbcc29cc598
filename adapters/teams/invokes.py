"""Requests of Teams that wait for a reply: buttons, card refreshes, dialogs and the message extension."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from aiohttp import web
from pydantic import ValidationError

from adapters.teams.activity import Activity, Pressed, QuotedMessage
from adapters.teams.dialogs import EXTENSION, ask_dialog, form_dialog, question_in, said_in_dialog
from adapters.teams.elements import ADAPTIVE_CARD, REFRESH
from adapters.teams.events import TeamsAudiences, happened_at, key_of, person_of, place_of, reference_of, target_message
from adapters.teams.references import ConversationReferences, is_member, remember
from adapters.teams.render import render
from core.model.conversation import Audience, Question, Speaker, Turn, cut_message
from core.model.feedback import Feedback, Reaction
from core.model.messages import TAKING, ButtonAction, IncidentMessage, Message, Notice, NoticeKind
from core.ports import CardRefresher, Clock, Forms, Inbox

SENTENCE = "application/vnd.microsoft.activity.message"
REFUSAL = "application/vnd.microsoft.error"

THANKS = "Thank you, noted."
UNKNOWN_BUTTON = "This button is too old. Ask again to get a new message."
NOT_HERE = "I’m not in this conversation. Add Plumbline to it, and I can answer here."
ANSWERED_THERE = "I’ll answer below the message."
NOTHING_TO_ASK = "This message contains no text to ask me about."

THUMBS = {"like": True, "dislike": False}

# Forms in a card, which are hidden from the person who has submitted one.
SENT = frozenset(
    {ButtonAction.REASSIGN, ButtonAction.NOT_OURS, ButtonAction.CORRECTION, ButtonAction.FILE, ButtonAction.SEND_UPDATE}
)


def pressed_button(
    activity: Activity, pressed: Pressed, audience: Audience, at: datetime, *, in_form: bool = False
) -> Feedback:
    return Feedback(
        id=key_of(activity),
        verdict=pressed.verdict,
        subject=pressed.subject,
        person=person_of(activity),
        place=place_of(activity),
        at=at,
        text=pressed.text,
        choice=pressed.choice,
        title=pressed.title,
        audience=audience,
        in_form=in_form,
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
                pressed = await self._press(activity, _part(activity.value, "data"), in_form=True)
                return _task(said_in_dialog(THANKS if pressed is not None else UNKNOWN_BUTTON))
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
        pressed = await self._press(activity, _part(action, "data"))
        if pressed is None:
            return _card_action_refused()
        if pressed.verdict in SENT:
            return _card(Notice(THANKS, NoticeKind.THANKS))
        if pressed.verdict in TAKING:
            message = await self._refresher.message(target_message(activity))
            if isinstance(message, IncidentMessage):
                # The change is stored soon, and updates everybody else's card then.
                is_theirs = pressed.verdict is ButtonAction.TAKE_OVER or not message.incident.taken_by
                by = activity.sender.name or activity.sender.id if is_theirs else message.incident.taken_by
                return _card(replace(message, incident=replace(message.incident, taken_by=by)))
        return web.json_response({"statusCode": 200, "type": SENTENCE, "value": THANKS})

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

    async def _press(self, activity: Activity, data: Any, *, in_form: bool = False) -> Pressed | None:
        """Pass a pressed button to the inbox. Returns None if it is not ours."""
        try:
            pressed = Pressed.model_validate(data)
        except ValidationError:
            return None
        audience = await self._audiences.of(activity)
        await self._inbox.press(pressed_button(activity, pressed, audience, self._clock.now(), in_form=in_form))
        return pressed

    async def _open_dialog(self, activity: Activity) -> web.Response:
        """Record the button at once, and open the dialog for the details."""
        data = _part(activity.value, "data")
        try:
            pressed = Pressed.model_validate(data)
        except ValidationError:
            return _task(said_in_dialog(UNKNOWN_BUTTON))
        audience = await self._audiences.of(activity)
        form = await self._forms.form(pressed.verdict, pressed.subject, audience, person_of(activity))
        await self._press(activity, data, in_form=form is not None)
        return _task(form_dialog(form) if form is not None else said_in_dialog(THANKS))

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
    error = {"code": "BadRequest", "message": UNKNOWN_BUTTON}
    return web.json_response({"statusCode": 400, "type": REFUSAL, "value": error})


def _task(task: dict[str, Any]) -> web.Response:
    return web.json_response({"task": task})
