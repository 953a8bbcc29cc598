"""Every behaviour with its ports in hand: which handler answers what."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from bot.wiring import Core, ingest, learn_owners, operators_place, redactor
from bot.workflows import Behaviours
from core.audience import incident_audience
from core.command import CommandName
from core.conversation import Audience, Platform, Question
from core.curated import SOURCE as CURATED
from core.errors import Unavailable
from core.feedback import Feedback
from core.incident import Incident
from core.messages import WHY_VERDICTS, Notice, NoticeKind, Verdict
from core.ports import LanguageModel, ThreadReader
from core.triage.model_documents import TeamDocuments
from handlers.accept_thanks import accept_thanks
from handlers.answer_question import answer_question, no_queue
from handlers.correct_answer import confirm_correction, correct_in_words, propose_correction
from handlers.explain_badge import explain_badge
from handlers.explain_incident import explain_incident
from handlers.investigate_incident import conclude_investigation, investigate_incident, report_progress
from handlers.investigate_on_demand import investigate_on_demand
from handlers.investigate_with_model import Progress
from handlers.label_incident import label_noted_incidents
from handlers.negotiate_owner import Negotiator, Observe
from handlers.observe_incident import Readers, observe_incident
from handlers.post_message import Poster
from handlers.present_incident import ping_owner, present_details, present_incident
from handlers.read_thread import in_context
from handlers.reassign_incident import ask_whose_it_is, reassign_incident
from handlers.recalibrate import recalibrate
from handlers.record_feedback import record_feedback
from handlers.record_resolution import record_resolution
from handlers.retract_question import AnswersUnderWay, retract_question
from handlers.run_command import run_command
from handlers.show_help import show_help
from handlers.show_status import show_status
from handlers.show_waiting import answer_intent
from handlers.triage_incident import triage_incident
from handlers.watch_calibration import watch_calibration
from handlers.write_postmortem import write_postmortem

Negotiators = Callable[[Observe], Negotiator]


def _negotiators(model: LanguageModel | None) -> Negotiators | None:
    """Managers for one triage each; what they remember of the team documents they share. None without a model."""
    if model is None:
        return None
    documents = TeamDocuments(model)
    return lambda observe: Negotiator(model, documents, observe)


def behaviours(core: Core, poster: Poster, threads: Mapping[Platform, ThreadReader]) -> Behaviours:
    """Every handler with its ports in hand. `threads` reads what people said to each other, where a platform can."""
    store, clock, knowledge = core.store, core.clock, core.knowledge
    channels, redact = core.workspace.channels, redactor(core)

    judge = core.model if core.workspace.two_step else None

    negotiators = _negotiators(core.model)

    async def triage(incident: Incident, audience: Audience, *, at_once: bool = False) -> Incident:
        """`at_once`: without asking the language model, whose managers take their time."""
        history = await asyncio.to_thread(core.history.readable_by, audience)
        observe = partial(observe_incident, readers=readers, history=history, clock=clock)
        return await triage_incident(
            incident,
            teams=core.workspace.teams,
            history=history,
            store=store,
            clock=clock,
            owners=await core.owner_models.load(),
            negotiator=None if at_once or negotiators is None else negotiators(observe),
            judge=judge,
        )

    tools = core.tools
    readers = Readers(
        tools.logs,
        tools.metrics,
        tools.changes,
        core.workspace.dependencies,
        code=tools.code,
        toolboxes=tools.toolboxes,
        embedder=knowledge.embedder,
    )

    async def explain_and_revise(incident: Incident, audience: Audience, progress: Progress | None = None) -> Incident:
        explained = await explain_incident(
            incident,
            readers,
            history=await asyncio.to_thread(core.history.readable_by, audience),
            store=store,
            clock=clock,
            model=core.model,
            progress=progress,
            teams=core.workspace.teams,
        )
        return await triage(explained, audience)

    async def explain_in_sight(incident: Incident, audience: Audience) -> Incident:
        """The same for an incident that is posted: its message says at every step what is being done."""

        async def progress(doing: str) -> None:
            await report_progress(incident.id, doing, store=store)
            with suppress(Unavailable):  # the next step says more; the work does not wait for a chat
                await present_incident(incident.id, store=store, poster=poster)

        return await explain_and_revise(incident, audience, progress)

    async def step(incident_id: str, investigate: Callable[[Incident, Audience], Awaitable[Incident]]) -> None:
        """One step of an incident's own investigation, whose findings stand where the incident is posted."""
        await investigate_incident(
            incident_id,
            lambda incident: investigate(incident, incident_audience(incident, channels)),
            store=store,
        )

    answer = partial(
        answer_question,
        retriever=knowledge.retriever,
        store=store,
        poster=poster,
        clock=clock,
        model=core.model,
        judge=judge,
        help_desk=core.workspace.help_desk,
        position=core.model.position if core.model else no_queue,
    )

    under_way = AnswersUnderWay()

    async def ask(question: Question) -> None:
        in_its_thread = await in_context(question, threads=threads, store=store, redact=redact)
        await under_way.run(question.id, answer(in_its_thread))

    services = {
        service for team in core.workspace.teams for service in team.services
    } | core.workspace.dependencies.keys()
    on_demand = partial(investigate_on_demand, services=services, store=store, poster=poster)
    commands: dict[CommandName, Callable[[Question], Awaitable[None]]] = {
        CommandName.ASK: ask,
        CommandName.TRIAGE: partial(on_demand, investigate=triage),
        CommandName.RCA: partial(on_demand, investigate=explain_and_revise),
        CommandName.STATUS: partial(show_status, channels=channels, store=store, index=knowledge.index, poster=poster),
        CommandName.CORRECT: partial(correct_in_words, store=store, poster=poster, redact=redact),
        CommandName.RESOLUTION: partial(
            record_resolution,
            teams=core.workspace.teams,
            store=store,
            poster=poster,
            redact=redact,
            learn=partial(core.history.grow, store),
            otherwise=ask,
        ),
        CommandName.THANKS: partial(accept_thanks, poster=poster),
        CommandName.HELP: partial(show_help, poster=poster),
    }

    async def apologise(question: Question, reference: str) -> None:
        notice = Notice("Something went wrong while I worked on this.", NoticeKind.ERROR, reference)
        await poster.post_or_edit(answer_intent(question.id), question.place, notice, reference)

    async def ingest_all() -> None:
        await ingest(core)

    async def fit_owners() -> None:
        await learn_owners(core)

    policy = core.workspace.policy

    async def present(incident_id: str) -> None:
        await present_incident(incident_id, store=store, poster=poster, policy=policy)
        await ping_owner(incident_id, policy=policy, teams=core.workspace.teams, store=store, poster=poster)
        await write_postmortem(incident_id, store=store, poster=poster, public_url=core.settings.public_url)

    return Behaviours(
        answer=partial(run_command, commands=commands),
        apologise=apologise,
        retract=partial(retract_question, under_way=under_way, poster=poster),
        feedback=_feedback(core, poster),
        present=present,
        triage=partial(step, investigate=partial(triage, at_once=True)),
        explain=partial(step, investigate=explain_in_sight),
        triage_again=partial(step, investigate=triage),
        conclude=partial(conclude_investigation, store=store),
        details=partial(present_details, store=store, poster=poster),
        ingest=ingest_all,
        fit_triage=fit_owners,
        recalibrate=partial(_learn_from_outcomes, core, poster),
    )


