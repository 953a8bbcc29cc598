"""Take a message from a chat: run the command that it names, or answer it as a question; stop if it is withdrawn.

A question in an incident's thread is answered about that incident, and a remark about its cause passed on.

The commands `settings` and `quiet …` show and change the settings of a channel.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from core.incidents.incident_questions import (
    CommandName,
    answer_links,
    answer_text,
    needs_reading,
    parse_command,
    subject_of,
)
from core.incidents.incident_view import incident_times
from core.incidents.posted_alerts import format_adoption
from core.incidents.postmortem import postmortem_address, worth_a_postmortem
from core.incidents.readable import readable
from core.incidents.thread_notes import MAX_NOTE, bears_on_cause
from core.knowledge.redactor import Redact, redacted, redacted_beginning
from core.model.alert import NO_ADOPTION, Severity
from core.model.conversation import MAX_BEGINNING, MAX_MESSAGE, PUBLIC, Place, Question, Speaker, Turn, was_cut
from core.model.errors import ChatUnavailable, MalformedInput
from core.model.incident import Incident, IncidentState, Stage
from core.model.messages import Notice, NoticeKind
from core.model.silences import HOW, ChannelSettings, parse_quiet_hours
from core.ports import Task
from handlers.common.ports import Ports
from handlers.common.post_message import ANSWERED, answer_intent, show_answer
from handlers.common.stored_incident import find_in_thread
from handlers.incidents.adopt_alerts import adoption_of
from handlers.incidents.file_incident import offer_update
from handlers.incidents.investigate_incident import explain, investigate_on_demand, observe, triage
from handlers.incidents.label_incident import record_resolution
from handlers.incidents.mute_alert import mute_alert
from handlers.incidents.offer_adoption import offer_adoption
from handlers.incidents.post_handover import OUTSIDERS, declare_maintenance
from handlers.knowledge.learn_failing_lines import correct_failing_lines
from handlers.questions.answer_question import answer_question, forget_conversation, in_context, remember, with_files
from handlers.questions.correct_answer import correct_in_words
from handlers.questions.show_home import post_home, say_hello, show_help, show_incidents, show_status

NOT_QUIET = "Quiet hours: none."
LEFT_ALONE = (
    "During quiet hours I ping nobody and post only {loud} incidents. "
    "I hold the others and post a summary when quiet hours end. I still answer questions."
)


NO_READER = "I cannot read what other bots post here."
NO_ALERTS = (
    "I see nothing among the latest messages that is an alert for certain. Say “adopt on”, and I answer alerts in their threads "
    "and ask once about each kind of message that is unclear."
)


async def show_settings(question: Question, ports: Ports) -> None:
    """Show the channel's settings, and how to change them."""
    async with ports.store.transaction() as transaction:
        settings = await transaction.channel_settings.get(question.place)
        adoption = await adoption_of(question.place, ports.adoption, transaction)
    lines = ["Settings of this channel:", *format_settings(settings), *format_adoption(adoption), HOW]
    text = "\n".join(lines)
    await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(text))


async def set_quiet_hours(question: Question, ports: Ports) -> None:
    """Set the channel's quiet hours; without an argument, show the settings. Only for members of the workspace."""
    if not question.text.strip():
        await show_settings(question, ports)
        return
    if PUBLIC not in question.audience.readers:
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(OUTSIDERS))
        return
    try:
        quiet = parse_quiet_hours(question.text)
    except MalformedInput as error:
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(str(error)))
        return
    async with ports.store.transaction() as transaction:
        settings = replace(await transaction.channel_settings.get(question.place), quiet=quiet)
        await transaction.channel_settings.save(question.place, settings)
    who = question.asker.name or "Somebody"
    text = "\n".join([f"{who} changed the settings of this channel:", *format_settings(settings)])
    await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(text))


