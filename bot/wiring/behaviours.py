"""Wiring of every handler with its ports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from bot.wiring.application import Core, ingest, learn_owners, operators_place, records_of, redactor
from bot.wiring.home_pages import home_pages
from bot.wiring.investigations import Investigations
from bot.work.retention import apply_retention
from bot.work.workflows import Behaviours
from core.incidents.command import CommandName
from core.model.conversation import Platform, Question
from core.model.curated import SOURCE as CURATED
from core.model.feedback import Feedback
from core.model.incident import Stage
from core.model.messages import FILING_ACTIONS, TAKING, WHY_ACTIONS, ButtonAction, Notice, NoticeKind
from core.ports import ThreadReader
from handlers.feedback.accept_suggestion import SUGGESTIONS, accept_suggestion
from handlers.feedback.explain_badge import explain_badge
from handlers.feedback.recalibrate import recalibrate
from handlers.feedback.record_feedback import record_feedback
from handlers.feedback.record_reaction import record_reaction
from handlers.feedback.record_resolution import record_resolution
from handlers.feedback.watch_calibration import watch_calibration
from handlers.incidents.declare_maintenance import declare_maintenance
from handlers.incidents.end_quiet_hours import end_quiet_hours
from handlers.incidents.file_incident import ask_to_file, file_report
from handlers.incidents.group_incidents import ask_for_parent, join_incident, separate_incident
from handlers.incidents.investigate_incident import conclude_investigation
from handlers.incidents.investigate_on_demand import investigate_on_demand
from handlers.incidents.label_incident import label_noted_incidents
from handlers.incidents.label_suggestions import label_suggestions
from handlers.incidents.present_incident import present_details, show_details
from handlers.incidents.reassign_incident import ask_for_owner, reassign_incident
from handlers.incidents.take_incident import take_incident
from handlers.knowledge.learn_failing_lines import correct_failing_lines, judge_failing_lines
from handlers.questions.accept_thanks import accept_thanks
from handlers.questions.answer_in_incident import answer_in_incident
from handlers.questions.answer_question import answer_question, no_queue
from handlers.questions.change_settings import set_quiet_hours, show_settings
from handlers.questions.correct_answer import confirm_correction, correct_in_words, propose_correction
from handlers.questions.post_message import Poster
from handlers.questions.press_in_sight import is_visible_here
from handlers.questions.read_thread import in_context
from handlers.questions.redeliver import redeliver
from handlers.questions.retract_question import AnswersUnderWay, forget_conversation, retract_question
from handlers.questions.run_command import run_command
from handlers.questions.say_hello import say_hello
from handlers.questions.show_help import show_help
from handlers.questions.show_status import show_status
from handlers.questions.show_waiting import answer_intent
from handlers.questions.tell_home import post_home


def behaviours(core: Core, poster: Poster, threads: Mapping[Platform, ThreadReader]) -> Behaviours:
    """Return every handler with its ports. `threads` reads threads on the platforms that support it."""
    store, clock, redact = core.store, core.clock, redactor(core)
    investigations = Investigations(core, poster)
    feedback = _feedback(core, poster)

    answer = partial(
        answer_question,
        retriever=core.knowledge.retriever,
        store=store,
        poster=poster,
        clock=clock,
        examined=core.examined,
        help_desk=core.workspace.help_desk,
        records=records_of(core),
        position=core.model.position if core.model else no_queue,
    )

    under_way = AnswersUnderWay()

    async def ask(question: Question) -> None:
        if question.revision:
            await under_way.stop(question.id)
            await forget_conversation(question.id, store)
        in_its_thread = await in_context(question, threads=threads, store=store, redact=redact)
        await under_way.run(question.id, answer(in_its_thread))

    async def apologise(question: Question, reference: str) -> None:
        notice = Notice("Something went wrong while I worked on this.", NoticeKind.ERROR, reference)
        await poster.post_or_edit(answer_intent(question.id), question.place, notice, reference)

    async def ingest_all() -> None:
        if not core.awaiting_index.locked():  # otherwise the waiting ingestion includes the changes
            await ingest(core)

    async def fit_owners() -> None:
        await learn_owners(core)

    return Behaviours(
        answer=partial(run_command, commands=_commands(core, poster, investigations, ask), poster=poster),
        apologise=apologise,
        retract=partial(retract_question, under_way=under_way, store=store, poster=poster),
        feedback=feedback,
        react=partial(record_reaction, store=store, judge=feedback),
        present=investigations.present,
        triage=partial(investigations.step, investigate=investigations.triage_at_once),
        explain=partial(investigations.step, investigate=investigations.explain_with_progress),
        triage_again=partial(investigations.step, investigate=investigations.triage_with_progress, requested=True),
        recheck=investigations.recheck,
        conclude=partial(conclude_investigation, store=store),
        details=partial(present_details, store=store, poster=poster),
        watch_incidents=investigations.watch,
        redeliver=partial(redeliver, store=store, poster=poster),
        end_quiet_hours=partial(end_quiet_hours, store=store, poster=poster, clock=clock),
        ingest=ingest_all,
        fit_triage=fit_owners,
        recalibrate=partial(_learn_from_outcomes, core, poster),
        retain=partial(apply_retention, core.workspace.retention, engine=core.engine, store=store, clock=clock),
    )


def _commands(
    core: Core, poster: Poster, investigations: Investigations, ask: Callable[[Question], Awaitable[None]]
) -> dict[CommandName, Callable[[Question], Awaitable[None]]]:
    """Return the handler of each command; `ask` answers a question."""
    store, clock, knowledge = core.store, core.clock, core.knowledge
    channels, redact = core.workspace.channels, redactor(core)
    services = {
        service for team in core.workspace.teams for service in team.services
    } | core.workspace.dependencies.keys()
    on_demand = partial(investigate_on_demand, services=services, channels=channels, store=store, poster=poster)
    return {
        CommandName.ASK: partial(
            answer_in_incident,
            otherwise=ask,
            observe=investigations.observe,
            store=store,
            poster=poster,
            clock=clock,
            redact=redact,
            public_url=core.settings.public_url,
        ),
        CommandName.TRIAGE: partial(
            on_demand,
            investigate=lambda incident, audience, _, show: investigations.triage(incident, audience, show),
            stage=Stage.TRIAGING,
        ),
        CommandName.RCA: partial(on_demand, investigate=investigations.explain, stage=Stage.EXPLAINING),
        CommandName.STATUS: partial(
            show_status,
            channels=channels,
            maintenance=core.workspace.maintenance,
            store=store,
            index=knowledge.index,
            poster=poster,
            clock=clock,
        ),
        CommandName.MAINTENANCE: partial(
            declare_maintenance,
            services=frozenset(services),
            maintenance=core.workspace.maintenance,
            store=store,
            clock=clock,
            poster=poster,
        ),
        CommandName.CORRECT: partial(
            correct_failing_lines,
            store=store,
            poster=poster,
            otherwise=partial(correct_in_words, store=store, poster=poster, redact=redact),
        ),
        CommandName.RESOLUTION: partial(
            record_resolution,
            teams=core.workspace.teams,
            store=store,
            poster=poster,
            redact=redact,
            learn=partial(core.history.catch_up, store),
            otherwise=ask,
        ),
        CommandName.SETTINGS: partial(show_settings, store=store, poster=poster),
        CommandName.QUIET: partial(set_quiet_hours, store=store, poster=poster),
        CommandName.THANKS: partial(accept_thanks, poster=poster),
        CommandName.HOME: partial(post_home, home_of=home_pages(core), poster=poster),
        CommandName.HELLO: partial(say_hello, poster=poster),
        CommandName.HELP: partial(show_help, store=store, poster=poster),
    }


def _feedback(core: Core, poster: Poster) -> Callable[[Feedback], Awaitable[None]]:
    """Return the handler of pressed buttons, which stores a label by default."""
    store, redact = core.store, redactor(core)

    async def publish() -> None:
        await ingest(core, only=CURATED)

    label = partial(record_feedback, store=store, poster=poster)

    async def judge_cause(feedback: Feedback) -> None:
        await label(feedback)
        await judge_failing_lines(feedback, store=store)

    reassign = partial(
        reassign_incident,
        teams=core.workspace.teams,
        store=store,
        clock=core.clock,
        poster=poster,
        schedules=core.schedules,
    )
    why = partial(
        explain_badge,
        store=store,
        index=core.knowledge.index,
        history_for=core.history.readable_by,
        poster=poster,
        redact=redact,
    )
    asked: dict[ButtonAction, Callable[[Feedback], Awaitable[None]]] = {
        ButtonAction.CORRECTION: partial(propose_correction, store=store, poster=poster, redact=redact),
        ButtonAction.CONFIRM: partial(
            confirm_correction, store=store, poster=poster, lifetime=core.workspace.curated_for, publish=publish
        ),
        **dict.fromkeys(WHY_ACTIONS, why),
        **dict.fromkeys((ButtonAction.CAUSE_RIGHT, ButtonAction.CAUSE_WRONG), judge_cause),
        **dict.fromkeys((ButtonAction.REASSIGN, ButtonAction.NOT_OURS), reassign),
        **dict.fromkeys(TAKING, partial(take_incident, store=store, poster=poster)),
        **dict.fromkeys(SUGGESTIONS, partial(accept_suggestion, label=label, store=store)),
        ButtonAction.SEPARATE: partial(separate_incident, store=store),
        ButtonAction.BELONGS: partial(ask_for_parent, channels=core.workspace.channels, store=store, poster=poster),
        **dict.fromkeys(
            (ButtonAction.JOIN, ButtonAction.JOIN_SUGGESTED),
            partial(join_incident, channels=core.workspace.channels, store=store, poster=poster),
        ),
        **dict.fromkeys(FILING_ACTIONS, partial(ask_to_file, desk=core.filing, poster=poster)),
        ButtonAction.FILE: partial(file_report, desk=core.filing, poster=poster),
        ButtonAction.DETAILS: partial(show_details, store=store, poster=poster),
        ButtonAction.HAND_OVER: partial(ask_for_owner, teams=core.workspace.teams, store=store, poster=poster),
    }

    async def take_feedback(feedback: Feedback) -> None:
        if await is_visible_here(feedback, channels=core.workspace.channels, store=store):
            await asked.get(feedback.verdict, label)(feedback)

    return take_feedback


async def _learn_from_outcomes(core: Core, poster: Poster) -> None:
    """Label outcomes, extend the history, recalibrate, and check for drift (nightly)."""
    store, clock = core.store, core.clock
    await label_noted_incidents(teams=core.workspace.teams, store=store)
    await label_suggestions(store=store)
    await core.history.grow(store)
    await recalibrate(store=store, clock=clock)
    await watch_calibration(operators=operators_place(core), store=store, poster=poster, clock=clock)
