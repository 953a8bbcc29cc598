"""Inbound interactions in Slack: buttons, forms (modals), reactions, and “Ask Plumbline about this” in a message's menu.

https://docs.slack.dev/surfaces/modals
"""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.blocks import ACTION_PREFIX, OPENED, RATE, SEPARATOR, Block, plain, plain_text
from adapters.slack.channels import CALL_TIMEOUT, ChannelKind, ChannelReaders, moment, question_id
from adapters.slack.client import BotIdentity, call
from adapters.slack.payloads import ButtonPress, FormState, MessageShortcut, ReactionEvent, Submission, parse
from adapters.slack.render import DRAFT_FIELDS, INPUT, PICKER, body_blocks
from core.incidents.incident_questions import CommandName
from core.model.conversation import Audience, MessageReference, Person, Place, Platform, Question, Speaker, Turn
from core.model.errors import MalformedInput, PlumblineError
from core.model.message_view import Feedback, MessageView, Reaction
from core.model.messages import FILING_ACTIONS, ButtonAction, Form
from core.ports import Clock, Forms, Inbox
from core.views import TITLE, message_view, question_view

APPROVAL = frozenset({"+1", "thumbsup", "white_check_mark", "heavy_check_mark", "100"})
DISAPPROVAL = frozenset({"-1", "thumbsdown", "x", "negative_squared_cross_mark", "no_entry_sign"})
# Buttons that only open a window.
ONLY_OPENS_A_WINDOW = frozenset({ButtonAction.HAND_OVER, ButtonAction.DETAILS, *FILING_ACTIONS})
SHORTCUT = "ask_about_message"
MAX_QUOTED = 600  # characters of the message; at six bytes each, they fit into Slack's 3 000 for a form
SKIN_TONE = "::skin-tone-"  # suffix of a reaction with a skin tone

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """A listener of Slack's events, which passes them to the inbox."""

    inbox: Inbox
    readers: ChannelReaders
    identity: BotIdentity
    client: AsyncWebClient
    clock: Clock