async def set_adoption(question: Question, ports: Ports) -> None:
    """Adopt the alerts of other bots in the channel or not, forget what was chosen, or offer the choice in the thread.

    Only for members of the workspace.
    """
    is_on = {"": True, "on": True, "off": False}.get(question.text.lower())
    refusal = "" if PUBLIC in question.audience.readers else OUTSIDERS
    refusal = refusal or (await _unread(question.place, ports) if is_on else "")
    if refusal:
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(refusal))
        return
    async with ports.store.transaction() as transaction:
        settings = await transaction.channel_settings.get(question.place)
        if question.text:
            chosen = NO_ADOPTION if is_on is None else replace(settings.adoption, is_on=is_on)
            await transaction.channel_settings.save(question.place, replace(settings, adoption=chosen))
        is_chosen = question.text or (await adoption_of(question.place, ports.adoption, transaction)).is_on is not None
    if is_chosen:
        await show_settings(question, ports)
    elif not await offer_adoption(question.id, question.place, ports):
        await ports.poster.post_once(f"settings:{question.id}", question.place, Notice(NO_ALERTS))


async def _unread(place: Place, ports: Ports) -> str:
    """Return why messages of other bots cannot be read in a channel; empty if they can."""
    reader = ports.adoption.channels.get(place.platform)
    if reader is None:
        return NO_READER
    try:
        await reader.recent(replace(place, thread=None), 1)
    except ChatUnavailable as error:
        return f"I cannot read what other bots post here: {error}"
    return ""


def format_settings(settings: ChannelSettings) -> list[str]:
    """Return the channel's settings as lines of text."""
    if settings.quiet is None:
        return [f"• {NOT_QUIET}"]
    return [f"• Quiet hours: every day from {settings.quiet}.", LEFT_ALONE.format(loud=_loud(settings.quiet.loud))]


def _loud(severity: Severity) -> str:
    return severity if severity is Severity.CRITICAL else f"{severity} and more severe"


CUT = (
    f"Your message has more than {MAX_MESSAGE:,} characters. I read the first {MAX_BEGINNING:,} and the last "
    f"{MAX_MESSAGE - MAX_BEGINNING:,}."
)
WELCOME = "You’re welcome."
WENT_WRONG = (
    "Something went wrong while I worked on this. Ask again. If it fails again, give an operator the reference."
)


async def run_command(question: Question, ports: Ports) -> None:
    """Run the command with the rest of the message as its text. If the message was truncated, post a notice."""
    ports.queued.started(question.id)
    question = await with_files(question, ports)
    command = parse_command(question.text)
    await COMMANDS[command.name](replace(question, text=command.argument), ports)
    if was_cut(question.text):
        await ports.poster.post_once(f"cut:{question.id}", question.place, Notice(CUT))


async def apologise(question: Question, reference: str, ports: Ports) -> None:
    """Say that the question could not be worked on, in the message of its answer."""
    notice = Notice(WENT_WRONG, NoticeKind.ERROR, reference)
    await ports.poster.post_or_edit(answer_intent(question.id), question.place, notice, reference)


async def retract_question(question_id: str, place: Place, ports: Ports) -> None:
    """Stop and remove the answer to a deleted question, and delete the stored conversation.

    Does nothing for a message that was not a question.
    """
    await ports.under_way.stop(question_id)
    await ports.poster.withdraw(answer_intent(question_id), place)
    await forget_conversation(question_id, ports.store)


async def ask(question: Question, ports: Ports) -> None:
    """Answer the question: about the incident in whose thread it is asked, or else with the thread as context.

    Raises Withdrawn if it is deleted or edited meanwhile.
    """
    unanswered = await answer_in_incident(question, ports)
    if unanswered is None:
        return
    if question.revision:
        await ports.under_way.stop(question.id)
        await forget_conversation(question.id, ports.store)
    await ports.under_way.run(question.id, answer_question(await in_context(unanswered, ports), ports))


async def _triage(question: Question, ports: Ports) -> None:
    await investigate_on_demand(
        question,
        ports,
        lambda incident, audience, _, show: triage(incident, audience, ports, show, question.key),
        Stage.TRIAGING,
    )


async def _explain(question: Question, ports: Ports) -> None:
    await investigate_on_demand(
        question,
        ports,
        lambda incident, audience, progress, show: explain(incident, audience, ports, progress, show, question.key),
        Stage.EXPLAINING,
    )