def _feedback(core: Core, poster: Poster) -> Callable[[Feedback], Awaitable[None]]:
    """What becomes of a pressed button: a label, unless it asks for something."""
    store, redact = core.store, redactor(core)

    async def publish() -> None:
        await ingest(core, only=CURATED)

    label = partial(record_feedback, store=store, poster=poster)
    reassign = partial(reassign_incident, teams=core.workspace.teams, store=store, clock=core.clock, poster=poster)
    why = partial(
        explain_badge, store=store, index=core.knowledge.index, history_for=core.history.readable_by, poster=poster
    )
    asked: dict[Verdict, Callable[[Feedback], Awaitable[None]]] = {
        Verdict.CORRECTION: partial(propose_correction, store=store, poster=poster, redact=redact),
        Verdict.CONFIRM: partial(
            confirm_correction, store=store, poster=poster, lifetime=core.workspace.curated_for, publish=publish
        ),
        **dict.fromkeys(WHY_VERDICTS, why),
        **dict.fromkeys((Verdict.REASSIGN, Verdict.NOT_OURS), reassign),
        Verdict.HAND_OVER: partial(ask_whose_it_is, teams=core.workspace.teams, store=store, poster=poster),
    }

    async def take_feedback(feedback: Feedback) -> None:
        await asked.get(feedback.verdict, label)(feedback)

    return take_feedback


async def _learn_from_outcomes(core: Core, poster: Poster) -> None:
    """Nightly: label, learn, calibrate, and look whether the badges still hold."""
    store, clock = core.store, core.clock
    await label_noted_incidents(teams=core.workspace.teams, store=store)
    await core.history.grow(store)
    await recalibrate(store=store, clock=clock)
    await watch_calibration(operators=operators_place(core), store=store, poster=poster, clock=clock)