@dataclass(frozen=True, slots=True)
class Interactions(Listener):
    """Passes feedback and questions about a message to the inbox.

    A button that needs details opens a form. A question about a message is typed into a form; if Slack does not open one in
    time, the message itself is the question. The answer is posted in the message's thread, or as a direct message if the
    bot is not in the conversation.
    """

    forms: Forms

    def listen(self, app: AsyncApp) -> None:
        app.action(re.compile(f"^{ACTION_PREFIX}"))(self._on_button)
        app.view(f"{FORM_PREFIX}{ASK}")(self._on_question)
        app.view(re.compile(f"^{FORM_PREFIX}"))(self._on_form)
        app.message_shortcut(SHORTCUT)(self._on_shortcut)
        app.event("reaction_added")(self._on_reaction)
        app.event("reaction_removed")(self._on_reaction)

    async def _on_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        press = parse(ButtonPress, body)
        channel, message, action = press.channel.id, press.message, press.action
        if OPENED in (action.value, action.selected_option and action.selected_option.value):
            await ack()
            return
        verdict, subject = _pressed(press)
        person = press.user.person
        place = Place(Platform.SLACK, channel, message.thread_ts or message.ts)
        audience = await self.readers.audience(await self.readers.kind(channel), place, person)
        in_form = await self._open_form(verdict, subject, press, audience, person)
        if not (in_form and verdict in ONLY_OPENS_A_WINDOW):
            await self.inbox.press(
                Feedback(
                    id=f"slack:{channel}:{message.ts}:{action.action_ts}:{press.user.id}",
                    verdict=verdict,
                    subject=subject,
                    person=person,
                    place=place,
                    at=moment(action.action_ts),
                    text=_typed(press.state),
                    title=press.state.typed(TITLE),
                    choice=press.state.picked(PICKER),
                    audience=audience,
                    in_form=in_form,
                )
            )
        await ack()

    async def _open_form(
        self, verdict: ButtonAction, subject: str, press: ButtonPress, audience: Audience, person: Person
    ) -> bool:
        """Open a form. Returns whether it is open; if not, the thread asks for the details."""
        if press.trigger_id is None:
            return False
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                form = await self.forms.form(verdict, subject, audience, person)
                if form is None:
                    return False
                about = FormOrigin(channel=press.channel.id, ts=press.message.thread_ts or press.message.ts)
                view = feedback_form(form, about)
                await call("views.open", self.client.views_open(trigger_id=press.trigger_id, view=view))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("Slack opened no form, so the thread asks for the details: %s", error or "too slow")
            return False
        return True

    async def _on_form(self, body: dict[str, Any], ack: AsyncAck) -> None:
        submission = parse(Submission, body)
        about = origin(submission.view.private_metadata)
        text, choice = _typed(submission.view.state), submission.view.state.picked(PICKER)
        verdict = _verdict(submission.view.callback_id.removeprefix(FORM_PREFIX))
        is_handover = verdict is ButtonAction.REASSIGN
        if is_handover or text.strip():
            person = submission.user.person
            place = Place(Platform.SLACK, about.channel, about.ts)
            kind = await self.readers.kind(about.channel)
            await self.inbox.press(
                Feedback(
                    id=f"slack:{submission.view.id}",
                    verdict=ButtonAction.NOT_OURS if is_handover and not choice else verdict,
                    subject=about.subject,
                    person=person,
                    place=place,
                    at=self.clock.now(),
                    text=text,
                    title=submission.view.state.typed(TITLE),
                    choice=choice,
                    audience=await self.readers.audience(kind, place, person),
                )
            )
        await ack()

    async def _on_reaction(self, event: dict[str, Any]) -> None:
        reaction = parse(ReactionEvent, event)
        channel, ts = reaction.item.channel, reaction.item.ts
        name = reaction.reaction.partition(SKIN_TONE)[0]
        if channel is None or ts is None or name not in APPROVAL | DISAPPROVAL:
            return
        bot = await self.identity.user_id()
        if reaction.user == bot or reaction.item_user not in (None, bot):
            return
        await self.inbox.react(
            Reaction(
                id=f"slack:{channel}:{ts}:{reaction.type}:{reaction.reaction}:{reaction.user}:{reaction.event_ts}",
                message=MessageReference(Place(Platform.SLACK, channel), ts),
                approves=name in APPROVAL,
                person=Person(Platform.SLACK, reaction.user),
                at=moment(reaction.event_ts),
                taken_back=reaction.type == "reaction_removed",
            )
        )

    async def _on_shortcut(self, body: dict[str, Any], ack: AsyncAck) -> None:
        chosen = parse(MessageShortcut, body)
        message = chosen.message
        quoted = plain_text(message.seen, await self.identity.user_id())
        about = FormOrigin(channel=chosen.channel.id, ts=message.thread_ts or message.ts, quoted=quoted[:MAX_QUOTED])
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                # Looked up in advance, while the person is typing.
                absent = await self.readers.kind(about.channel) is ChannelKind.ABSENT
                about = about.model_copy(update={"in_person": absent})
                view = question_form(about)
                await call("views.open", self.client.views_open(trigger_id=chosen.trigger_id, view=view))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("Slack opened no form, so the message itself is taken as the question: %s", error or "slow")
            await self._ask_about(chosen.trigger_id, chosen.user.person, "", about)
        await ack()

    async def _on_question(self, body: dict[str, Any], ack: AsyncAck) -> None:
        submission = parse(Submission, body)
        person = submission.user.person
        about = origin(submission.view.private_metadata)
        await self._ask_about(submission.view.id, person, submission.view.state.typed(INPUT), about)
        await ack()

    async def _ask_about(self, event: str, person: Person, typed: str, about: FormOrigin) -> None:
        text = plain_text(typed, await self.identity.user_id())
        question_text = (text or about.quoted).strip()
        kind = ChannelKind.ABSENT if about.in_person else await self.readers.kind(about.channel)
        place = Place(Platform.SLACK, about.channel, about.ts)
        if kind is ChannelKind.ABSENT:
            # Opens the direct message with this person.
            kind, place = ChannelKind.DIRECT, Place(Platform.SLACK, person.id)
        question = Question(
            id=question_id(about.channel, event),
            text=f"{CommandName.ASK} {question_text}"
            if question_text
            else "",  # prefixed, so that the text is never taken for another command
            asker=person,
            place=place,
            audience=await self.readers.audience(kind, place, person),
            asked_at=self.clock.now(),
            history=(Turn(Speaker.PERSON, about.quoted),) if text and about.quoted else (),
        )
        await self.inbox.ask(question)