async def _correct(question: Question, ports: Ports) -> None:
    if not await correct_failing_lines(question, ports):
        await correct_in_words(question, ports)


async def _resolve(question: Question, ports: Ports) -> None:
    if not await record_resolution(question, ports):
        await ask(question, ports)


async def _update(question: Question, ports: Ports) -> None:
    if not await offer_update(question, ports):
        await ask(replace(question, text=f"{CommandName.UPDATE} {question.text}"), ports)


async def _accept_thanks(question: Question, ports: Ports) -> None:
    await ports.poster.post_once(f"thanks:{question.id}", question.place, Notice(WELCOME, NoticeKind.THANKS))


COMMANDS: dict[CommandName, Callable[[Question, Ports], Awaitable[None]]] = {
    CommandName.ASK: ask,
    CommandName.TRIAGE: _triage,
    CommandName.RCA: _explain,
    CommandName.STATUS: show_status,
    CommandName.INCIDENTS: show_incidents,
    CommandName.MAINTENANCE: declare_maintenance,
    CommandName.MUTE: mute_alert,
    CommandName.UNMUTE: mute_alert,
    CommandName.CORRECT: _correct,
    CommandName.RESOLUTION: _resolve,
    CommandName.UPDATE: _update,
    CommandName.SETTINGS: show_settings,
    CommandName.QUIET: set_quiet_hours,
    CommandName.ADOPT: set_adoption,
    CommandName.THANKS: _accept_thanks,
    CommandName.HOME: post_home,
    CommandName.HELLO: say_hello,
    CommandName.HELP: show_help,
}


RECHECK = "recheck_incident"
_REMARK = TypeAdapter(Question)


async def answer_in_incident(question: Question, ports: Ports) -> Question | None:
    """Answer a question about the incident whose thread it is asked in.

    A remark that names or rules out a cause or a change starts a new investigation, which updates the incident's
    message; there is no reply. Returns None if nothing is left to do, otherwise the question that is still to be
    answered, with the incident as context.
    """
    incident = await find_in_thread(question.place, ports.store)
    if incident is None:
        return question
    incident = readable(incident, question.audience, await ports.chats.channels_of([incident]))
    subject = subject_of(question.text, incident)
    if subject is None and bears_on_cause(question.text) and incident.state is IncidentState.OPEN:
        async with ports.store.transaction() as transaction:
            await transaction.tasks.add(recheck_task(incident.id, question, ports.redact))
        return None
    if subject is None:
        return replace(question, history=(*_said_of(incident), *question.history))
    observations = await observe(incident, question.audience, ports) if needs_reading(subject) else None
    page = postmortem_address(incident, ports.chats.public_url) if worth_a_postmortem(incident) else ""
    text = answer_text(subject, incident, observations, page)
    text = text if observations is None else redacted(text, ports.redact)  # stored facts are redacted already
    answer = Notice(text, links=answer_links(text, incident, page), times=incident_times(incident))
    await show_answer(answer, question, ANSWERED, ports.poster)
    async with ports.store.transaction() as transaction:
        await remember(question, text, ports.clock.now(), transaction)
    return None


def _said_of(incident: Incident) -> Sequence[Turn]:
    """Return the incident's service, alerts and cause as the first turn of the thread."""
    cause = incident.findings.cause
    names = dict.fromkeys([incident.service, *(alert.name for alert in incident.alerts), incident.title])
    return [Turn(Speaker.PERSON, " ".join([*filter(None, names), cause.cause if cause is not None else ""]).strip())]


def recheck_task(incident_id: str, remark: Question, redact: Redact) -> Task:
    """Return the task that investigates the incident again with a person's remark, unique for each message.

    The task names the person and the place, so that the remark can be deleted on request.
    """
    redacted_remark = replace(remark, text=redacted_beginning(remark.text, MAX_NOTE, redact), history=())
    return Task(f"recheck:{remark.key}", RECHECK, incident_id, _REMARK.dump_python(redacted_remark, mode="json"))


def remark_of(payload: Mapping[str, Any]) -> Question:
    """Return the remark stored in a recheck task."""
    return _REMARK.validate_python(payload)
