"""Inbound feedback in Slack: buttons, forms and reactions."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_sdk.web.async_client import AsyncWebClient

from adapters.slack.channels import Readers
from adapters.slack.client import call
from adapters.slack.forms import (
    CAUSE,
    CORRECTION,
    DRAFT_FIELDS,
    FILING,
    FORM_PREFIX,
    HANDOVER,
    INPUT,
    PICKER,
    TITLE,
    Origin,
    feedback_form,
    origin,
)
from adapters.slack.identity import BotIdentity
from adapters.slack.parts import ACTION_PREFIX, OPENED, SEPARATOR
from adapters.slack.payloads import ButtonPress, ReactionEvent, Submission, parse
from adapters.slack.questions import moment
from core.model.conversation import Audience, MessageReference, Person, Place, Platform
from core.model.errors import MalformedInput, PlumblineError
from core.model.feedback import Feedback, Reaction
from core.model.messages import FILING_ACTIONS, ButtonAction
from core.ports import Clock, Forms, Inbox

TRIGGER_LIFETIME = 1.5  # seconds to open a form; Slack's trigger expires after three, like its event

APPROVAL = frozenset({"+1", "thumbsup", "white_check_mark", "heavy_check_mark", "100"})
DISAPPROVAL = frozenset({"-1", "thumbsdown", "x", "negative_squared_cross_mark", "no_entry_sign"})
SAYS_NOTHING = frozenset(
    {ButtonAction.HAND_OVER, ButtonAction.DETAILS, *FILING_ACTIONS}
)  # buttons that only open a window
SKIN_TONE = "::skin-tone-"  # suffix of a reaction with a skin tone

logger = logging.getLogger(__name__)


class Judgements:
    """Passes feedback to the inbox. A button that needs details opens a form, if Slack opens it in time."""

    def __init__(
        self,
        inbox: Inbox,
        forms: Forms,
        readers: Readers,
        identity: BotIdentity,
        client: AsyncWebClient,
        clock: Clock,
    ) -> None:
        self._inbox = inbox
        self._forms = forms
        self._readers = readers
        self._identity = identity
        self._client = client
        self._clock = clock

    def listen(self, app: AsyncApp) -> None:
        app.action(re.compile(f"^{ACTION_PREFIX}"))(self._on_button)
        app.view(re.compile(f"^{FORM_PREFIX}({CORRECTION}|{HANDOVER}|{CAUSE}|{FILING})$"))(self._on_form)
        app.event("reaction_added")(self._on_reaction)
        app.event("reaction_removed")(self._on_reaction)

    async def _on_button(self, body: dict[str, Any], ack: AsyncAck) -> None:
        press = parse(ButtonPress, body)
        channel, message, action = press.channel.id, press.message, press.action
        if OPENED in (action.value, action.selected_option and action.selected_option.value):
            await ack()
            return
        verdict, subject = _pressed(press)
        person = Person(Platform.SLACK, press.user.id, press.user.name or press.user.username)
        place = Place(Platform.SLACK, channel, message.thread_ts or message.ts)
        audience = await self._readers.audience(await self._readers.kind(channel), place, person)
        in_form = await self._open_form(verdict, subject, press, audience, person)
        if not (in_form and verdict in SAYS_NOTHING):
            await self._inbox.press(
                Feedback(
                    id=f"slack:{channel}:{message.ts}:{action.action_ts}:{press.user.id}",
                    verdict=verdict,
                    subject=subject,
                    person=person,
                    place=place,
                    at=moment(action.action_ts),
                    text=press.typed(INPUT) or _draft(press),
                    title=press.typed(TITLE),
                    choice=press.picked(PICKER),
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
            async with asyncio.timeout(TRIGGER_LIFETIME):
                form = await self._forms.form(verdict, subject, audience, person)
                if form is None:
                    return False
                about = Origin(channel=press.channel.id, ts=press.message.thread_ts or press.message.ts)
                view = feedback_form(form, about)
                await call("views.open", self._client.views_open(trigger_id=press.trigger_id, view=view))
        except (PlumblineError, TimeoutError) as error:
            logger.warning("Slack opened no form, so the question is put in the thread: %s", error or "too slow")
            return False
        return True

    async def _on_form(self, body: dict[str, Any], ack: AsyncAck) -> None:
        submission = parse(Submission, body)
        about = origin(submission.view.private_metadata)
        text, choice = submission.typed(INPUT) or _draft(submission), submission.picked(PICKER)
        asked = submission.view.callback_id.removeprefix(FORM_PREFIX)
        if asked == HANDOVER or text.strip():
            person = Person(Platform.SLACK, submission.user.id, submission.user.name or submission.user.username)
            place = Place(Platform.SLACK, about.channel, about.ts)
            kind = await self._readers.kind(about.channel)
            given = ButtonAction.REASSIGN if choice else ButtonAction.NOT_OURS
            await self._inbox.press(
                Feedback(
                    id=f"slack:{submission.view.id}",
                    verdict={
                        CORRECTION: ButtonAction.CORRECTION,
                        CAUSE: ButtonAction.CAUSE_WRONG,
                        HANDOVER: given,
                        FILING: ButtonAction.FILE,
                    }[asked],
                    subject=about.subject,
                    person=person,
                    place=place,
                    at=self._clock.now(),
                    text=text,
                    title=submission.typed(TITLE),
                    choice=choice,
                    audience=await self._readers.audience(kind, place, person),
                )
            )
        await ack()

    async def _on_reaction(self, event: dict[str, Any]) -> None:
        reaction = parse(ReactionEvent, event)
        channel, ts = reaction.item.channel, reaction.item.ts
        name = reaction.reaction.partition(SKIN_TONE)[0]
        if channel is None or ts is None or name not in APPROVAL | DISAPPROVAL:
            return
        bot = await self._identity.user_id()
        if reaction.user == bot or reaction.item_user not in (None, bot):
            return
        await self._inbox.react(
            Reaction(
                id=f"slack:{channel}:{ts}:{reaction.type}:{reaction.reaction}:{reaction.user}:{reaction.event_ts}",
                message=MessageReference(Place(Platform.SLACK, channel), ts),
                approves=name in APPROVAL,
                person=Person(Platform.SLACK, reaction.user),
                at=moment(reaction.event_ts),
                taken_back=reaction.type == "reaction_removed",
            )
        )


def _draft(fields: ButtonPress | Submission) -> str:
    """Return the text of a draft, whose parts stand in several fields; empty if there is none."""
    return "\n\n".join(part for field in DRAFT_FIELDS if (part := fields.typed(field).strip("\n")))


def _pressed(press: ButtonPress) -> tuple[ButtonAction, str]:
    """Return the button and its subject. A button has both in its ids, a menu in the selected value."""
    action = press.action
    verdict, subject = action.action_id.removeprefix(ACTION_PREFIX), action.value
    if action.selected_option is not None:
        verdict, _, subject = action.selected_option.value.partition(SEPARATOR)
    try:
        return ButtonAction(verdict), subject
    except ValueError:
        raise MalformedInput("The button is none that we know.") from None