def _typed(state: FormState) -> str:
    """Return the typed text. A draft spans several fields."""
    draft = (part for field in DRAFT_FIELDS if (part := state.typed(field).strip("\n")))
    return state.typed(INPUT) or "\n\n".join(draft)


def _pressed(press: ButtonPress) -> tuple[ButtonAction, str]:
    """Return the action and its subject: in the id and value of a button, both in the value of any other element."""
    action = press.action
    verdict, subject = action.action_id.removeprefix(ACTION_PREFIX), action.value
    if action.selected_option is not None or verdict == RATE:
        value = action.selected_option.value if action.selected_option is not None else action.value
        verdict, _, subject = value.partition(SEPARATOR)
    return _verdict(verdict), subject


def _verdict(name: str) -> ButtonAction:
    try:
        return ButtonAction(name)
    except ValueError:
        raise MalformedInput("There is no such button.") from None


FORM_PREFIX = "form:"  # prefix of a form's callback id, followed by its first button
ASK = "ask"  # in place of a button: the form for a question about a message

MAX_TITLE = 24  # characters of a form's title and buttons


class FormOrigin(BaseModel, frozen=True):
    """The subject of a form, stored in the form and returned with its input."""

    channel: Annotated[str, Field(pattern=r"^[A-Z0-9]{1,255}$")]
    ts: Annotated[str, Field(pattern=r"^\d{1,12}(\.\d{1,9})?$")]  # of the root of the thread in which to reply
    subject: Annotated[str, Field(max_length=1_000)] = ""  # the prediction or incident of the button
    quoted: Annotated[str, Field(max_length=1_500)] = ""  # text of the message that is asked about
    in_person: bool = False  # the bot is not in the conversation, so it replies to the person privately


def origin(metadata: str) -> FormOrigin:
    """Return the origin. Raises MalformedInput."""
    try:
        return FormOrigin.model_validate_json(metadata)
    except ValidationError:
        raise MalformedInput("This is not one of Plumbline’s forms.") from None


def feedback_form(form: Form, about: FormOrigin) -> Block:
    """Return the form that a button opens."""
    view = message_view(form)
    if not view.buttons:  # a window without input
        return _form(ButtonAction.DETAILS, view, about, submit="")
    first = view.buttons[0]
    submit = "Send" if len(view.buttons) > 1 else first.label
    return _form(str(first.verdict), view, about.model_copy(update={"subject": first.subject}), submit)


def question_form(about: FormOrigin) -> Block:
    """Return the form for a question about a selected message."""
    return _form(ASK, question_view(about.quoted), about, submit="Ask")


def _form(modal: str, view: MessageView, about: FormOrigin, submit: str) -> Block:
    return {
        "type": "modal",
        "callback_id": f"{FORM_PREFIX}{modal}",
        "title": plain(view.title, MAX_TITLE),
        **({"submit": plain(submit, MAX_TITLE)} if submit else {}),
        "close": plain("Cancel" if submit else "Close", MAX_TITLE),
        "private_metadata": about.model_dump_json(exclude_defaults=True),
        "blocks": body_blocks(view),
    }
