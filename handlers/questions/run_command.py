"""Take a message from a chat: run the command that it names, or answer it as a question; stop if it is withdrawn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from core.incidents.command import CommandName, parse_command
from core.model.conversation import MAX_BEGINNING, MAX_MESSAGE, Place, Question, was_cut
from core.model.incident import Stage
from core.model.messages import Notice, NoticeKind
from handlers.common.ports import Ports
from handlers.common.show_waiting import answer_intent
from handlers.incidents.declare_maintenance import declare_maintenance
from handlers.incidents.investigate_incident import explain, triage
from handlers.incidents.investigate_on_demand import investigate_on_demand
from handlers.incidents.label_incident import record_resolution
from handlers.incidents.update_stakeholders import offer_update
from handlers.knowledge.learn_failing_lines import correct_failing_lines
from handlers.questions.answer_in_incident import answer_in_incident
from handlers.questions.answer_question import answer_question
from handlers.questions.change_settings import set_quiet_hours, show_settings
from handlers.questions.correct_answer import correct_in_words
from handlers.questions.read_context import forget_conversation, in_context, with_files
from handlers.questions.show_home import post_home, say_hello, show_help, show_incidents, show_status

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
    in_its_thread = await in_context(unanswered, ports)
    await ports.under_way.run(question.id, answer_question(in_its_thread, ports))


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
    CommandName.CORRECT: _correct,
    CommandName.RESOLUTION: _resolve,
    CommandName.UPDATE: _update,
    CommandName.SETTINGS: show_settings,
    CommandName.QUIET: set_quiet_hours,
    CommandName.THANKS: _accept_thanks,
    CommandName.HOME: post_home,
    CommandName.HELLO: say_hello,
    CommandName.HELP: show_help,
}
